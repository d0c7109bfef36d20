import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { type CallerEntries, type CallerEntry, tokenHash } from '../../../src/callers-file.ts';
import { type CoreClients, connectToCore } from '../../support/core-clients.ts';
import { now, when } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { MACHINE } from './faults.ts';
import { findOutcome } from './operations.ts';
import { aScenario } from './scenario.ts';

/** Longer than two intervals at which processes read their files, which is every second; milliseconds. */
const APPLIED_WITHIN_MS = 2500;

/** The rights that a caller may have; some are limited to its own studio. */
const RIGHTS: readonly ((own: string) => Omit<CallerEntry, 'tokens'>)[] = [
  () => ({ may: ['crm'] }),
  (own) => ({ may: ['crm'], studios: [own] }),
  () => ({ may: ['read'] }),
  () => ({ may: ['gateway'] }),
  () => ({ may: ['feed'], consumers: ['own'] }),
];

/** The calls of a caller; `pull` is for the unnamed consumer. */
const CALLS = ['read', 'write', 'pull'] as const;
type Call = (typeof CALLS)[number];

/** Changes the rights and tokens of a caller that calls all cores with two tokens, and removes it. An invalid file changes nothing. */
export const changeCaller = aScenario({
  weight: 1,
  choice: fc.array(
    fc.record({ rights: fc.nat(RIGHTS.length - 1), valid: fc.subarray([0, 1]), isInvalid: fc.boolean() }),
    { minLength: 1, maxLength: 4 },
  ),
  run: (sim, states) =>
    sim.inTurn('callers', async () => {
      const tokens = [0, 1].map(() => newToken(sim));
      const studioIds = sim.studios.slice(0, 2).map(({ id }) => id);
      const note = (entry: CallerEntry | undefined, begin: number) => {
        for (const token of tokens)
          for (const studioId of studioIds)
            for (const call of CALLS)
              sim.put(describeRegister(call, studioId, token), expectedAnswer(entry, token, studioId, call), { begin });
      };
      note(undefined, 0);
      let isOver = false;
      const isCalling = tokens.map((token) => keepCalling(sim, token, studioIds, () => isOver));
      for (const { rights, valid, isInvalid } of states) {
        const entry = {
          ...(RIGHTS[rights]?.(studioIds[0] ?? '') as CallerEntry),
          tokens: valid.map((index) => ({ sha256: tokenHash(tokens[index] ?? '') })),
        };
        const begin = now();
        await putCaller(sim, 'tried', valid.length > 0 ? entry : undefined);
        note(valid.length > 0 ? entry : undefined, begin);
        // No core may start meanwhile: it would refuse the file.
        if (isInvalid) await sim.inTurn(MACHINE, () => writeFor(sim, '{ "callers": { "tried"'));
      }
      isOver = true;
      await Promise.all(isCalling);
      await putCaller(sim, 'tried', undefined);
    }),
});

const describeRegister = (call: Call, studioId: string, token: string) => `${call} of ${studioId} with token ${token}`;

function expectedAnswer(entry: CallerEntry | undefined, token: string, studioId: string, call: Call): string {
  if (!entry?.tokens?.some(({ sha256 }) => sha256 === tokenHash(token))) return 'CALLER_UNAUTHENTICATED';
  const mayCall = entry.may.some((role) => role === 'crm' || (role === 'read' && call === 'read'));
  const mayAccess = !entry.studios || (call !== 'pull' && entry.studios.includes(studioId));
  return mayCall && mayAccess ? 'an answer' : 'CALLER_FORBIDDEN';
}

/** Calls each core with a token, one call after another, over one connection while the core knows the caller. */
async function keepCalling(sim: Simulation, token: string, studioIds: readonly string[], isOver: () => boolean) {
  await Promise.all(
    sim.world.coreUrls.map(async (url) => {
      let core = connectToCore(url, token);
      while (!isOver()) {
        for (const studioId of studioIds) {
          for (const call of CALLS) {
            if (await isKnown(sim, core, token, studioId, call)) continue;
            // A core closes the connection of an unknown caller.
            core.close();
            core = connectToCore(url, token);
          }
        }
        await sleep(150);
      }
      core.close();
    }),
  );
}

/** Makes a call; returns whether its caller was known. */
async function isKnown(sim: Simulation, core: CoreClients, token: string, studioId: string, call: Call) {
  const begin = now();
  const leadSource = { studioId, id: sim.uuid('source of a caller'), name: 'Form', enabled: true };
  const calls: Readonly<Record<Call, () => Promise<unknown>>> = {
    read: () => core.directory.getStudio({ studioId }, CRM_TIMEOUT),
    write: () => core.directory.putLeadSource({ leadSource }, CRM_TIMEOUT),
    pull: () => core.leads.pullLeadChanges({ max: 1 }, CRM_TIMEOUT),
  };
  const outcome = await findOutcome(calls[call]());
  const what = describeRegister(call, studioId, token);
  if ('unknown' in outcome) {
    if (!sim.isDisturbedSince(begin))
      sim.history.fail(`${when({ begin, end: now() })}: ${what} gets no answer: ${outcome.unknown}`);
    return false;
  }
  const value = 'answer' in outcome ? 'an answer' : outcome.refused;
  sim.history.add({ kind: 'registerRead', party: 'caller', what, value, span: { begin, end: now() } });
  return value !== 'CALLER_UNAUTHENTICATED';
}

/** Replaces the gateway's token without an outage; afterwards the former one is refused. */
export const renewToken = aScenario({
  weight: 1,
  choice: fc.record({}),
  run: (sim) =>
    sim.inTurn('callers', async () => {
      const { gatewayToken } = sim.world.files;
      const [former, token] = [readFileSync(gatewayToken, 'utf8'), newToken(sim)];
      const entry = (...tokens: readonly string[]): CallerEntry => ({
        may: ['gateway'],
        tokens: tokens.map((each) => ({ sha256: tokenHash(each) })),
      });
      await putCaller(sim, 'gateway', entry(former, token));
      replace(gatewayToken, token);
      await untilApplied(sim);
      await putCaller(sim, 'gateway', entry(token));
      const core = connectToCore(sim.world.coreUrls[0] ?? '', former);
      const secretSha256 = new Uint8Array(32);
      const outcome = await findOutcome(core.apiKeys.authenticateApiKey({ secretSha256 }, CRM_TIMEOUT));
      core.close();
      if (!('unknown' in outcome) && !('refused' in outcome && outcome.refused === 'CALLER_UNAUTHENTICATED'))
        sim.history.fail(`a former token of the gateway gets ${JSON.stringify(outcome)}`);
    }),
});

/** Returns a token that no process may print. */
function newToken(sim: Simulation): string {
  const token = crypto.randomUUID();
  sim.keyBySecret.set(token, '');
  return token;
}

/** Changes a caller's entry in the file; undefined removes it. */
async function putCaller(sim: Simulation, name: string, entry: CallerEntry | undefined): Promise<void> {
  const { callers } = JSON.parse(readFileSync(sim.world.files.callers, 'utf8')) as { callers: CallerEntries };
  const { [name]: _, ...others } = callers;
  replace(sim.world.files.callers, JSON.stringify({ callers: entry ? { ...others, [name]: entry } : others }));
  await untilApplied(sim);
}

/** Replaces the callers file by a text for a while. */
async function writeFor(sim: Simulation, text: string): Promise<void> {
  const before = readFileSync(sim.world.files.callers, 'utf8');
  replace(sim.world.files.callers, text);
  await untilApplied(sim);
  replace(sim.world.files.callers, before);
}

/** Replaces a file atomically. */
export function replace(path: string, text: string): void {
  writeFileSync(`${path}.next`, text);
  renameSync(`${path}.next`, path);
}

/** Waits until each process has read its files, including those that were gone or suspended meanwhile. */
async function untilApplied(sim: Simulation): Promise<void> {
  do await sleep(APPLIED_WITHIN_MS);
  while (sim.isDisturbedSince(now() - APPLIED_WITHIN_MS));
}
