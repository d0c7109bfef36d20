/** Opens a SQLite file like a core; prints the progress of the conversion after each transaction, and `over` at its end. */
import { openInSteps } from '../../src/store/sqlite/open-database.ts';

const path = process.argv[2] ?? '';
process.stdout.write('begins\n');
const database = await openInSteps(path, {
  onProgress: ({ done, total }) => void process.stdout.write(`${done} of ${total}\n`),
});
database.close();
process.stdout.write('over\n');
