import { timestampDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ConnectError } from '@connectrpc/connect';
import fc from 'fast-check';
import { ErrorInfoSchema } from '../../../proto/gen/google/rpc/error_details_pb.ts';
import { type ApiKey, ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import { MemberRole, StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { type Lead, LeadStage, LeadView } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { LEAD_STAGES, type LeadStage as Stage } from '../../../src/domain/lead.ts';
import { DAY_MS, times } from '../../support/builders.ts';
import type { CoreClients } from '../../support/core-clients.ts';
import { inCall, ownContact, REGIONS, type Region, SHARED_CONTACTS, sharedContact } from '../contacts.ts';
import { type EventOf, now, type Outcome, type SentLead } from '../history.ts';
import { CRM_TIMEOUT, type KnownKey, type KnownStudio, type Simulation, STUDIOS } from '../simulation.ts';
import { chooseKey, lasting, mostlyFirst, newest, one, recent, studio, studioAt } from './choices.ts';
import { aScenario } from './scenario.ts';

// Requests that a call of the CRM or a command of an operator can make. Each is described once, and recorded in the same way.

/** How long a command takes at most, whatever fails in the database; milliseconds. */
const ENDS_WITHIN_MS = 30_000;

/** The maximum number of live keys of a studio, and a number beyond it. */
const MAX_KEYS = 20;
const MANY_KEYS = 24;

/** Who makes a request: the CRM, at one of the cores, or an operator, whose command is killed after some time; 0: never. */
const by = fc.record({
  core: fc.nat(1),
  isCommand: fc.constantFrom(false, false, false, false, false, true),
  killedAfterMs: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: lasting(100, 1500) }),
});

type By = typeof by extends fc.Arbitrary<infer Choice> ? Choice : never;
export const CRM: By = { core: 0, isCommand: false, killedAfterMs: 0 };

/** A request that the CRM can make, and perhaps an operator. */
interface Asked<Answer> {
  call(core: CoreClients): Promise<Answer>;
  /** The words of the command; undefined if only the CRM can make the request. */
  readonly words?: readonly string[];
  /** Extracts the answer from the output of the command. */
  readonly read?: (printed: never) => Answer;
}

/** Makes a request once, and returns its outcome, who made it, and when it began. */
async function ask<Answer>(sim: Simulation, { core, isCommand, killedAfterMs }: By, asked: Asked<Answer>) {
  const begin = now();
  const { words, read } = asked;
  const outcome: Outcome<Answer> =
    isCommand && words ? await enter(sim, words, killedAfterMs, read) : await findOutcome(asked.call(sim.crmAt(core)));
  const party = isCommand && words ? 'operator' : 'CRM';
  return { outcome, done: { party, begin, isDone: 'answer' in outcome } };
}

type Done = Awaited<ReturnType<typeof ask>>['done'];

export async function findOutcome<Answer>(call: Promise<Answer>): Promise<Outcome<Answer>> {
  try {
    return { answer: await call };
  } catch (error) {
    const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema);
    if (info?.domain !== 'leadintake') return { unknown: String(error) };
    return { refused: info.reason, leadId: info.metadata.leadId };
  }
}

/** Runs a command, and checks that it ends with status 0 and an answer, or with status 1 and a reason. */
async function enter<Answer>(
  sim: Simulation,
  words: readonly string[],
  killedAfterMs: number,
  read: (printed: never) => Answer = () => undefined as Answer,
): Promise<Outcome<Answer>> {
  const { stdout, stderr, status, wasKilled } = await command(sim, words, killedAfterMs);
  if (status === 0) return { answer: read(JSON.parse(stdout) as never) };
  const [, refused] = /^([A-Z]+(?:_[A-Z]+)+): /m.exec(stderr) ?? [];
  if (status === 1 && refused) return { refused, leadId: undefined };
  if (status !== 1 && !wasKilled) sim.history.fail(`${words.join(' ')} ends with ${status} ${stderr}`);
  return { unknown: `${status} ${stderr}` };
}

/** Runs a command, records it, and checks its output. Without a disturbance it may fail only with a reason. */
export async function command(sim: Simulation, words: readonly string[], killedAfterMs = 0) {
  const begin = now();
  const end = await sim.world.commandLine.run(['--json', ...words], killedAfterMs || ENDS_WITHIN_MS);
  const { status, stdout, stderr } = end;
  // The folder of a file has a random name.
  const what = `lead-intake ${words
    .slice(0, 6)
    .map((word) => word.replace(/^\/.*\//, ''))
    .join(' ')}`;
  sim.history.note('operator', `${what}: ${status} ${stderr}`, begin);
  if (/^\s+at .*[:/]/m.test(stderr)) sim.history.fail(`${what} crashes: ${stderr}`);
  for (const text of [...sim.keyBySecret.keys(), sim.world.coreToken, sim.personal])
    if (stderr.includes(text)) sim.history.fail(`${what} prints a secret: ${stderr}`);
  const wasKilled = status === 'SIGKILL' && (killedAfterMs > 0 || sim.isDisturbedSince(begin));
  const isReason = /^[A-Z]+(?:_[A-Z]+)+: /m.test(stderr) || stdout !== '';
  if (status !== 0 && !wasKilled && !isReason && !sim.isDisturbedSince(begin))
    sim.history.fail(`${what} fails without a disturbance: ${status} ${stderr}`);
  return { ...end, wasKilled };
}

const ROLES: Readonly<Record<string, MemberRole>> = {
  owner: MemberRole.OWNER,
  admin: MemberRole.ADMIN,
  staff: MemberRole.STAFF,
};

/** Chooses a record of a studio, and a value to put into it. */
const putting = fc.oneof(
  ...(
    [
      ['status', ['suspended', 'active', 'active']],
      ['region', REGIONS],
      // More requests than a life has.
      ['quota', ['500000', '600000']],
      ['keeping', ['kept', 'kept', 'not kept']],
      // No such period erases a lead within a life, whatever the clocks show.
      ['retention', ['30', '3650', 'none']],
      ['role', ['owner', 'owner', 'admin', 'staff', 'gone']],
      ['source', ['enabled', 'enabled', 'disabled', 'gone']],
    ] as const
  ).map(([what, values]) => fc.record({ what: fc.constant(what), value: fc.constantFrom<string>(...values) })),
);

/** Returns the register of a studio's record, and the request that puts a value into it. */
function makePut({ id, memberIds, sourceIds }: KnownStudio, what: string, value: string, which: number) {
  const [memberId, sourceId] = [one(memberIds, which), one(sourceIds, which)];
  const isGone = value === 'gone';
  const studio = (field: string, path: string, fields: object) => ({
    register: `${field} of ${id}`,
    words: ['studios', 'put', id, `--${field}`, value],
    call: ({ directory }: CoreClients): Promise<unknown> =>
      directory.putStudio({ studio: { id, ...fields }, updateMask: { paths: [path] } }, CRM_TIMEOUT),
  });
  if (what === 'status')
    return studio(what, what, { status: value === 'active' ? StudioStatus.ACTIVE : StudioStatus.SUSPENDED });
  if (what === 'region') return studio(what, 'region_code', value === 'none' ? {} : { regionCode: value });
  if (what === 'quota') return studio(what, 'quota_limit', { quotaLimit: Number(value) });
  if (what === 'retention')
    return studio(what, 'retention_days', value === 'none' ? {} : { retentionDays: Number(value) });
  if (what === 'keeping') {
    const keepEnquiries = value === 'kept';
    const { call } = studio(what, 'keep_enquiries', { keepEnquiries });
    const words = ['studios', 'put', id, '--keep-enquiries', keepEnquiries ? 'yes' : 'no'];
    return { register: `keeping of ${id}`, words, call };
  }
  if (what === 'role')
    return {
      register: `role of ${memberId} in ${id}`,
      words: ['members', ...(isGone ? ['remove', id, memberId] : ['put', id, memberId, '--role', value])],
      call: ({ directory }: CoreClients): Promise<unknown> =>
        isGone
          ? directory.removeMember({ studioId: id, memberId }, CRM_TIMEOUT)
          : directory.putMember(
              { member: { studioId: id, id: memberId, role: ROLES[value] as MemberRole } },
              CRM_TIMEOUT,
            ),
    };
  const more = ['--name', 'Form', ...(value === 'disabled' ? ['--disabled'] : [])];
  const leadSource = { studioId: id, id: sourceId, name: 'Form', enabled: value === 'enabled' };
  return {
    register: `source ${sourceId} of ${id}`,
    words: ['sources', ...(isGone ? ['remove', id, sourceId] : ['put', id, sourceId, ...more])],
    call: ({ directory }: CoreClients): Promise<unknown> =>
      isGone
        ? directory.removeLeadSource({ studioId: id, leadSourceId: sourceId }, CRM_TIMEOUT)
        : directory.putLeadSource({ leadSource }, CRM_TIMEOUT),
  };
}

/** Changes a setting of a studio, the role of a member, or a source. Members and sources may also be removed. */
export const putRecord = aScenario({
  weight: 11,
  choice: fc.record({ studio, putting, which: fc.nat(1), by }),
  async run(sim, { studio, putting: { what, value }, which, by }) {
    const { register, ...asked } = makePut(studioAt(sim, studio), what, value, which);
    const { outcome, done } = await ask(sim, by, asked);
    if (!('refused' in outcome)) sim.put(register, value, done);
    else sim.history.note(done.party, `${register} cannot be set to ${value}: ${outcome.refused}`, done.begin);
  },
});

/** Returns the id and the secret of a key that was created or replaced. */
const toIssued = ({ apiKey, secret }: { readonly apiKey?: ApiKey | undefined; readonly secret: string }) => ({
  apiKeyId: apiKey?.id ?? '',
  secret,
});
const toIssuedByCommand = ({ id, secret }: { readonly id: string; readonly secret: string }) => ({
  apiKeyId: id,
  secret,
});

async function createKey(sim: Simulation, studio: KnownStudio, memberId: string, scopes: string, by: By) {
  const { id: studioId } = studio;
  const [mayRead, mayCreate] = [scopes !== 'leads.create', scopes !== 'leads.read'];
  const numbers = [...(mayRead ? [ApiKeyScope.LEADS_READ] : []), ...(mayCreate ? [ApiKeyScope.LEADS_CREATE] : [])];
  const expireTime = timestampFromMs(Date.now() + 30 * DAY_MS);
  const request = { studioId, memberId, name: 'Website', scopes: numbers, expireTime };
  const more = scopes === 'both' ? [] : ['--scope', scopes];
  const { outcome, done } = await ask(sim, by, {
    call: ({ apiKeys }) => apiKeys.createApiKey(request, CRM_TIMEOUT).then(toIssued),
    words: ['keys', 'create', studioId, '--name', 'Website', '--days', '30', ...more, '--member', memberId],
    read: toIssuedByCommand,
  });
  // If the response was lost, nobody knows the key.
  if ('answer' in outcome)
    sim.addKey(studio, { ...outcome.answer, mayRead, mayCreate, mayBecomeInvalid: false }, memberId, done);
}

/** Creates a key, replaces its secret, or revokes it. Does not revoke the only key of a studio. */
export const changeKey = aScenario({
  weight: 5,
  choice: fc.record({
    studio,
    action: fc.constantFrom('create', 'create', 'replaced', 'replaced', 'revoked', 'revoked'),
    key: mostlyFirst(3),
    member: mostlyFirst(2),
    scopes: fc.constantFrom('both', 'both', 'leads.read', 'leads.create'),
    by,
  }),
  async run(sim, { studio, action, key: index, member, scopes, by }) {
    const known = studioAt(sim, studio);
    const { id: studioId, memberIds, keys } = known;
    const [key, memberId] = [chooseKey(known, index), one(memberIds, member)];
    if (action === 'create') await createKey(sim, known, memberId, scopes, by);
    else if (action === 'replaced' || keys.length > 1)
      await sim.inTurn(`key ${key.apiKeyId}`, () => endSecret(sim, key, { studioId, memberId, action }, by));
  },
});

/** Replaces the secret of a key, or revokes the key. The former secret is invalid as soon as that is acknowledged. */
async function endSecret(
  sim: Simulation,
  key: KnownKey,
  { studioId, memberId, action }: { readonly studioId: string; readonly memberId: string; readonly action: string },
  by: By,
): Promise<void> {
  const { apiKeyId } = key;
  const request = { studioId, memberId, apiKeyId };
  const isReplaced = action === 'replaced';
  const { outcome, done } = await ask<{ apiKeyId: string; secret: string } | undefined>(sim, by, {
    call: ({ apiKeys }) =>
      isReplaced
        ? apiKeys.replaceApiKey(request, CRM_TIMEOUT).then(toIssued)
        : apiKeys.revokeApiKey(request, CRM_TIMEOUT).then(() => undefined),
    words: ['keys', isReplaced ? 'replace' : 'revoke', studioId, apiKeyId, '--member', memberId],
    read: toIssuedByCommand,
  });
  if ('refused' in outcome) return;
  const { party, begin, isDone } = done;
  const span = { begin, end: isDone ? now() : Number.POSITIVE_INFINITY };
  const kind = action as EventOf<'keyAction'>['action'];
  sim.history.add({ kind: 'keyAction', party, ...request, action: kind, isDone, span });
  noteInvalid(sim, key, done);
  if (!isReplaced) return;
  sim.put(`issuer of ${apiKeyId}`, memberId, done);
  if (!('answer' in outcome)) return;
  key.secret = outcome.answer?.secret ?? '';
  sim.addSecret(key, done);
  // An earlier call with an unknown outcome may still be executed, and end this secret, too.
  if (key.mayBecomeInvalid) noteInvalid(sim, key, { ...done, isDone: false });
}

/** Records that the secret of a key is invalid, or may be. */
function noteInvalid(sim: Simulation, key: KnownKey, done: Done): void {
  sim.put(`secret ${key.secret}`, 'invalid', done);
  key.mayBecomeInvalid ||= !done.isDone;
}

/** Requests more keys concurrently, from all cores, than a studio may have. */
export const hoardKeys = aScenario({
  weight: 1,
  choice: fc.record({ by }),
  async run(sim, { by }) {
    // From now on this studio, which is rarely used, has no room for another key.
    const studio = studioAt(sim, STUDIOS - 2);
    await Promise.all(
      times(MANY_KEYS, (core) => createKey(sim, studio, 'owner', 'both', { ...by, core, isCommand: false })),
    );
    const owner = { studioId: studio.id, memberId: 'owner' };
    const listed = await findOutcome(sim.crmAt(by.core).apiKeys.listApiKeys(owner, CRM_TIMEOUT));
    if (!('answer' in listed)) return;
    const living = listed.answer.apiKeys.filter(({ revokeTime }) => revokeTime === undefined);
    if (living.length > MAX_KEYS)
      sim.history.fail(`${studio.id} has ${living.length} keys where it may have ${MAX_KEYS}`);
  },
});

const STAGE_NUMBERS: Readonly<Record<Stage, LeadStage>> = {
  new: LeadStage.NEW,
  contacted: LeadStage.CONTACTED,
  trial_booked: LeadStage.TRIAL_BOOKED,
  trial_attended: LeadStage.TRIAL_ATTENDED,
  won: LeadStage.WON,
  lost: LeadStage.LOST,
};

export const toStage = ({ stage }: Lead): Stage =>
  Object.entries(STAGE_NUMBERS).find(([, number]) => number === stage)?.[0] as Stage;

/** Returns the contact of a lead as the core stores it. */
export const toContact = ({ contact }: Lead): SentLead['contact'] => ({
  type: contact?.value.case ?? 'email',
  value: contact?.value.value ?? '',
});

/** Choices of changes: of the stage of a lead, or of its contact, to a shared one or one of its own. */
const move = fc.record({ stage: fc.constantFrom(...LEAD_STAGES, 'won', 'won', 'new'), by });
const correction = fc.record({ contact: fc.nat(SHARED_CONTACTS + 5), by });
const change = fc.oneof({ weight: 2, arbitrary: move }, { weight: 1, arbitrary: correction });
const changes = fc.oneof(
  { weight: 3, arbitrary: fc.array(change, { minLength: 1, maxLength: 2 }) },
  // A reopening could overlook a concurrent correction.
  { weight: 1, arbitrary: fc.tuple(correction, move) },
);

/** Moves or corrects a lead, sometimes with two concurrent changes. */
export const changeLead = aScenario({
  weight: 16,
  choice: fc.record({ studio, lead: recent, changes }),
  async run(sim, { studio, lead, changes }) {
    const { id: studioId, leadIds } = studioAt(sim, studio);
    const leadId = newest(leadIds, lead);
    if (leadId === undefined) return;
    await Promise.all(
      changes.map(async ({ by, ...what }) => {
        const changed =
          'stage' in what ? { stage: what.stage as Stage } : { contact: makeCorrection(sim, leadId, what.contact) };
        const { outcome, done } = await ask(sim, by, makeChange(sim, studioId, leadId, changed));
        const { party, begin } = done;
        const span = { begin, end: 'unknown' in outcome ? Number.POSITIVE_INFINITY : now() };
        sim.history.add({ kind: 'change', party, studioId, leadId, ...changed, outcome, span });
      }),
    );
  },
});

const makeCorrection = ({ personal }: Simulation, leadId: string, index: number): SentLead['contact'] =>
  index < SHARED_CONTACTS ? sharedContact(personal, index) : ownContact(personal, `${index}-${leadId}`);

function makeChange(
  sim: Simulation,
  studioId: string,
  leadId: string,
  { stage, contact }: { readonly stage?: Stage; readonly contact?: SentLead['contact'] },
): Asked<unknown> {
  if (stage)
    return {
      words: ['leads', 'stage', studioId, leadId, stage],
      call: ({ leads }) => leads.changeLeadStage({ studioId, leadId, stage: STAGE_NUMBERS[stage] }, CRM_TIMEOUT),
    };
  // Changes the name, too: replays still have the original one.
  const corrected = inCall(contact ?? { type: 'email', value: '' });
  const lead = { id: leadId, displayName: `Eda ${sim.personal}`, contact: corrected };
  return { call: ({ leads }) => leads.updateLead({ studioId, lead }, CRM_TIMEOUT) };
}

/** Lists leads of a studio through a core, and records the state of each. @throws ConnectError */
export async function lookAtLeads(
  sim: Simulation,
  { id: studioId }: Pick<KnownStudio, 'id'>,
  { leads }: CoreClients,
  pages: number,
) {
  const found: Lead[] = [];
  let pageToken = '';
  for (let page = 0; page < pages; page += 1) {
    const begin = now();
    const answer = await leads.listLeads({ studioId, pageSize: 100, pageToken, view: LeadView.FULL }, CRM_TIMEOUT);
    for (const lead of answer.leads) noteRead(sim, studioId, lead, begin);
    found.push(...answer.leads);
    pageToken = answer.nextPageToken;
    if (pageToken === '') break;
  }
  return found;
}

function noteRead({ history }: Simulation, studioId: string, lead: Lead, begin: number): void {
  const [stage, contact, span] = [toStage(lead), toContact(lead), { begin, end: now() }];
  const [createdAt = '', updatedAt = ''] = [lead.createTime, lead.updateTime].map(
    (time) => time && timestampDate(time).toISOString(),
  );
  const read = { studioId, leadId: lead.id, stage, contact, createdAt, updatedAt };
  history.add({ kind: 'leadRead', party: 'CRM', ...read, span });
}

/** Lists the newest leads of a studio as the CRM, or finds those of a contact. */
export const lookAtStudio = aScenario({
  weight: 5,
  choice: fc.record({ studio, contact: fc.option(fc.nat(SHARED_CONTACTS - 1)), by }),
  async run(sim, { studio, contact: index, by }) {
    const known = studioAt(sim, studio);
    const core = sim.crmAt(by.core);
    if (index === null) {
      await lookAtLeads(sim, known, core, 1).catch(() => {});
      return;
    }
    const [studioId, contact, begin] = [known.id, sharedContact(sim.personal, index), now()];
    const wanted = inCall(contact);
    const found = await findOutcome(core.leads.findLeads({ studioId, contact: wanted, pageSize: 100 }, CRM_TIMEOUT));
    if (!('answer' in found)) return;
    const { leads, nextPageToken } = found.answer;
    const isWhole = nextPageToken === '';
    const [leadIds, span] = [leads.map(({ id }) => id), { begin, end: now() }];
    const before = sim.listPuts(`region of ${studioId}`).filter(({ isDone, span }) => isDone && span.end < begin);
    const regions = before.map(({ value }) => value as Region);
    sim.history.add({ kind: 'found', party: 'CRM', studioId, contact, regions, leadIds, isWhole, span });
  },
});

/** Reads a studio, or its keys, leads, sources or audit log, as an operator. */
export const operatorLooks = aScenario({
  weight: 1,
  choice: fc.record({ studio, lead: recent, at: fc.constantFrom('studio', 'keys', 'leads', 'sources', 'audit') }),
  async run(sim, { studio, lead, at }) {
    const { id, keys, leadIds } = studioAt(sim, studio);
    const leadId = newest(leadIds, lead) ?? sim.uuid('unknown lead');
    const [begin, before] = [now(), keys.map(({ apiKeyId }) => apiKeyId)];
    const words: Readonly<Record<string, readonly string[]>> = {
      studio: ['studios', 'get', id],
      keys: ['keys', 'list', id, '--member', 'owner'],
      leads: ['leads', 'list', id],
      sources: ['sources', 'list', id],
      audit: ['audit', id, '--lead', leadId],
    };
    const outcome = await enter(sim, words[at] ?? [], 0, (printed: unknown) => printed);
    if (!('answer' in outcome)) return;
    if (at === 'studio') {
      const { status, regionCode } = outcome.answer as { status: string; regionCode: string | null };
      const read = { kind: 'registerRead', party: 'operator', span: { begin, end: now() } } as const;
      sim.history.add({ ...read, what: `status of ${id}`, value: status });
      sim.history.add({ ...read, what: `region of ${id}`, value: regionCode ?? 'none' });
    }
    if (at === 'keys') {
      const listed = JSON.stringify(outcome.answer);
      const lacks = before.filter((apiKeyId) => !listed.includes(apiKeyId));
      if (lacks.length > 0) sim.history.fail(`the keys of ${id} are listed without ${lacks.join(', ')}`);
      if (listed.includes('secretSha256') || keys.some(({ secret }) => listed.includes(secret)))
        sim.history.fail(`the keys of ${id} are listed with their secrets`);
    }
  },
});
