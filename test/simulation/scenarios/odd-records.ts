import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { ID_BYTES } from '../../support/raw-sqlite.ts';
import { databaseFile, isOnSqlite } from './choices.ts';
import { asFarAsDefinite, definiteAnswer } from './definite-outcomes.ts';
import { MACHINE } from './faults.ts';
import { aScenario } from './scenario.ts';
import { createSeparateLead, inShort, leadIdIn, makeSeparateStudio, separateLead } from './separate-studio.ts';

/** The table and column that get an unknown word, and the expected responses: about the odd lead, another one, and the list. */
const ODDITIES = [
  {
    table: 'leads',
    column: 'stage',
    condition: `id = ${ID_BYTES}`,
    answers: ['500 internal_error', '200', '200: last'],
  },
  {
    table: 'api_keys',
    column: 'member_id',
    condition: 'id = ?',
    answers: Array(3).fill('401 integration_key_invalid'),
  },
  { table: 'studios', column: 'status', condition: 'id = ?', answers: Array(3).fill('402 subscription_suspended') },
] as const;

/** Writes an unknown word into a record of a studio, as a newer release or a manual change would. */
export const meetOddRecord = aScenario({
  weight: 3,
  isPossible: isOnSqlite,
  choice: fc.record({ oddity: fc.nat(ODDITIES.length - 1) }),
  run: (sim, { oddity }) =>
    asFarAsDefinite(async () => {
      const { table, column, condition, answers } = ODDITIES[oddity] as (typeof ODDITIES)[number];
      const studio = await makeSeparateStudio(sim);
      const made: string[] = [];
      for (const name of ['first', 'last'])
        made.push(leadIdIn(await createSeparateLead(sim, studio, separateLead(sim, studio.id, name))));
      const [odd = '', other = ''] = made;
      const id = { leads: odd, api_keys: studio.apiKeyId, studios: studio.id }[table];
      const run = (sql: string, ...values: readonly string[]) =>
        sim.inTurn(MACHINE, async () => {
          using database = new DatabaseSync(databaseFile(sim));
          return database.prepare(sql).all(...values);
        });
      const write = (value: string) => run(`UPDATE ${table} SET ${column} = ? WHERE ${condition}`, value, id);
      const expectAnswers = async (expected: readonly string[], when: string) => {
        const query = '?limit=100';
        const operations = [
          ...[odd, other].map((leadId) => ({ name: 'get', leadId }) as const),
          { name: 'list', walk: 0, page: 0, query } as const,
        ];
        // Concurrent operations are read together.
        const got = await Promise.all(operations.map((each) => definiteAnswer(sim, studio.secret, each)));
        const words = got.map((answer) => {
          const { leads } = JSON.parse(answer.text);
          const names = leads?.map(({ id }: { id: string }) => (id === odd ? 'odd' : 'last')).sort();
          return names ? `200: ${names}` : inShort(answer);
        });
        if (`${words}` !== `${expected}`)
          sim.history.fail(`in ${studio.id}, ${when} an odd ${column} of ${table}: ${words}, not ${expected}`);
      };
      const usual = ['200', '200', '200: last,odd'];
      const [row] = await run(`SELECT ${column} AS value FROM ${table} WHERE ${condition}`, id);
      await expectAnswers(usual, 'before');
      await write(`${sim.personal}.b`);
      await expectAnswers(answers, 'with');
      await write(`${row?.value}`);
      await expectAnswers(usual, 'after');
    }),
});
