/**
 * Measures how soon lives find faults: plants one bug at a time, and runs the lives of one seed after another until a promise
 * is broken. Prints a table whose last column has the first broken promise.
 *
 * `npm run soak:bugs [-- --only PATTERN] [--seconds 60] [--first-seed 1] [--steps 80]`: PATTERN matches names of bugs. Steps
 * limit each plan, as in `npm run simulate`. Seconds are processor time for one bug, after which no further life starts.
 */
import { parseArgs } from 'node:util';
import { ALL_BUGS, findDatabase } from '../planted-bugs/planted-bugs.ts';
import { live, plantedBug, simulatedPlanFrom } from './life.ts';

/** The number of characters shown of a promise. */
const SHOWN = 150;

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    seconds: { type: 'string', default: '60' },
    'first-seed': { type: 'string', default: '1' },
    steps: { type: 'string', default: '80' },
  },
});
const bugs = ALL_BUGS.filter(({ name }) => new RegExp(values.only ?? '').test(name));
let found = 0;
console.log(
  '| planted bug | database | found by seed | lives | seconds of processor | the first promise that was broken |',
);
console.log('|---|---|---|---|---|---|');
for (const bug of bugs) {
  const database = findDatabase(bug) === 'MongoDB' ? 'mongodb' : 'sqlite';
  const env = plantedBug(bug.name);
  const first = Number(values['first-seed']);
  let [seed, seconds, broken] = [first, 0, ''];
  for (; seconds < Number(values.seconds) && broken === ''; seed += 1) {
    const life = await live(seed, simulatedPlanFrom(seed, Number(values.steps), database), { database, env });
    seconds += life.processorMs / 1000;
    broken = life.violations[0]?.replaceAll(/[\s|]+/g, ' ').slice(0, SHOWN) ?? '';
  }
  if (broken) found += 1;
  console.log(
    `| ${bug.name} | ${database} | ${broken ? seed - 1 : 'none'} | ${seed - first} | ${Math.round(seconds)} | ${broken} |`,
  );
}
console.log(`\n${found} of ${bugs.length} found`);
