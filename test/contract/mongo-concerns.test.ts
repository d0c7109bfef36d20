import { randomUUID } from 'node:crypto';
import { BSON, type Document } from 'mongodb';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { connect } from '../../src/store/mongo/connection.ts';
import { openMongoStore } from '../../src/store/mongo/mongo-store.ts';
import type { Store } from '../../src/store/store.ts';
import { aLead, aLeadSource, aMember, anApiKey, aStudio, BY, claimsOf, NOW } from '../support/builders.ts';
import { describeWithMongo } from '../support/mongodb.ts';
import { startProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { keysIn, moveLead, replacementOf } from './store-actions.ts';

/** Options in an address that a core must ignore. */
const HARMFUL = [
  'readConcernLevel=local&w=1&journal=false',
  'readConcernLevel=available&w=0',
  'w=1&wtimeoutMS=1&readPreference=secondaryPreferred',
];

/** Commands that write, and commands that read stored data. */
const WRITES = ['insert', 'update', 'delete', 'findAndModify', 'createIndexes', 'dropIndexes', 'bulkWrite'];
const READS = ['find', 'aggregate', 'count', 'distinct'];

/** The body of a message follows a head of 16 bytes, the flags, and the kind of the first section. */
const BODY_AT = 21;
const OP_MSG = 2013;

describeWithMongo('whatever options DATABASE_URL has', (mongoUrl) => {
  let proxy: TcpProxy;
  let commands: Document[];

  beforeAll(async () => {
    const { hostname, port } = new URL(mongoUrl());
    proxy = await startProxy(hostname, Number(port));
    // Records the commands and drops nothing.
    proxy.loseReplies({
      of: (request) => {
        const command = commandIn(request);
        if (command) commands.push(command);
        return false;
      },
    });
  });
  afterAll(() => proxy?.stop());
  beforeEach(() => {
    commands = [];
  });

  const urlWith = (options: string) => `mongodb://127.0.0.1:${proxy.port}/test-${randomUUID()}?${options}`;
  const named = (names: readonly string[]) => commands.filter((command) => names.includes(nameOf(command)));

  // @proves crashes-32 mongodb-4
  test.each(HARMFUL)('each command requires a majority and its disks: %s', async (options) => {
    const store = await openMongoStore(urlWith(options));
    onTestFinished(() => store.close());
    // On a busy machine the indexes take longer than the store waits for them.
    await expect.poll(() => store.check().then(() => 'ready', String)).toBe('ready');
    await useAllOf(store);

    const writes = named(WRITES);
    expect(new Set(writes.map(nameOf))).toEqual(new Set(['createIndexes', 'insert', 'update']));
    for (const { writeConcern, ...write } of writes) {
      expect({ [nameOf(write)]: writeConcern }).toEqual({ [nameOf(write)]: { w: 'majority', j: true } });
    }
    const reads = named(READS);
    expect(reads.length).toBeGreaterThan(10);
    for (const { readConcern, ...read } of reads) {
      expect({ [nameOf(read)]: readConcern }).toEqual({ [nameOf(read)]: { level: 'majority' } });
    }
    // All other commands are about the server and not about stored data.
    const others = new Set(commands.map(nameOf).filter((name) => ![...WRITES, ...READS].includes(name)));
    expect([...others].filter((name) => !/^(?:hello|ismaster|endSessions|listIndexes)$/i.test(name))).toEqual([]);
    for (const { $readPreference } of commands) expect($readPreference?.mode ?? 'primary').toMatch(/^primary/);
  });

  // @proves crashes-32
  test.each(HARMFUL)('reads go to the primary: %s', async (options) => {
    // The driver does not send the read preference to a standalone server.
    const connection = await connect(urlWith(options));
    onTestFinished(() => connection.close());

    for (const collection of [connection.leads, connection.apiKeys, connection.studios]) {
      expect(collection.readPreference?.mode).toBe('primary');
    }
  });
});

/** Calls every method that sends a kind of command of its own. */
async function useAllOf(store: Store): Promise<void> {
  const [studio, member, source, lead, key] = [aStudio(), aMember(), aLeadSource(), aLead(), anApiKey()];
  const { id: studioId } = studio;
  const claims = claimsOf(lead);
  await store.putStudio(studio, BY);
  await store.putStudio({ ...studio, status: 'suspended' }, BY);
  await store.findStudio(studioId);
  await store.putMember(member, BY);
  await store.findMember(studioId, member.id);
  await store.removeMember(studioId, member.id, BY);
  await store.putLeadSource(source);
  await store.listLeadSources(studioId, null, 10);
  await store.createLead(lead, claims);
  await store.createLead(lead, claims);
  await store.findLeadByIdempotencyKey(studioId, claims.idempotencyKey);
  await store.findLead(studioId, lead.id);
  await store.listLeads(studioId, null, 10);
  await moveLead(store, lead, 'won');
  await store.putStudio({ ...studio, regionCode: 'DE' }, BY);
  await store.createApiKey(key, NOW);
  const replacement = replacementOf(key);
  await store.replaceApiKey(replacement);
  await store.recordApiKeyUse({ studioId, keyId: key.id, now: NOW, unlessSince: NOW });
  await store.findCredential(replacement.secretSha256, source.id);
  await keysIn(store, studioId);
  await store.revokeApiKey(studioId, key.id, BY);
  await store.listAuditEvents(studioId, null);
  await store.listAuditEvents(studioId, lead.id);
  await store.check();
}

/** Decodes the command of a message. The driver sends one at a time over a connection, its body first. */
function commandIn(message: Buffer): Document | undefined {
  if (message.readInt32LE(12) !== OP_MSG) return undefined;
  const length = message.readInt32LE(BODY_AT);
  return BSON.deserialize(message.subarray(BODY_AT, BODY_AT + length));
}

const nameOf = (command: Document): string => Object.keys(command)[0] ?? '';
