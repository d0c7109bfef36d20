import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { toContactKeys } from '../../../src/domain/contact.ts';
import { aStudio, times } from '../../support/builders.ts';
import { inCall, ownContact } from '../contacts.ts';
import { now, type Operation, type RestAnswer, type SentLead } from '../history.ts';
import { CRM_TIMEOUT } from '../simulation.ts';
import { databaseFile, isOnSqlite, lasting, one } from './choices.ts';
import { asFarAsDefinite, definiteAnswer, definiteOutcome } from './definite-outcomes.ts';
import { byFetch } from './requests.ts';
import { aScenario } from './scenario.ts';
import { createSeparateLead, inShort, leadIdIn, makeKey, makeSeparateStudio, separateLead } from './separate-studio.ts';

/* Keys, quotas and erasures in separate studios, where each response is known exactly. */

const IN_FLIGHT = 20;

const STUDIO_LIMIT = 1000;

const ALL = { name: 'list', walk: 0, page: 0, query: '?limit=100' } as const;

/** Revokes a key while creations with it are in flight. Acknowledged leads must exist, and refused ones must not. */
export const revokeInFlight = aScenario({
  weight: 2,
  choice: fc.record({ core: fc.nat(1), afterMs: lasting(0, 80) }),
  run: (sim, { core, afterMs }) =>
    asFarAsDefinite(async () => {
      const studio = await makeSeparateStudio(sim);
      const { id: studioId } = studio;
      const { apiKeyId, secret } = await makeKey(sim, studioId);
      const sent = times(IN_FLIGHT, async (index) => {
        const lead = separateLead(sim, studioId, `in flight ${index}`);
        return { lead, answer: await byFetch(sim, one(sim.world.urls, index), secret, { name: 'create', lead }) };
      });
      await sleep(afterMs);
      const revoke = () => sim.crmAt(core).apiKeys.revokeApiKey({ studioId, memberId: 'owner', apiKeyId }, CRM_TIMEOUT);
      await definiteOutcome(sim, `a key of ${studioId} is revoked`, revoke);
      const late = separateLead(sim, studioId, 'late');
      const refused = await definiteAnswer(sim, secret, { name: 'create', lead: late });
      if (refused.status !== 401) sim.history.fail(`a revoked key of ${studioId} gets ${inShort(refused)}`);
      const answered = await Promise.all(sent);
      const { leads } = JSON.parse((await definiteAnswer(sim, studio.secret, ALL)).text);
      const exists = ({ idempotencyKey }: SentLead) =>
        leads.some(({ note }: { readonly note: string }) => note.startsWith(idempotencyKey));
      for (const { lead, answer } of [...answered, { lead: late, answer: refused }]) {
        // After any other response, or none, the lead may exist.
        if (answer?.status === 201 && !exists(lead))
          sim.history.fail(`a creation in ${studioId} gets 201, and its lead does not exist`);
        if (answer?.status === 401 && exists(lead))
          sim.history.fail(`a creation in ${studioId} with a revoked key gets 401, and its lead exists`);
      }
    }),
});

/** Returns the quota that a response shows. */
function readQuota({ headers }: RestAnswer) {
  const [, remaining, seconds] = /r=(\d+);t=(\d+)/.exec(headers.get('ratelimit') ?? '') ?? [];
  return { policy: headers.get('ratelimit-policy'), remaining: Number(remaining), seconds: Number(seconds) };
}

/** Checks that each request uses exactly one of the quota, whatever the response, and that requests with a revoked key use none. */
export const countExactly = aScenario({
  weight: 2,
  choice: fc.record({
    kinds: fc.array(fc.constantFrom('create', 'again', 'other', 'unknown', 'bad', 'revoked'), {
      minLength: 6,
      maxLength: 12,
    }),
    url: fc.nat(2),
  }),
  run: (sim, { kinds, url }) =>
    asFarAsDefinite(async () => {
      const { id: studioId, secret } = await makeSeparateStudio(sim);
      const revoked = await makeKey(sim, studioId);
      // Responses show the smaller quota, which is this one unless keys have a small one.
      const studio = { studio: { id: studioId, quotaLimit: STUDIO_LIMIT }, updateMask: { paths: ['quota_limit'] } };
      const limit = () => sim.crmAt(0).directory.putStudio(studio, CRM_TIMEOUT);
      await definiteOutcome(sim, `${studioId} gets a quota`, limit);
      const baseUrl = one(sim.world.urls, url);
      // The gateway caches the key.
      await byFetch(sim, baseUrl, revoked.secret, ALL);
      const owner = { studioId, memberId: 'owner', apiKeyId: revoked.apiKeyId };
      const revoke = () => sim.crmAt(0).apiKeys.revokeApiKey(owner, CRM_TIMEOUT);
      await definiteOutcome(sim, `a key of ${studioId} is revoked`, revoke);
      const lead = separateLead(sim, studioId, 'counted');
      const operations: Readonly<Record<string, Operation>> = {
        create: { name: 'create', lead },
        again: { name: 'create', lead },
        other: { name: 'create', lead: { ...lead, displayName: 'Another' } },
        unknown: { name: 'get', leadId: sim.uuid('unknown lead') },
        bad: { name: 'list', walk: 0, page: 0, query: '?limit=0' },
      };
      let before: (ReturnType<typeof readQuota> & { readonly begin: number }) | undefined;
      for (const kind of kinds) {
        if (kind === 'revoked') {
          const answer = await byFetch(sim, baseUrl, revoked.secret, ALL);
          if (answer?.status !== 401) before = undefined;
          continue;
        }
        const begin = now();
        const answer = await byFetch(sim, baseUrl, secret, operations[kind] as Operation);
        const hasQuota = answer !== undefined && ![408, 429, 503].includes(answer.status);
        const left = hasQuota ? readQuota(answer) : undefined;
        const previous = before;
        const isNext =
          previous && left && previous.policy === left.policy && left.seconds <= previous.seconds && left.seconds > 1;
        if (isNext && left.remaining !== previous.remaining - 1 && !sim.isDisturbedSince(previous.begin))
          sim.history.fail(
            `in ${studioId} ${previous.remaining} are left, and after one more (${kind}) ${left.remaining}`,
          );
        before = left && { ...left, begin };
      }
    }),
});

/** Corrects a lead to other contacts, and erases it by its id or its first contact. Then no table may have a key of its contacts. */
export const eraseCorrected = aScenario({
  weight: 2,
  isPossible: isOnSqlite,
  choice: fc.record({ core: fc.nat(1), corrections: fc.integer({ min: 1, max: 3 }), byContact: fc.boolean() }),
  run: (sim, { core, corrections, byContact }) =>
    asFarAsDefinite(async () => {
      const studio = await makeSeparateStudio(sim);
      const { id: studioId } = studio;
      const lead = separateLead(sim, studioId, 'corrected');
      const id = leadIdIn(await createSeparateLead(sim, studio, lead));
      const { leads } = sim.crmAt(core);
      const contacts = times(corrections, (index) => ownContact(sim.personal, sim.uuid('corrected', studioId, index)));
      for (const each of contacts) {
        const contact = inCall(each);
        const update = () =>
          leads.updateLead({ studioId, lead: { id, contact }, updateMask: { paths: ['contact'] } }, CRM_TIMEOUT);
        await definiteOutcome(sim, `a lead of ${studioId} is corrected`, update);
      }
      const erase = (): Promise<unknown> =>
        byContact
          ? leads.eraseContact({ studioId, contact: inCall(lead.contact) }, CRM_TIMEOUT)
          : leads.eraseLead({ studioId, leadId: id }, CRM_TIMEOUT);
      await definiteOutcome(sim, `a lead of ${studioId} is erased`, erase);
      const keys = [lead.contact, ...contacts].flatMap(
        (contact) => toContactKeys(contact, aStudio({ id: studioId })).contactKeys,
      );
      for (const column of findColumns(databaseFile(sim), keys))
        sim.history.fail(`once a lead of ${studioId} is erased, a key of its contact is in ${column}`);
    }),
});

/** Returns the columns of a database that have any of the keys. */
function findColumns(file: string, keys: readonly string[]): ReadonlySet<string> {
  using database = new DatabaseSync(file, { readOnly: true });
  const bytes = keys.map((key) => Buffer.from(key, 'base64url'));
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const has = (value: unknown) =>
    value instanceof Uint8Array
      ? bytes.some((each) => Buffer.from(value).includes(each))
      : keys.some((key) => `${value}`.includes(key));
  return new Set(
    tables.flatMap(({ name }) =>
      database
        .prepare(`SELECT * FROM ${name}`)
        .all()
        .flatMap((row) => Object.entries(row).flatMap(([column, value]) => (has(value) ? [`${name}.${column}`] : []))),
    ),
  );
}
