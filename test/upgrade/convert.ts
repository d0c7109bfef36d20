/**
 * Opens a SQLite file like a core; prints the progress of the conversion after each transaction, and `over` at its end. With
 * `--wait` it waits after the first transaction until it is killed.
 */
import { openInSteps } from '../../src/store/sqlite/open-database.ts';

const [, , path = '', option] = process.argv;
process.stdout.write('begins\n');
const database = await openInSteps(path, {
  onProgress: ({ done, total }) => {
    process.stdout.write(`${done} of ${total}\n`);
    if (option === '--wait') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  },
});
database.close();
process.stdout.write('over\n');
