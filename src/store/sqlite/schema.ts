import type { DatabaseSync } from 'node:sqlite';
import { API_KEYS, AUDIT_EVENTS, CONSUMERS, EPOCHS, LEAD_SOURCES, MEMBERS, STUDIOS } from './record-rows.ts';
import { TEXT_COLUMNS } from './rows.ts';

/** The `user_version` of a file of this release, and of release 1.2, which migrateFrom12 converts. */
export const SCHEMA_VERSION = 9;
export const SCHEMA_OF_1_2 = 8;
export const SET_VERSION = `PRAGMA user_version = ${SCHEMA_VERSION}`;

/** The columns of `leads`. The table is created in two places: in a new file, and beside the one of release 1.2. */
export const LEADS = `(
  number              INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  studio_number       INTEGER NOT NULL,
  id                  BLOB NOT NULL,
  contact_type        TEXT NOT NULL,
  contact_value       TEXT NOT NULL,
  -- The texts, as the JSON that callers get; NULL: it has none, or was erased. An id is the bytes of its UUID.
  ${TEXT_COLUMNS.map(({ column, isId }) => (isId ? `${column} BLOB` : `${column} TEXT CHECK (json_valid(${column}))`)).join(', ')},
  stage               TEXT NOT NULL,
  created_at          INTEGER NOT NULL,
  updated_at          INTEGER NOT NULL,
  -- The uniqueness keys that the lead holds, or is found by once it is closed: concatenated hashes.
  contact_keys        BLOB NOT NULL,
  -- The rule and the region by which the keys were computed.
  rule_version        INTEGER NOT NULL,
  rule_region         TEXT,
  idempotency_key     BLOB NOT NULL,
  fingerprint         BLOB NOT NULL,
  fingerprint_version INTEGER NOT NULL,
  -- The original texts, and the enquiries, as JSON; NULL: there was no correction and no enquiry.
  original            TEXT,
  -- The revision, and the time of the first change that is not yet distributed; NULL: there is none.
  revision            INTEGER NOT NULL DEFAULT 0,
  changed_since       INTEGER DEFAULT 0,
  -- The kinds of those changes, each with the time of the latest, as JSON; NULL: only its creation.
  change_kinds        TEXT,
  -- When its personal data were erased; NULL: they were not.
  erased_at           INTEGER,
  -- The id of the API key that created the lead; NULL: none did, or release 1.2 stored it.
  api_key_id          BLOB,
  UNIQUE (studio_number, id),
  UNIQUE (studio_number, idempotency_key)
) STRICT`;

export const LEAD_INDEXES = `
  CREATE INDEX leads_by_unacknowledged_change ON leads (changed_since) WHERE changed_since IS NOT NULL;
  -- The leads of a stage, in the order of their changes.
  CREATE INDEX leads_by_stage ON leads (studio_number, stage, updated_at, id) WHERE erased_at IS NULL;
`;

/** The schema. Once released, it and the records behind its columns change only by a migration. Times are whole milliseconds since 1970. */
export const SCHEMA = `
  CREATE TABLE studios (${STUDIOS.definitions({ id: 'PRIMARY KEY' })}) STRICT, WITHOUT ROWID;

  CREATE TABLE members (
    ${MEMBERS.definitions({ studioId: 'REFERENCES studios' })},
    PRIMARY KEY (studio_id, id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE lead_sources (
    ${LEAD_SOURCES.definitions({ studioId: 'REFERENCES studios' })},
    PRIMARY KEY (studio_id, id)
  ) STRICT, WITHOUT ROWID;

  -- A live key holds one of the slots '0' to '19' of its studio, a revoked one its own id. The unique slots limit the keys.
  CREATE TABLE api_keys (
    ${API_KEYS.definitions({ studioId: 'REFERENCES studios', secretSha256: 'UNIQUE' })},
    slot TEXT NOT NULL,
    PRIMARY KEY (studio_id, id),
    UNIQUE (studio_id, slot)
  ) STRICT, WITHOUT ROWID;

  -- The events of leads, and of studios with their keys (no lead), in the order in which they were stored.
  CREATE TABLE audit_events (number INTEGER NOT NULL PRIMARY KEY, ${AUDIT_EVENTS.definitions()}) STRICT;
  CREATE INDEX audit_events_by_subject ON audit_events (studio_id, lead_id, number);

  -- Keeps leads and their index entries short: a studio is a number there, a UUID its 16 bytes, a hash its 32. A number
  -- never changes and is never reused, even if somebody deletes its row: another studio would get the leads.
  CREATE TABLE studio_numbers (
    number    INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    studio_id TEXT NOT NULL UNIQUE
  ) STRICT;

  -- Indexes refer to a lead by its number. The number of a deleted lead is not reused, because its keys may still exist.
  CREATE TABLE leads ${LEADS};
  ${LEAD_INDEXES}
  -- The uniqueness keys of leads. The primary key prevents two open leads of one contact.
  CREATE TABLE contact_claims (
    studio_number INTEGER NOT NULL,
    contact_key   BLOB NOT NULL,
    lead_number   INTEGER NOT NULL,
    PRIMARY KEY (studio_number, contact_key)
  ) STRICT, WITHOUT ROWID;

  -- The identities of the callers' latest requests that took effect.
  CREATE TABLE applied_requests (
    number INTEGER NOT NULL PRIMARY KEY,
    id     BLOB NOT NULL UNIQUE
  ) STRICT;

  -- The keys that leads had before corrections of their contacts. An erasure deletes them by lead.
  CREATE TABLE former_contacts (
    studio_number INTEGER NOT NULL,
    contact_key   BLOB NOT NULL,
    lead_number   INTEGER NOT NULL,
    PRIMARY KEY (studio_number, contact_key, lead_number),
    UNIQUE (lead_number, contact_key)
  ) STRICT, WITHOUT ROWID;

  -- The retention time, which all cores share.
  CREATE TABLE retention_time (
    one     INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    -- Grows with each change. A change requires the version that it read.
    version INTEGER NOT NULL,
    time    INTEGER NOT NULL
  ) STRICT;

  -- The named consumers of the change feed. A number is never reused, because deliveries refer to it.
  CREATE TABLE consumers (
    ${CONSUMERS.definitions({ number: 'PRIMARY KEY AUTOINCREMENT', name: 'UNIQUE' })}
  ) STRICT;

  -- The changes of leads that a consumer has not acknowledged: the revision, and the time of the first change.
  -- The column due orders the deliveries that wait, and sets others aside: see DEFERRED.
  CREATE TABLE deliveries (
    consumer INTEGER NOT NULL,
    lead     INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    since    INTEGER NOT NULL,
    due      INTEGER NOT NULL,
    -- As in leads, and never NULL.
    kinds    TEXT NOT NULL,
    -- How often it was set aside at this revision, and why; NULL: it was not.
    attempts INTEGER NOT NULL DEFAULT 0,
    reason   TEXT,
    PRIMARY KEY (consumer, lead)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX deliveries_by_due ON deliveries (consumer, due);

  -- The epoch; no row before the first restore. The row of a backup also has the time when the backup began.
  CREATE TABLE database_epoch (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    ${EPOCHS.definitions()}
  ) STRICT;

  -- The requests that websites made, and how they were answered.
  CREATE TABLE logged_requests (
    studio_id TEXT NOT NULL,
    -- Contains the time.
    id        TEXT NOT NULL,
    -- As JSON.
    request   TEXT NOT NULL,
    PRIMARY KEY (studio_id, id)
  ) STRICT, WITHOUT ROWID;
`;

/** Returns the `user_version` of a database; 0: it is empty. */
export const schemaVersion = (database: DatabaseSync): number =>
  database.prepare('PRAGMA user_version').get()?.user_version as number;
