import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { MemberRole, StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { DAY_MS } from '../../support/builders.ts';
import { BOTH_SCOPES } from '../../support/core-clients.ts';
import { ownContact, type Region } from '../contacts.ts';
import type { RestAnswer, SentLead } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { definiteAnswer, definiteOutcome } from './definite-outcomes.ts';

/** A studio that only one scenario uses, so that its state is known at each moment. */
export interface SeparateStudio {
  readonly id: string;
  readonly sourceId: string;
  readonly secret: string;
  readonly apiKeyId: string;
}

const counts = new WeakMap<Simulation, number>();

/** Creates such a studio through the CRM, with an owner, a source and a key. */
export async function makeSeparateStudio(sim: Simulation, region: Region = 'DE'): Promise<SeparateStudio> {
  const count = (counts.get(sim) ?? 0) + 1;
  counts.set(sim, count);
  const id = `studio-${sim.name}-apart-${count}`;
  const sourceId = sim.uuid('source', id);
  const { directory } = sim.crmAt(count);
  const regionCode = region === 'none' ? {} : { regionCode: region };
  const studio = { id, status: StudioStatus.ACTIVE, ...regionCode };
  await definiteOutcome(sim, `${id} is made`, () => directory.putStudio({ studio }, CRM_TIMEOUT));
  await putOwner(sim, id);
  await putSource(sim, id, sourceId);
  const { apiKeyId, secret } = await makeKey(sim, id);
  return { id, sourceId, secret, apiKeyId };
}

export const putOwner = (sim: Simulation, studioId: string) =>
  definiteOutcome(sim, `the owner of ${studioId} is put`, () =>
    sim.crmAt(0).directory.putMember({ member: { studioId, id: 'owner', role: MemberRole.OWNER } }, CRM_TIMEOUT),
  );

export const putSource = (sim: Simulation, studioId: string, id: string) =>
  definiteOutcome(sim, `the source of ${studioId} is put`, () =>
    sim.crmAt(0).directory.putLeadSource({ leadSource: { studioId, id, name: 'Form', enabled: true } }, CRM_TIMEOUT),
  );

/** The outcome of creating a key, perhaps in several attempts. */
export interface MadeKey {
  readonly apiKeyId: string;
  readonly secret: string;
  /** The reason of the refusal; undefined if a key was created. */
  readonly refused: string | undefined;
  /** Whether a key may exist whose response was lost. */
  readonly isUnsure: boolean;
}

export async function makeKey(sim: Simulation, studioId: string, scopes = BOTH_SCOPES): Promise<MadeKey> {
  let isUnsure = false;
  const request = { studioId, memberId: 'owner', name: 'Website', scopes: [...scopes] };
  const outcome = await definiteOutcome(
    sim,
    `a key of ${studioId} is made`,
    () => {
      const expireTime = timestampFromMs(Date.now() + 30 * DAY_MS);
      return sim.crmAt(0).apiKeys.createApiKey({ ...request, expireTime }, CRM_TIMEOUT);
    },
    () => {
      isUnsure = true;
    },
  );
  if ('refused' in outcome) return { apiKeyId: '', secret: '', refused: outcome.refused, isUnsure };
  const { apiKey, secret } = outcome.answer;
  // No process may print the secret.
  sim.keyBySecret.set(secret, apiKey?.id ?? '');
  return { apiKeyId: apiKey?.id ?? '', secret, refused: undefined, isUnsure };
}

/** Returns the lead that a website server sends: the same for the same name. */
export function separateLead(sim: Simulation, studioId: string, name: string, contact?: SentLead['contact']): SentLead {
  const idempotencyKey = sim.uuid('key', studioId, name);
  return {
    idempotencyKey,
    displayName: `Ada ${sim.personal}`,
    contact: contact ?? ownContact(sim.personal, idempotencyKey),
    note: `${idempotencyKey} ${sim.personal}`,
  };
}

export const createSeparateLead = (sim: Simulation, { secret }: SeparateStudio, lead: SentLead): Promise<RestAnswer> =>
  definiteAnswer(sim, secret, { name: 'create', lead });

/** Returns the id of the lead in a response. */
export const leadIdIn = ({ text }: RestAnswer): string => JSON.parse(text).lead?.id;

/** Returns a response in short: its status and code. */
export const inShort = ({ status, code }: RestAnswer): string => (code ? `${status} ${code}` : `${status}`);
