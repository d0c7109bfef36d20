import fc from 'fast-check';
import { LEAD_STAGES, type LeadStage as Stage } from '../../../src/domain/lead.ts';
import { REGIONS } from '../contacts.ts';
import { now } from '../history.ts';
import type { KnownStudio, Simulation } from '../simulation.ts';
import * as actions from './actions.ts';
import { keyOf, lasting, mostlyFirst, newest, one, recent, studio, studioAt } from './choices.ts';
import { aScenario } from './scenario.ts';

/** The longest that a command may take, whatever fails in the database; milliseconds. */
const ENDS_WITHIN_MS = 30_000;

/** The time after which a command is interrupted; milliseconds. 0: never. */
const endsAfterMs = fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: lasting(100, 1500) });

/** A command: its words, and when it is interrupted. */
interface Typed {
  readonly words: readonly string[];
  readonly endsAfterMs: number;
}

const memberOf = ({ memberIds }: KnownStudio, member: number) => one(memberIds, member);

/** Performs an action of an operator by a command. */
function byCommand<T>(sim: Simulation, typed: Typed, read: (answer: unknown) => T): actions.Attempt<T> {
  return { party: 'operator', perform: () => type(sim, typed, read) };
}

/** Runs a command and checks its result: status 0 and an answer, or status 1 and a human-readable reason. */
async function type<T>(
  sim: Simulation,
  { words, endsAfterMs }: Typed,
  read: (answer: unknown) => T,
): Promise<actions.Outcome<T>> {
  const begin = now();
  const { status, stdout, stderr } = await sim.world.commandLine.run(
    ['--json', ...words],
    endsAfterMs || ENDS_WITHIN_MS,
  );
  const command = `lead-intake ${words.join(' ')}`;
  const result = `${status} ${stderr}`;
  sim.history.note('operator', `${command}: ${result}`, begin);
  if (/^\s+at .*[:/]/m.test(stderr)) sim.history.fail(`${command} crashes: ${stderr}`);
  for (const text of [...sim.keyBySecret.keys(), sim.world.coreToken, sim.personal])
    if (stderr.includes(text)) sim.history.fail(`${command} prints a secret: ${stderr}`);
  if (status === 0) return { answer: read(JSON.parse(stdout)) };
  const [, refused] = /^([A-Z]+(?:_[A-Z]+)+): /m.exec(stderr) ?? [];
  if (status === 1 && refused) return { refused, leadId: undefined };
  const isEnded = status === 'SIGKILL' && (endsAfterMs > 0 || sim.isDisturbedSince(begin));
  if (status === 'SIGKILL' && !isEnded) sim.history.fail(`${command} has not ended after ${ENDS_WITHIN_MS} ms`);
  if (!isEnded && status !== 1) sim.history.fail(`${command} ends with ${result}`);
  if (status === 1 && !sim.isDisturbedSince(begin))
    sim.history.fail(`${command} fails without a disturbance: ${result} ${stdout}`);
  return { unknown: result };
}

const nothing = () => {};

/** An operator changes a record of a studio. */
export const operatorPuts = aScenario({
  weight: 1,
  choice: fc.record({
    studio,
    puts: fc.oneof(
      fc.record({ what: fc.constant('status'), value: fc.constantFrom('suspended', 'active', 'active') }),
      fc.record({ what: fc.constant('region'), value: fc.constantFrom(...REGIONS) }),
      fc.record({ what: fc.constant('role'), value: fc.constantFrom('owner', 'owner', 'admin', 'staff', 'gone') }),
      fc.record({ what: fc.constant('source'), value: fc.constantFrom('enabled', 'enabled', 'disabled', 'gone') }),
    ),
    which: fc.nat(1),
    endsAfterMs,
  }),
  async run(sim, { studio, puts: { what, value }, which, endsAfterMs }) {
    const known = studioAt(sim, studio);
    const { register, words } = putting(known, what, value, which);
    await actions.put(sim, register, value, byCommand(sim, { words, endsAfterMs }, nothing));
  },
});

/** Returns the words of the command that changes a record of a studio. */
function putting({ id, memberIds, sourceIds }: KnownStudio, what: string, value: string, which: number) {
  const isGone = value === 'gone';
  switch (what) {
    case 'status':
      return { register: `status of ${id}`, words: ['studios', 'put', id, '--status', value] };
    case 'region':
      return { register: `region of ${id}`, words: ['studios', 'put', id, '--region', value] };
    case 'role': {
      const member = one(memberIds, which);
      const words = isGone ? ['remove', id, member] : ['put', id, member, '--role', value];
      return { register: `role of ${member} in ${id}`, words: ['members', ...words] };
    }
    default: {
      const source = one(sourceIds, which);
      const more = ['--name', 'Form', ...(value === 'disabled' ? ['--disabled'] : [])];
      const words = isGone ? ['remove', id, source] : ['put', id, source, ...more];
      return { register: `source ${source} of ${id}`, words: ['sources', ...words] };
    }
  }
}

/** An operator creates a key, replaces its secret, or revokes it. */
export const operatorKeys = aScenario({
  weight: 1,
  choice: fc.record({
    studio,
    action: fc.constantFrom('create', 'replace', 'revoke'),
    key: mostlyFirst(3),
    member: mostlyFirst(2),
    scopes: fc.constantFrom('both', 'leads.read', 'leads.create'),
    endsAfterMs,
  }),
  async run(sim, { studio, action, key, member, scopes, endsAfterMs }) {
    const known = studioAt(sim, studio);
    const { id } = known;
    const target = keyOf(known, key);
    const memberId = memberOf(known, member);
    const by = <T>(words: readonly string[], read: (answer: unknown) => T) =>
      byCommand(sim, { words: ['keys', ...words, '--member', memberId], endsAfterMs }, read);
    const issued = (answer: unknown): actions.IssuedKey => {
      const { id, secret } = answer as { id: string; secret: string };
      return { apiKeyId: id, secret };
    };
    if (action === 'create') {
      const more = scopes === 'both' ? [] : ['--scope', scopes];
      const may = { memberId, mayRead: scopes !== 'leads.create', mayCreate: scopes !== 'leads.read' };
      await actions.makeKey(sim, known, may, by(['create', id, '--name', 'Operator', '--days', '30', ...more], issued));
    } else if (action === 'replace') {
      await actions.replaceKey(sim, known, target, memberId, by(['replace', id, target.apiKeyId], issued));
    } else await actions.revokeKey(sim, known, target, memberId, by(['revoke', id, target.apiKeyId], nothing));
  },
});

/** An operator moves a lead. */
export const operatorMoves = aScenario({
  weight: 1,
  choice: fc.record({ studio, lead: recent, stage: fc.constantFrom(...LEAD_STAGES), endsAfterMs }),
  async run(sim, { studio, lead, stage, endsAfterMs }) {
    const { id: studioId, leadIds } = studioAt(sim, studio);
    const leadId = newest(leadIds, lead);
    if (leadId === undefined) return;
    const words = ['leads', 'stage', studioId, leadId, stage];
    const moved = { studioId, leadId, stage: stage as Stage };
    await actions.move(sim, moved, byCommand(sim, { words, endsAfterMs }, nothing));
  },
});

/** An operator reads something. */
export const operatorLooks = aScenario({
  weight: 2,
  choice: fc.record({
    studio,
    lead: recent,
    at: fc.constantFrom(
      ...['studio', 'studio', 'studios', 'keys', 'keys', 'leads', 'sources', 'audit', 'audit of a lead'],
    ),
  }),
  async run(sim, { studio, lead, at }) {
    const known = studioAt(sim, studio);
    const { id, leadIds } = known;
    const look = <T>(...words: readonly string[]) => type(sim, { words, endsAfterMs: 0 }, (answer) => answer as T);
    const begin = now();
    const keysBefore = known.keys.map(({ apiKeyId }) => apiKeyId);
    switch (at) {
      case 'studio': {
        const outcome = await look<{ status: string; regionCode: string | null }>('studios', 'get', id);
        if (!('answer' in outcome)) return;
        const { status, regionCode } = outcome.answer;
        const shown = { kind: 'registerRead', party: 'operator', span: { begin, end: now() } } as const;
        sim.history.add({ ...shown, what: `status of ${id}`, value: status });
        sim.history.add({ ...shown, what: `region of ${id}`, value: regionCode ?? 'none' });
        return;
      }
      case 'keys': {
        const outcome = await look<readonly Record<string, unknown>[]>('keys', 'list', id, '--member', 'owner');
        if (!('answer' in outcome)) return;
        const listed = outcome.answer.map(({ id }) => id);
        const lacks = keysBefore.filter((keyId) => !listed.includes(keyId));
        if (lacks.length > 0) sim.history.fail(`the keys of ${id} are listed without ${lacks.join(', ')}`);
        if (outcome.answer.some((key) => 'secret' in key || 'secretSha256' in key))
          sim.history.fail(`the keys of ${id} are listed with their secrets`);
        return;
      }
      case 'studios': {
        const outcome = await look<readonly { id: string }[]>('studios', 'list');
        const listed = 'answer' in outcome ? outcome.answer.map(({ id }) => id) : [id];
        if (!listed.includes(id)) sim.history.fail(`studios are listed without ${id}`);
        return;
      }
      default: {
        const words: Readonly<Record<string, readonly string[]>> = {
          leads: ['leads', 'list', '--studio', id],
          sources: ['sources', 'list', id],
          audit: ['audit', id],
          'audit of a lead': ['audit', id, '--lead', newest(leadIds, lead) ?? sim.uuid('unknown lead')],
        };
        await look(...(words[at] ?? [at]));
      }
    }
  },
});
