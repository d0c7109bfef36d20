import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { MemberRole, StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { DAY_MS } from '../../support/builders.ts';
import { BOTH_SCOPES, type CoreClients } from '../../support/core-clients.ts';
import { ownContact, type Region } from '../contacts.ts';
import type { RestAnswer, SentLead } from '../history.ts';
import { CRM_WAITS_MS, type Life } from '../life.ts';
import { one } from './choices.ts';
import { answered, called } from './until-told.ts';

export const WAITS = { timeoutMs: CRM_WAITS_MS };

/** A studio that only one scenario uses, so that its state is known at each moment. */
export interface StudioApart {
  readonly id: string;
  readonly sourceId: string;
  readonly secret: string;
  readonly apiKeyId: string;
}

const counts = new WeakMap<Life, number>();

/** Creates such a studio through the CRM, with an owner, a source and a key. */
export async function makeStudioApart(life: Life, region: Region = 'DE'): Promise<StudioApart> {
  const count = (counts.get(life) ?? 0) + 1;
  counts.set(life, count);
  const id = `studio-${life.name}-apart-${count}`;
  const sourceId = life.uuid('source', id);
  const { directory } = crmOf(life, count);
  const regionCode = region === 'none' ? {} : { regionCode: region };
  const studio = { id, status: StudioStatus.ACTIVE, ...regionCode };
  await called(life, `${id} is made`, () => directory.putStudio({ studio }, WAITS));
  await putOwner(life, id);
  await putSource(life, id, sourceId);
  const { apiKeyId, secret } = await makeKey(life, id);
  return { id, sourceId, secret, apiKeyId };
}

/** Returns the client of one of the cores. */
export const crmOf = (life: Life, index: number): CoreClients => one(life.crm, index);

export const putOwner = (life: Life, studioId: string) =>
  called(life, `the owner of ${studioId} is put`, () =>
    crmOf(life, 0).directory.putMember({ member: { studioId, id: 'owner', role: MemberRole.OWNER } }, WAITS),
  );

export const putSource = (life: Life, studioId: string, id: string) =>
  called(life, `the source of ${studioId} is put`, () =>
    crmOf(life, 0).directory.putLeadSource({ leadSource: { studioId, id, name: 'Form', enabled: true } }, WAITS),
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

export async function makeKey(life: Life, studioId: string, scopes = BOTH_SCOPES): Promise<MadeKey> {
  let isUnsure = false;
  const request = { studioId, memberId: 'owner', name: 'Website', scopes: [...scopes] };
  const told = await called(
    life,
    `a key of ${studioId} is made`,
    () => {
      const expireTime = timestampFromMs(Date.now() + 30 * DAY_MS);
      return crmOf(life, 0).apiKeys.createApiKey({ ...request, expireTime }, WAITS);
    },
    () => {
      isUnsure = true;
    },
  );
  if ('refused' in told) return { apiKeyId: '', secret: '', refused: told.refused, isUnsure };
  const { apiKey, secret } = told.answer;
  // No process may print the secret.
  life.keyBySecret.set(secret, apiKey?.id ?? '');
  return { apiKeyId: apiKey?.id ?? '', secret, refused: undefined, isUnsure };
}

/** Returns the lead that a website server sends: the same for the same name. */
export function leadApart(life: Life, studioId: string, name: string, contact?: SentLead['contact']): SentLead {
  const idempotencyKey = life.uuid('key', studioId, name);
  return {
    idempotencyKey,
    displayName: `Ada ${life.personal}`,
    contact: contact ?? ownContact(life.personal, idempotencyKey),
    note: `${idempotencyKey} ${life.personal}`,
  };
}

export const createApart = (life: Life, { secret }: StudioApart, lead: SentLead): Promise<RestAnswer> =>
  answered(life, secret, { name: 'create', lead });

/** Returns the id of the lead in a response. */
export const leadIdIn = ({ text }: RestAnswer): string => JSON.parse(text).lead?.id;

/** Returns a response in short: its status and code. */
export const inShort = ({ status, code }: RestAnswer): string => (code ? `${status} ${code}` : `${status}`);
