import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ConnectError } from '@connectrpc/connect';
import fc from 'fast-check';
import { ErrorInfoSchema } from '../../../proto/gen/google/rpc/error_details_pb.ts';
import { ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import { MemberRole, StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { type Lead, LeadStage, LeadView } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { LEAD_STAGES, type LeadStage as Stage } from '../../../src/domain/lead.ts';
import { DAY_MS } from '../../support/builders.ts';
import type { CoreClients } from '../../support/core-clients.ts';
import { REGIONS } from '../contacts.ts';
import { now } from '../history.ts';
import { CRM_WAITS_MS, type KnownKey, type KnownStudio, type Life } from '../life.ts';
import { keyOf, mostlyFirst, newest, one, recent, studio, studioAt } from './choices.ts';
import { aHappening } from './happening.ts';

const WAITS = { timeoutMs: CRM_WAITS_MS };

const core = fc.nat(1);
const crmAt = (life: Life, index: number): CoreClients => one(life.crm, index);

/** What came of a call: its answer; why it was refused, and changed nothing; or nothing is known. */
export type CallOutcome<T> =
  | { readonly answer: T }
  | { readonly refused: string; readonly leadId: string | undefined }
  | { readonly unknown: string };

export async function outcomeOf<T>(call: Promise<T>): Promise<CallOutcome<T>> {
  try {
    return { answer: await call };
  } catch (error) {
    const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema);
    if (info?.domain !== 'leadintake') return { unknown: String(error) };
    return { refused: info.reason, leadId: info.metadata.leadId };
  }
}

/** Has something be what it is put to, and notes that. */
async function put(life: Life, what: string, value: string, call: Promise<unknown>): Promise<void> {
  const begin = now();
  const outcome = await outcomeOf(call);
  if ('refused' in outcome) {
    const told = `${what} is not put to ${value}: ${outcome.refused}`;
    life.history.add({ kind: 'other', party: 'CRM', what: told, span: { begin, end: now() } });
  } else life.put(what, value, begin, 'answer' in outcome);
}

const STAGE_NUMBERS: Readonly<Record<Stage, LeadStage>> = {
  new: LeadStage.NEW,
  contacted: LeadStage.CONTACTED,
  trial_booked: LeadStage.TRIAL_BOOKED,
  trial_attended: LeadStage.TRIAL_ATTENDED,
  won: LeadStage.WON,
  lost: LeadStage.LOST,
};

export const stageOf = ({ stage }: Lead): Stage =>
  Object.entries(STAGE_NUMBERS).find(([, number]) => number === stage)?.[0] as Stage;

/** The CRM moves a lead. */
export const move = aHappening({
  weight: 14,
  choice: fc.record({
    studio,
    lead: recent,
    stage: fc.oneof(fc.constantFrom(...LEAD_STAGES), fc.constantFrom('won', 'won', 'new')),
    core,
  }),
  async happen(life, { studio, lead, stage, core }) {
    const { id: studioId, leadIds } = studioAt(life, studio);
    const leadId = newest(leadIds, lead);
    if (leadId === undefined) return;
    const begin = now();
    const request = { studioId, leadId, stage: STAGE_NUMBERS[stage as Stage] };
    const outcome = await outcomeOf(crmAt(life, core).leads.changeLeadStage(request, WAITS));
    life.history.add({
      kind: 'move',
      party: 'CRM',
      studioId,
      leadId,
      stage: stage as Stage,
      outcome:
        'answer' in outcome
          ? { told: 'moved' }
          : 'refused' in outcome
            ? { told: 'refused', reason: outcome.refused, leadId: outcome.leadId }
            : { told: 'nothing' },
      span: { begin, end: 'unknown' in outcome ? Number.POSITIVE_INFINITY : now() },
    });
  },
});

/** The CRM looks at the newest leads of a studio. */
export const look = aHappening({
  weight: 4,
  choice: fc.record({ studio, core }),
  async happen(life, { studio, core }) {
    await lookAtLeads(life, studioAt(life, studio), crmAt(life, core), 1).catch(() => {});
  },
});

/** Reads a studio's leads as the CRM does, and notes how each stands. */
export async function lookAtLeads(life: Life, { id: studioId }: KnownStudio, { leads }: CoreClients, pages: number) {
  const found: Lead[] = [];
  let pageToken = '';
  for (let page = 0; page < pages; page += 1) {
    const begin = now();
    const answer = await leads.listLeads({ studioId, pageSize: 100, pageToken, view: LeadView.FULL }, WAITS);
    const span = { begin, end: now() };
    for (const lead of answer.leads) {
      life.history.add({ kind: 'seen', party: 'CRM', studioId, leadId: lead.id, stage: stageOf(lead), span });
    }
    found.push(...answer.leads);
    pageToken = answer.nextPageToken;
    if (pageToken === '') break;
  }
  return found;
}

/** A studio is suspended, or served again. */
export const suspend = aHappening({
  weight: 2,
  choice: fc.record({ studio, status: fc.constantFrom('suspended', 'active', 'active'), core }),
  async happen(life, { studio, status, core }) {
    const { id } = studioAt(life, studio);
    const number = status === 'active' ? StudioStatus.ACTIVE : StudioStatus.SUSPENDED;
    const request = { studio: { id, status: number }, updateMask: { paths: ['status'] } };
    await put(life, `status of ${id}`, status, crmAt(life, core).directory.putStudio(request, WAITS));
  },
});

/** A studio gets another region. */
export const moveStudio = aHappening({
  weight: 2,
  choice: fc.record({ studio, region: fc.constantFrom(...REGIONS), core }),
  async happen(life, { studio, region, core }) {
    const { id } = studioAt(life, studio);
    const regionCode = region === 'none' ? {} : { regionCode: region };
    const request = { studio: { id, status: StudioStatus.UNSPECIFIED, ...regionCode } };
    const call = crmAt(life, core).directory.putStudio({ ...request, updateMask: { paths: ['region_code'] } }, WAITS);
    await put(life, `region of ${id}`, region, call);
  },
});

const ROLES = { owner: MemberRole.OWNER, admin: MemberRole.ADMIN, staff: MemberRole.STAFF } as const;

/** Somebody gets another role, or leaves. */
export const changeRole = aHappening({
  weight: 2,
  choice: fc.record({
    studio,
    member: fc.nat(1),
    role: fc.constantFrom('owner', 'owner', 'admin', 'staff', 'gone'),
    core,
  }),
  async happen(life, { studio, member, role, core }) {
    const { id: studioId, memberIds } = studioAt(life, studio);
    const id = one(memberIds, member);
    const { directory } = crmAt(life, core);
    const call =
      role === 'gone'
        ? directory.removeMember({ studioId, memberId: id }, WAITS)
        : directory.putMember({ member: { studioId, id, role: ROLES[role as keyof typeof ROLES] } }, WAITS);
    await put(life, `role of ${id} in ${studioId}`, role, call);
  },
});

/** A source is switched off, on, or removed. */
export const changeSource = aHappening({
  weight: 2,
  choice: fc.record({
    studio,
    source: fc.nat(1),
    state: fc.constantFrom('enabled', 'enabled', 'disabled', 'gone'),
    core,
  }),
  async happen(life, { studio, source, state, core }) {
    const { id: studioId, sourceIds } = studioAt(life, studio);
    const id = one(sourceIds, source);
    const { directory } = crmAt(life, core);
    const call =
      state === 'gone'
        ? directory.removeLeadSource({ studioId, leadSourceId: id }, WAITS)
        : directory.putLeadSource({ leadSource: { studioId, id, name: 'Form', enabled: state === 'enabled' } }, WAITS);
    await put(life, `source ${id} of ${studioId}`, state, call);
  },
});

/** A key is made. */
export const makeKey = aHappening({
  weight: 1,
  choice: fc.record({ studio, member: fc.nat(1), scopes: fc.constantFrom('both', 'both', 'read', 'create'), core }),
  async happen(life, { studio, member, scopes, core }) {
    const known = studioAt(life, studio);
    const { id: studioId, memberIds } = known;
    const [mayRead, mayCreate] = [scopes !== 'create', scopes !== 'read'];
    const memberId = one(memberIds, member);
    const request = {
      studioId,
      memberId,
      name: 'Website',
      scopes: [...(mayRead ? [ApiKeyScope.LEADS_READ] : []), ...(mayCreate ? [ApiKeyScope.LEADS_CREATE] : [])],
      expireTime: timestampFromMs(Date.now() + 30 * DAY_MS),
    };
    const outcome = await outcomeOf(crmAt(life, core).apiKeys.createApiKey(request, WAITS));
    if (!('answer' in outcome)) return;
    const { apiKey, secret } = outcome.answer;
    life.knowKey(known, { apiKeyId: apiKey?.id ?? '', secret, mayRead, mayCreate, mayDie: false }, memberId);
  },
});

/** A key gets another secret: the former one is dead as soon as that is told. */
export const replaceKey = aHappening({
  weight: 2,
  choice: fc.record({ studio, key: mostlyFirst(3), member: mostlyFirst(2), core }),
  async happen(life, { studio, key, member, core }) {
    const known = studioAt(life, studio);
    const { id: studioId, memberIds } = known;
    const target = keyOf(known, key);
    const { apiKeyId } = target;
    const memberId = one(memberIds, member);
    await life.inTurn(`key ${apiKeyId}`, async () => {
      const begin = now();
      const request = { studioId, memberId, apiKeyId };
      const outcome = await outcomeOf(crmAt(life, core).apiKeys.replaceApiKey(request, WAITS));
      if ('refused' in outcome) return;
      dies(life, target, 'answer' in outcome, begin);
      life.put(`issuer of ${apiKeyId}`, memberId, begin, 'answer' in outcome);
      if (!('answer' in outcome)) return;
      target.secret = outcome.answer.secret;
      life.knowSecret(target, begin);
      // What became of an earlier call is not known: it may still come, and end this secret, too.
      if (target.mayDie) dies(life, target, false, begin);
    });
  },
});

/** A key is revoked. The first of a studio stays. */
export const revokeKey = aHappening({
  weight: 1,
  choice: fc.record({ studio, key: mostlyFirst(3), core }),
  async happen(life, { studio, key, core }) {
    const known = studioAt(life, studio);
    const target = keyOf(known, key);
    if (known.keys.indexOf(target) === 0) return;
    const { apiKeyId } = target;
    await life.inTurn(`key ${apiKeyId}`, async () => {
      const begin = now();
      const request = { studioId: known.id, memberId: 'owner', apiKeyId };
      const outcome = await outcomeOf(crmAt(life, core).apiKeys.revokeApiKey(request, WAITS));
      if (!('refused' in outcome)) dies(life, target, 'answer' in outcome, begin);
    });
  },
});

/** Notes that what opens a key does so no more, or perhaps not. */
function dies(life: Life, key: KnownKey, isDone: boolean, begin: number): void {
  life.put(`secret ${key.secret}`, 'dead', begin, isDone);
  key.mayDie ||= !isDone;
}
