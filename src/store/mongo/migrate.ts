import type { Db } from 'mongodb';
import { BY_MIGRATION } from '../../domain/audit.ts';
import { CONTACT_RULE_VERSION, earlierReleaseError } from '../earlier-release.ts';
import { StoreUnavailable } from '../port/faults.ts';
import type { SchemaDocument, StudioDocument } from './documents.ts';
import type { LeadDocument } from './lead-documents.ts';
import { ID_ONLY } from './queries.ts';
import { isInserted } from './server-refusal.ts';

/** The version that this release stores in a database. Release 1.2 stores none. */
const SCHEMA_VERSION = 2;

/**
 * Migrates a database of release 1.2 to this release, and stores the schema version at the end. Cores of 1.2 may run
 * meanwhile. An interrupted migration may be repeated.
 *
 * @returns why the database is refused, if it is
 */
export async function migrateFrom12(database: Db): Promise<StoreUnavailable | undefined> {
  const schemas = database.collection<SchemaDocument>('feed');
  const schema = await schemas.findOne({ _id: 'schema' });
  if (schema?.version === SCHEMA_VERSION) return undefined;
  if (schema) return new StoreUnavailable('a newer release has written the database: start that release');
  const studios = database.collection<StudioDocument>('studios');
  if (await studios.findOne({ claimVersion: { $ne: CONTACT_RULE_VERSION } }, ID_ONLY)) {
    return earlierReleaseError('the database');
  }
  await endRetentionOfHeld(database);
  await isInserted(schemas.insertOne({ _id: 'schema', version: SCHEMA_VERSION }));
  return undefined;
}

/** Ends the retention of studios with holds. This release has no holds, and held leads must not be erased. */
async function endRetentionOfHeld(database: Db): Promise<void> {
  const [studios, leads] = [database.collection<StudioDocument>('studios'), database.collection<LeadDocument>('leads')];
  const isHeld = { hold: { $ne: null } } as object;
  const held = [
    ...(await studios.find(isHeld, ID_ONLY).toArray()).map(({ _id }) => _id),
    ...(await leads.find(isHeld, { projection: { studioId: 1 } }).toArray()).map(({ studioId }) => studioId),
  ];
  const affected = await studios
    .find({ _id: { $in: held }, retention: { $ne: null } }, { projection: { retention: 1 } })
    .toArray();
  for (const { _id, retention } of affected) {
    const event = {
      ...BY_MIGRATION,
      action: 'studio-retention-changed',
      time: new Date(),
      from: `${retention?.days}`,
      to: null,
    } as const;
    await studios.updateOne({ _id, retention: { $ne: null } }, { $unset: { retention: 1 }, $push: { history: event } });
  }
  if (affected.length > 0) {
    const names = affected.map(({ _id }) => _id).join(', ');
    process.stderr.write(
      `the database is now of release 2.0. Retention is off for studios that had holds: ${names}.\n`,
    );
  }
}
