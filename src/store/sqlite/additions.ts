/** A table beside the schema, which cores of release 1.1 ignore. */
interface Addition {
  readonly name: string;
  readonly create: string;
}

/** Released ones are never edited, not even their comments, which SQLite stores. */
export const ADDITIONS: readonly Addition[] = [
  {
    name: 'former_regions',
    // The regions that a studio had before; '' for none.
    create: `
      CREATE TABLE former_regions (
        studio_id   TEXT NOT NULL,
        region_code TEXT NOT NULL,
        PRIMARY KEY (studio_id, region_code)
      ) STRICT, WITHOUT ROWID`,
  },
  {
    name: 'applied_requests',
    // The identities of the callers' latest requests that took effect.
    create: `
      CREATE TABLE applied_requests (
        number INTEGER NOT NULL PRIMARY KEY,
        id     BLOB NOT NULL UNIQUE
      ) STRICT`,
  },
  {
    name: 'former_contacts',
    // The keys that a lead had before its contact was corrected. Erasing removes them by the lead.
    create: `
      CREATE TABLE former_contacts (
        studio_number INTEGER NOT NULL,
        contact_key   BLOB NOT NULL,
        lead_number   INTEGER NOT NULL,
        PRIMARY KEY (studio_number, contact_key, lead_number),
        UNIQUE (lead_number, contact_key)
      ) STRICT, WITHOUT ROWID`,
  },
];
