import { randomUUID } from 'node:crypto';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { BOUNDS, PAGE_SIZE } from '../../common/rules/field-rules.ts';
import { MemberRole, StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { DAY_MS, times } from '../support/builders.ts';
import { BOTH_SCOPES, type CoreClients } from '../support/core-clients.ts';
import type { Life } from './life.ts';

/** How many leads are created at once. */
const AT_ONCE = 10;

/** How many keys open the studio. */
const KEYS = 12;

/** A studio in which nothing happens, whose page of leads is as long as one can be: some 900 KB. */
export interface LongPages {
  readonly studioId: string;
  readonly secrets: readonly string[];
}

export async function makeLongPages(life: Life): Promise<LongPages> {
  const { directory, apiKeys, leads } = life.crm[0] as CoreClients;
  const studioId = `studio-${life.name}-of-long-pages`;
  await directory.putStudio({ studio: { id: studioId, status: StudioStatus.ACTIVE } });
  await directory.putMember({ member: { studioId, id: 'owner', role: MemberRole.OWNER } });
  for (const _ of times(PAGE_SIZE.max / AT_ONCE, () => 0)) {
    await Promise.all(
      times(AT_ONCE, () => {
        const email = `${randomUUID()}@${life.personal}.example`;
        return leads.createLead({
          studioId,
          idempotencyKey: randomUUID(),
          displayName: '😀'.repeat(BOUNDS.displayName.max),
          contact: { value: { case: 'email', value: email } },
          note: '😀'.repeat(BOUNDS.note.max),
        });
      }),
    );
  }
  const expireTime = timestampFromMs(Date.now() + DAY_MS);
  const secrets: string[] = [];
  for (const _ of times(KEYS, () => 0)) {
    const request = { studioId, memberId: 'owner', name: 'One of many', scopes: [...BOTH_SCOPES], expireTime };
    const { apiKey, secret } = await apiKeys.createApiKey(request);
    life.keyBySecret.set(secret, apiKey?.id ?? '');
    secrets.push(secret);
  }
  return { studioId, secrets };
}
