import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { MemberRole, StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { DAY_MS } from '../../support/builders.ts';
import { BOTH_SCOPES } from '../../support/core-clients.ts';
import { ownContact } from '../contacts.ts';
import type { RestAnswer, SentLead } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { CLOCKS } from './clocks.ts';
import { definiteAnswer, definiteOutcome } from './definite-outcomes.ts';

/** A studio that only one scenario uses, so that its state is known at each moment. */
export interface SeparateStudio {
  readonly id: string;
  readonly secret: string;
  readonly apiKeyId: string;
}

/** Longer than any clock is ahead, and within the maximum. */
const LIFETIME_DAYS = 365;

const counts = new WeakMap<Simulation, number>();

/** Creates a separate studio through the CRM, with an owner and a key. */
export async function makeSeparateStudio(sim: Simulation, isTest = false): Promise<SeparateStudio> {
  const count = (counts.get(sim) ?? 0) + 1;
  counts.set(sim, count);
  const id = `studio-${sim.name}-apart-${count}`;
  const { directory } = sim.crmAt(count);
  const studio = { id, status: StudioStatus.ACTIVE, regionCode: 'DE', isTest };
  await definiteOutcome(sim, `${id} is made`, () => directory.putStudio({ studio }, CRM_TIMEOUT));
  const member = { studioId: id, id: 'owner', role: MemberRole.OWNER };
  await definiteOutcome(sim, `the owner of ${id} is put`, () => directory.putMember({ member }, CRM_TIMEOUT));
  return { id, ...(await makeKey(sim, id)) };
}

/** Creates a key. If responses are lost, it creates several, and returns the last. */
export async function makeKey(
  sim: Simulation,
  studioId: string,
  scopes = BOTH_SCOPES,
): Promise<{ readonly apiKeyId: string; readonly secret: string }> {
  const request = { studioId, memberId: 'owner', name: 'Website', scopes: [...scopes] };
  const create = () => {
    const expireTime = timestampFromMs(Date.now() + LIFETIME_DAYS * DAY_MS);
    return sim.crmAt(0).apiKeys.createApiKey({ ...request, expireTime }, CRM_TIMEOUT);
  };
  // A core would refuse the expiry if its clock were far ahead or behind.
  const outcome = await sim.inTurn(CLOCKS, () => definiteOutcome(sim, `a key of ${studioId} is made`, create));
  if ('refused' in outcome) throw new Error(`a key of ${studioId} is refused: ${outcome.refused}`);
  const { apiKey, secret } = outcome.answer;
  const apiKeyId = apiKey?.id ?? '';
  // No process may print the secret.
  sim.keyBySecret.set(secret, apiKeyId);
  return { apiKeyId, secret };
}

/** Returns the data of a creation; the same for the same name. */
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

/** Returns the status and code of a response. */
export const inShort = ({ status, code }: RestAnswer): string => (code ? `${status} ${code}` : `${status}`);
