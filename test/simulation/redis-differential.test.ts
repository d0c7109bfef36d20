import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import type { ChainableCommander, Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { singleClient } from '../../gateway/admission/quota/redis-client.ts';
import { defineWindowCommands, windowNames } from '../../gateway/admission/quota/redis-window.ts';
import { PASS } from '../contract/quota-of-keys.ts';
import { describeWithRedis } from '../tools/servers.ts';
import { sizeOf } from '../tools/size-of.ts';
import { type RedisOnPort, redisOnPort } from './redis-on-port.ts';

/** The number of random sequences of commands. */
const RUNS = sizeOf('DIFFERENTIAL_RUNS', { usual: 100, soak: 5000 });
const MAX_COMMANDS = 20;

/** The share of sequences that must be compared to their ends: in the others the real server's clock went on within a command. */
const COMPARED = 0.3;

/** Names of keys and studios, few, so that they meet. */
const names = fc
  .record({ apiKeyId: fc.constantFrom('a', 'b'), studioId: fc.constantFrom('x', 'y') })
  .map((caller) => windowNames(caller, false).flatMap(({ counter, refusal }) => [counter, refusal]));
const name = names.chain((each) => fc.constantFrom(...each));

/** Values that are no counts or refusals, and some that are. */
const value = fc.constantFrom(
  ...['0', '1', '2', '', 'many', '1.5', '01', '-7', '9223372036854775807', '1e300', '999999999999999'],
  ...['2000 1', '86401000 3', '86401001 3', '5000 x', '1000 2 3', ' 7'],
);
const ms = fc.oneof(fc.integer({ min: 1, max: 1200 }), fc.integer({ min: 1, max: 9000 }));
const limit = fc.integer({ min: 1, max: 3 });

/** A command and its result. `ends` are the windows of the counts before. */
type Command = (run: ChainableCommander, ends: readonly number[]) => ChainableCommander;
const command = (weight: number, arbitrary: fc.Arbitrary<{ readonly words: string; readonly send: Command }>) => ({
  weight,
  arbitrary,
});

const commands = fc.array(
  fc.oneof(
    command(
      10,
      fc
        .tuple(names, fc.constantFrom(1000, 2500, 5000), fc.constantFrom(0, 400, 1000), limit, fc.option(limit))
        .map(([each, lengthMs, patienceMs, key, studio]) => ({
          words: `consume ${each[0]} ${each[2]} ${lengthMs} ${patienceMs} ${key} ${studio}`,
          send: (run) => run.consumeRequest(4, ...each, lengthMs, patienceMs, key, studio ?? '') as never,
        })),
    ),
    command(
      3,
      fc.tuple(names, fc.boolean(), fc.integer({ min: -501, max: 501 })).map(([each, isOfStudio, off]) => ({
        words: `refund ${each[0]} ${isOfStudio} ${off}`,
        send: (run, [key = 0, studio = 0]) =>
          isOfStudio && studio
            ? (run.refundRequest(2, each[0] ?? '', each[2] ?? '', key + off, studio) as never)
            : (run.refundRequest(1, each[0] ?? '', key + off) as never),
      })),
    ),
    command(
      4,
      fc.tuple(names, ms).map(([each, passed]) => ({
        words: `pass ${each[0]} ${passed}`,
        send: (run) => run.eval(PASS, 4, ...each, passed),
      })),
    ),
    command(
      1,
      fc.tuple(name, value, fc.option(ms)).map(([each, put, expires]) => ({
        words: `set ${each} ${put} ${expires}`,
        send: (run) => (expires === null ? run.set(each, put) : run.set(each, put, 'PX', expires)),
      })),
    ),
    command(
      1,
      fc.tuple(name, fc.constantFrom('INCR', 'DECR', 'DEL')).map(([each, which]) => ({
        words: `${which} ${each}`,
        send: (run) => run.call(which, each),
      })),
    ),
    command(
      1,
      fc.tuple(name, fc.oneof(ms, fc.constantFrom(0, -1, 86_500_000))).map(([each, expires]) => ({
        words: `expire ${each} ${expires}`,
        send: (run) => run.pexpire(each, expires),
      })),
    ),
    command(
      3,
      name.map((each) => ({
        words: `look at ${each}`,
        send: (run) => run.get(each).type(each).pttl(each).pexpiretime(each),
      })),
    ),
  ),
  { minLength: 3, maxLength: MAX_COMMANDS },
);

describeWithRedis('the commands of the quota', (redisUrl) => {
  let nowMs = 0;
  let simulated: RedisOnPort;
  const clients: Redis[] = [];
  beforeAll(async () => {
    simulated = await redisOnPort(() => nowMs);
    for (const url of [simulated.url, redisUrl()]) {
      const client = singleClient(url);
      defineWindowCommands(client);
      await client.connect();
      clients.push(client);
    }
  });
  afterAll(() => {
    for (const client of clients) client.disconnect();
    simulated?.server.stop();
  });

  /** The results of the commands of a pipeline, or their errors; of one in a script not its words, which are Lua's. */
  const resultsOf = async (run: ChainableCommander): Promise<unknown[]> =>
    (await run.exec())?.map(([error, result]) => (error ? error.message.replace(/^ERR .*/, 'ERR') : result)) ?? [];

  test('have the same results on the simulated Redis, at each millisecond', {
    timeout: 600_000 + RUNS * 200,
  }, async () => {
    const [own, real] = clients as [Redis, Redis];
    const every = new Set(fc.sample(names, 200).flat());
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        for (const client of clients) await client.del(...every);
        let ends: readonly number[] = [];
        for (const { words, send } of sequence) {
          const outcome = await resultsOf(send(real.multi().time(), ends).time());
          const times = [outcome[0], outcome.at(-1)] as [string, string][];
          const [before, after] = times.map(([s, us]) => Number(s) * 1000 + Math.floor(Number(us) / 1000));
          // The command may have been executed at either time.
          if (before === undefined || before !== after) return;
          nowMs = before;
          const expected = outcome.slice(1, -1);
          const actual = await resultsOf(send(own.pipeline(), ends));
          if (!isDeepStrictEqual(actual, expected))
            expect.fail(
              `${sequence.map((each) => each.words).join('\n')}\n\n${words}\nsimulated ${JSON.stringify(actual)}\nreal      ${JSON.stringify(expected)}`,
            );
          const [counted] = expected;
          if (words.startsWith('consume') && Array.isArray(counted) && counted[0] === 1) ends = counted.slice(6);
        }
        compared += 1;
      }),
      { numRuns: RUNS },
    );
    expect(compared).toBeGreaterThan(RUNS * COMPARED);
  });
});
