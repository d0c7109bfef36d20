/**
 * The migration steps; `user_version` is the number of steps that a database has taken. A released step is never edited, not even its
 * comments, which SQLite stores. Times are whole milliseconds since 1970, ids are lower case.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE studios (
    id          TEXT NOT NULL PRIMARY KEY,
    status      TEXT NOT NULL,
    region_code TEXT
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE members (
    studio_id TEXT NOT NULL REFERENCES studios,
    id        TEXT NOT NULL,
    role      TEXT NOT NULL,
    PRIMARY KEY (studio_id, id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE lead_sources (
    studio_id TEXT NOT NULL REFERENCES studios,
    id        TEXT NOT NULL,
    name      TEXT NOT NULL,
    enabled   INTEGER NOT NULL,
    PRIMARY KEY (studio_id, id)
  ) STRICT, WITHOUT ROWID;

  -- Every lead has both claims, open or not, so neither index needs a condition: a closed lead claims its own id instead
  -- of its contact. With a row id of its own, a lead with a long note stands in no index.
  CREATE TABLE leads (
    studio_id           TEXT NOT NULL,
    id                  TEXT NOT NULL,
    display_name        TEXT NOT NULL,
    contact_type        TEXT NOT NULL,
    contact_value       TEXT NOT NULL,
    source_id           TEXT,
    note                TEXT,
    stage               TEXT NOT NULL,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    open_contact_key    TEXT NOT NULL,
    idempotency_key     TEXT NOT NULL,
    fingerprint         TEXT NOT NULL,
    fingerprint_version INTEGER NOT NULL,
    PRIMARY KEY (studio_id, id)
  ) STRICT;
  CREATE UNIQUE INDEX leads_by_open_contact ON leads (studio_id, open_contact_key);
  CREATE UNIQUE INDEX leads_by_idempotency_key ON leads (studio_id, idempotency_key);

  -- A live key holds one of the slots '0' to '19' of its studio, any other its own id: that is the limit.
  CREATE TABLE api_keys (
    studio_id     TEXT NOT NULL REFERENCES studios,
    id            TEXT NOT NULL,
    member_id     TEXT NOT NULL,
    name          TEXT NOT NULL,
    scopes        TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    revoked_at    INTEGER,
    secret_sha256 BLOB NOT NULL UNIQUE,
    secret_hint   TEXT NOT NULL,
    slot          TEXT NOT NULL,
    PRIMARY KEY (studio_id, id),
    UNIQUE (studio_id, slot)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  ALTER TABLE api_keys ADD COLUMN last_used_at INTEGER;

  -- What was done to a lead, or to a studio and its keys (no lead), in the order in which it was done.
  CREATE TABLE audit_events (
    number     INTEGER NOT NULL PRIMARY KEY,
    studio_id  TEXT NOT NULL,
    lead_id    TEXT,
    api_key_id TEXT,
    action     TEXT NOT NULL,
    member_id  TEXT,
    time       INTEGER NOT NULL,
    from_value TEXT,
    to_value   TEXT
  ) STRICT;
  CREATE INDEX audit_events_by_subject ON audit_events (studio_id, lead_id, number);
  `,
  `
  -- Which open lead has which claim: the primary key is what keeps a contact from having two. A lead can have several, so
  -- they are no index on leads any more.
  CREATE TABLE contact_claims (
    studio_id   TEXT NOT NULL,
    contact_key TEXT NOT NULL,
    lead_id     TEXT NOT NULL,
    PRIMARY KEY (studio_id, contact_key)
  ) STRICT, WITHOUT ROWID;
  -- What leads claim is moved with them, in the next step, a part at a time.
  DROP INDEX IF EXISTS leads_by_open_contact;

  -- How far the claims of a studio's open leads are made anew, as JSON; NULL: all are by the rule of today. Nobody of an
  -- earlier release can be at work any more, so the second step need not wait.
  ALTER TABLE studios ADD COLUMN claim_renewal TEXT;
  UPDATE studios SET claim_renewal = json_object(
    'step', 'second', 'since', 0, 'after', NULL,
    'formerRules', json_array(json_object('version', 1, 'region', region_code)));
  `,
  `
  -- A lead takes few bytes, and so do the entries of the trees into which keys and contacts fall anywhere. A studio is a
  -- number there, a UUID its 16 bytes, a hash its 32. A number is never changed,
  -- nor given to another studio, also where somebody has deleted its row: it would have the leads of the one before.
  CREATE TABLE studio_numbers (
    number    INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    studio_id TEXT NOT NULL UNIQUE
  ) STRICT;

  -- Whoever of an earlier release still runs finds neither its tables nor its columns any more, and writes no lead.
  ALTER TABLE leads RENAME TO former_leads;
  ALTER TABLE contact_claims RENAME TO former_contact_claims;
  DROP INDEX IF EXISTS leads_by_idempotency_key;
  DROP INDEX IF EXISTS contact_claims_by_contact;

  -- With a number of its own, a lead with a long note stands in no index, and is short in what leads to it. The number of one
  -- that somebody has deleted is not given again: its claims may still be there.
  CREATE TABLE leads (
    number              INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    studio_number       INTEGER NOT NULL,
    id                  BLOB NOT NULL,
    display_name        TEXT NOT NULL,
    contact_type        TEXT NOT NULL,
    contact_value       TEXT NOT NULL,
    source_id           BLOB,
    note                TEXT,
    stage               TEXT NOT NULL,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    -- What it claims, one hash after the other; nothing once it is closed.
    contact_keys        BLOB NOT NULL,
    rule_version        INTEGER NOT NULL,
    rule_region         TEXT,
    idempotency_key     BLOB NOT NULL,
    fingerprint         BLOB NOT NULL,
    fingerprint_version INTEGER NOT NULL,
    UNIQUE (studio_number, id)
  ) STRICT;

  CREATE TABLE contact_claims (
    studio_number INTEGER NOT NULL,
    contact_key   BLOB NOT NULL,
    lead_number   INTEGER NOT NULL,
    PRIMARY KEY (studio_number, contact_key)
  ) STRICT, WITHOUT ROWID;
  `,
  // Between these two steps, the leads are moved in parts (move-leads.ts).
  `
  DROP TABLE former_leads;
  DROP TABLE former_contact_claims;
  `,
  `
  -- What a lead was created as, as JSON, once that was corrected; NULL: as it stands here.
  ALTER TABLE leads ADD COLUMN original TEXT;

  -- How often it has changed, and since when it has changes that no consumer has acknowledged; NULL: it has none. Leads of earlier
  -- releases come first: of their changes nobody has heard.
  ALTER TABLE leads ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE leads ADD COLUMN changed_since INTEGER DEFAULT 0;
  -- The kinds of those changes, each with the time of the latest, as JSON; NULL: it was created, and that is all.
  ALTER TABLE leads ADD COLUMN change_kinds TEXT;
  -- Leads that are closed already are to be found by their contacts, too: as all claims are made anew, they get theirs.
  UPDATE studios SET claim_renewal = json_object(
    'step', 'second', 'since', 0, 'after', NULL,
    'formerRules', json_array(json_object('version', 2, 'region', region_code))) WHERE claim_renewal IS NULL;

  -- When what it tells of its person was erased; NULL: it was not.
  ALTER TABLE leads ADD COLUMN erased_at INTEGER;
  CREATE INDEX leads_by_unacknowledged_change ON leads (changed_since) WHERE changed_since IS NOT NULL;
  `,
  `
  -- By which program, as the file of callers names it; NULL: programs were not told apart.
  ALTER TABLE audit_events ADD COLUMN caller TEXT;
  `,
  `
  -- How many requests a key, or all keys of a studio together, may make in a window; NULL: as many as the gateways are set to.
  ALTER TABLE api_keys ADD COLUMN quota_limit INTEGER;
  ALTER TABLE studios ADD COLUMN quota_limit INTEGER;
  `,
];

/** The version of a database whose leads are being moved. */
export const MOVING_LEADS = 4;
