import { Binary, UUID } from 'mongodb';
import { isLive, KEY_SLOTS } from '../../domain/api-key.ts';
import type { ApiKeyStore, Credential } from '../store.ts';
import { type Connection, untilKnown } from './connection.ts';
import { apiKeyDocument, apiKeyOf, roleOf } from './documents.ts';
import { SharedReads } from './shared-reads.ts';
import { Turns } from './turns.ts';

/** API keys and their slots, in MongoDB. */
export function mongoApiKeys({ apiKeys, studios, call }: Connection): ApiKeyStore {
  const turns = new Turns();
  const reads = new SharedReads();

  /** A slot that nobody holds just now, or undefined. Any of them: neighbours who ask at once should not meet. */
  async function freeSlot(studioId: string, now: Date): Promise<string | undefined> {
    const holders = await apiKeys.find({ studioId, slot: { $in: KEY_SLOTS } }).toArray();
    const live = holders.filter((holder) => isLive(apiKeyOf(holder), now));
    for (const expired of holders.filter((holder) => !live.includes(holder))) {
      const { _id, expiresAt } = expired;
      // Only while it is still the expired key that was read.
      await apiKeys.updateOne({ studioId, _id, expiresAt }, { $set: { slot: _id.toString() } });
    }
    const free = KEY_SLOTS.filter((slot) => !live.some((holder) => holder.slot === slot));
    return free[Math.floor(Math.random() * free.length)];
  }

  async function findCredential(secretSha256: Uint8Array): Promise<Credential | null> {
    const found = await apiKeys.findOne({ secretSha256: new Binary(secretSha256) });
    if (!found) return null;
    const { studioId, memberId } = found;
    const projection = { status: 1, [`members.${memberId}`]: 1 };
    const studio = await studios.findOne({ _id: studioId }, { projection });
    if (!studio) return null;
    return { key: apiKeyOf(found), studioStatus: studio.status, issuerRole: roleOf(studio, memberId) };
  }

  return {
    createApiKey: (key, now) =>
      call((deadline) =>
        turns.take([key.studioId], () =>
          untilKnown(deadline, async (attempt) => {
            // An attempt before this one may have been written, and only its answer lost.
            if (attempt > 0 && (await apiKeys.findOne({ studioId: key.studioId, _id: new UUID(key.id) }))) return true;
            const slot = await freeSlot(key.studioId, now);
            if (slot === undefined) return false;
            await apiKeys.insertOne(apiKeyDocument(key, slot));
            return true;
          }),
        ),
      ),

    listApiKeys: (studioId) =>
      call(async () => (await apiKeys.find({ studioId }).sort({ _id: -1 }).toArray()).map(apiKeyOf)),

    replaceApiKey: ({ studioId, keyId, memberId, secretSha256, secretHint, expiresAt, now }) =>
      call((deadline) =>
        turns.take([studioId], () =>
          untilKnown(deadline, async () => {
            const _id = new UUID(keyId);
            const found = await apiKeys.findOne({ studioId, _id });
            if (!found) return { kind: 'not-found' };
            const key = apiKeyOf(found);
            // The new secret is there already: an attempt before this one was written, and only its answer lost.
            if (Buffer.from(key.secretSha256).equals(secretSha256)) return { kind: 'replaced', key };
            if (key.revokedAt) return { kind: 'revoked' };
            const renewed = { ...key, memberId, secretSha256, secretHint, expiresAt: expiresAt ?? key.expiresAt };
            if (!isLive(renewed, now)) return { kind: 'expired' };
            // A live key keeps its slot; one that comes back to life needs one. So does one that only seems to live,
            // because this clock is behind that of the process which gave its slot away.
            const keepsSlot = isLive(key, now) && KEY_SLOTS.includes(found.slot);
            const slot = keepsSlot ? found.slot : await freeSlot(studioId, now);
            if (slot === undefined) return { kind: 'limit-reached' };
            const { matchedCount } = await apiKeys.updateOne(
              { studioId, _id, revokedAt: null, secretSha256: found.secretSha256 },
              {
                $set: {
                  memberId,
                  secretSha256: new Binary(secretSha256),
                  secretHint,
                  expiresAt: renewed.expiresAt,
                  slot,
                },
              },
            );
            return matchedCount === 1 ? { kind: 'replaced', key: renewed } : undefined;
          }),
        ),
      ),

    revokeApiKey: (studioId, keyId, now) =>
      call((deadline) =>
        untilKnown(deadline, async () => {
          const _id = new UUID(keyId);
          await apiKeys.updateOne({ studioId, _id, revokedAt: null }, { $set: { revokedAt: now, slot: keyId } });
          const found = await apiKeys.findOne({ studioId, _id });
          return { key: found && apiKeyOf(found) };
        }),
      ).then(({ key }) => key),

    findCredential: (secretSha256) =>
      call(() => reads.read(Buffer.from(secretSha256).toString('hex'), () => findCredential(secretSha256))),
  };
}
