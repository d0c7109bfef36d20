/** Opens a SQLite file as a core does; says how far the conversion is after each of its transactions, and when it is over. */
import { openInSteps } from '../../src/store/sqlite/open-database.ts';

const path = process.argv[2] ?? '';
process.stdout.write('begins\n');
const database = await openInSteps(path, {
  onProgress: ({ done, total }) => void process.stdout.write(`${done} of ${total}\n`),
});
database.close();
process.stdout.write('over\n');
