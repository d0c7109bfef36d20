import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type { ConversionProgress } from '../conversion.ts';
import { resultCodeOf, SQLITE_CONSTRAINT } from './result-codes.ts';
import { hashBytes, hashText } from './stored-ids.ts';

/** Rows per transaction: a second or two, which a stop reverts and other processes wait for. */
const ROWS_PER_TRANSACTION = 20_000;

interface Part {
  /** Moves some rows within a transaction; returns their number, 0: there are no more. */
  moveSome(): number;
}

/**
 * Moves leads and claims from the tables of release 1.0, or of the third step, to those of the fourth. Each transaction
 * deletes what it has moved, so it can stop anywhere, also with several processes, and the file hardly grows.
 */
export class MovingLeads {
  readonly #database: DatabaseSync;
  readonly #parts: readonly Part[];
  #done = 0;
  readonly #total: number;

  constructor(database: DatabaseSync) {
    this.#database = database;
    database.function('hash_bytes', { deterministic: true }, (text) => hashOrText(text as string));
    database.function('hashes_bytes', { deterministic: true }, (text) => hashesOrText(text as string));
    // Leads first, because claims refer to their new numbers.
    this.#parts = [
      isOfFirstRelease(database) ? firstReleasePart(database) : leadsPart(database, THIRD_STEP),
      claimsPart(database),
    ];
    this.#total = rowsIn(database, 'former_leads') + rowsIn(database, 'former_contact_claims');
  }

  get progress(): ConversionProgress {
    return { done: this.#done, total: this.#total };
  }

  /** Moves some rows within a transaction; returns whether there were any. */
  moveSome(): boolean {
    for (const part of this.#parts) {
      const moved = part.moveSome();
      this.#done += moved;
      if (moved > 0) return true;
    }
    return false;
  }

  /**
   * Builds the index of idempotency keys within a transaction; building it afterwards is many times faster than
   * updating it with each lead. If the former index was missing and there are duplicates, it stays missing.
   */
  buildIndex(): void {
    this.#database.exec('SAVEPOINT one_index');
    try {
      this.#database.exec(`
        CREATE UNIQUE INDEX leads_by_idempotency_key ON leads (studio_number, idempotency_key);
        RELEASE one_index`);
    } catch (error) {
      if (resultCodeOf(error) !== SQLITE_CONSTRAINT || !this.#database.isTransaction) throw error;
      this.#database.exec('ROLLBACK TO one_index; RELEASE one_index');
    }
  }
}

const rowsIn = (database: DatabaseSync, table: string): number =>
  database.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.rows as number;

/** SQL expressions for the claims of a lead and their rule, in its former table. */
interface FormerClaims {
  readonly contactKeys: string;
  readonly ruleVersion: string;
  readonly ruleRegion: string;
}

const FIRST_RELEASE: FormerClaims = {
  contactKeys: "iif(open_contact_key LIKE 'open:%', substr(open_contact_key, 6), '')",
  ruleVersion: '1',
  ruleRegion: 'NULL',
};
const THIRD_STEP: FormerClaims = {
  contactKeys: 'contact_keys',
  ruleVersion: 'rule_version',
  ruleRegion: 'rule_region',
};

const isOfFirstRelease = (database: DatabaseSync): boolean =>
  database.prepare("SELECT 1 FROM pragma_table_info('former_leads') WHERE name = 'open_contact_key'").get() !==
  undefined;

/** Leads of release 1.0, which had no table of claims. */
function firstReleasePart(database: DatabaseSync): Part {
  const leads = leadsPart(database, FIRST_RELEASE);
  const selectLast = database.prepare('SELECT coalesce(max(number), 0) AS last FROM leads');
  // Of duplicates, one keeps the claim.
  const insertClaims = database.prepare(`
    INSERT OR IGNORE INTO contact_claims (studio_number, contact_key, lead_number)
    SELECT studio_number, contact_keys, number FROM leads WHERE number > ? AND contact_keys <> x''
    ORDER BY studio_number, contact_keys`);
  return {
    moveSome() {
      const last = selectLast.get()?.last as number;
      const moved = leads.moveSome();
      insertClaims.run(last);
      return moved;
    },
  };
}

function leadsPart(database: DatabaseSync, { contactKeys, ruleVersion, ruleRegion }: FormerClaims): Part {
  const selectLast = database.prepare(`
    SELECT max(rowid) AS last FROM (SELECT rowid FROM former_leads ORDER BY rowid LIMIT ${ROWS_PER_TRANSACTION})`);
  // A rowid may be beyond JavaScript's safe integers.
  selectLast.setReadBigInts(true);
  const giveNumbers = database.prepare(`
    INSERT OR IGNORE INTO studio_numbers (studio_id) SELECT DISTINCT studio_id FROM former_leads WHERE rowid <= ?`);
  // SQLite does not reorder a CROSS JOIN.
  const insert = database.prepare(`
    INSERT INTO leads (
      studio_number, id, display_name, contact_type, contact_value, source_id, note, stage, created_at, updated_at,
      contact_keys, rule_version, rule_region, idempotency_key, fingerprint, fingerprint_version
    )
    SELECT number, ${idBytes('id')}, display_name, contact_type, contact_value, ${idBytes('source_id')}, note, stage,
      created_at, updated_at, hashes_bytes(${contactKeys}), ${ruleVersion}, ${ruleRegion}, ${idBytes('idempotency_key')},
      hash_bytes(fingerprint), fingerprint_version
    FROM former_leads CROSS JOIN studio_numbers ON studio_numbers.studio_id = former_leads.studio_id
    WHERE former_leads.rowid <= ? ORDER BY former_leads.rowid`);
  const remove = database.prepare('DELETE FROM former_leads WHERE rowid <= ?');
  return {
    moveSome() {
      const last = selectLast.get()?.last as bigint | null;
      if (last === null) return 0;
      giveNumbers.run(last);
      const { changes } = insert.run(last);
      if (remove.run(last).changes !== changes) throw new Error('a lead was not moved');
      return changes as number;
    },
  };
}

function claimsPart(database: DatabaseSync): Part {
  const selectLast = database.prepare(`
    SELECT studio_id, contact_key FROM former_contact_claims ORDER BY studio_id, contact_key
    LIMIT 1 OFFSET ${ROWS_PER_TRANSACTION - 1}`);
  const upTo = '(studio_id, contact_key) <= (:studio_id, :contact_key)';
  // Claims of missing leads are dropped. Of duplicates, one is kept.
  const insertInto = (condition: string) =>
    database.prepare(`
      INSERT OR IGNORE INTO contact_claims (studio_number, contact_key, lead_number)
      SELECT studio_numbers.number, hash_bytes(contact_key), leads.number
      FROM (SELECT * FROM former_contact_claims WHERE ${condition} ORDER BY studio_id, contact_key) AS former
        CROSS JOIN studio_numbers ON studio_numbers.studio_id = former.studio_id
        CROSS JOIN leads ON leads.studio_number = studio_numbers.number AND leads.id = ${idBytes('former.lead_id')}`);
  const insertSome = insertInto(upTo);
  const insertRest = insertInto('TRUE');
  const removeSome = database.prepare(`DELETE FROM former_contact_claims WHERE ${upTo}`);
  const removeRest = database.prepare('DELETE FROM former_contact_claims');
  return {
    moveSome() {
      const last = selectLast.get();
      const [insert, remove] = last ? [insertSome, removeSome] : [insertRest, removeRest];
      const upToLast = { ...last } as Record<string, SQLInputValue>;
      insert.run(upToLast);
      return remove.run(upToLast).changes as number;
    },
  };
}

/**
 * SQL for the bytes of a UUID's text. Another text, which this service did not write, keeps its own bytes; a long one
 * gets a further byte that no UTF-8 text has. So different texts stay different, and none becomes a UUID.
 */
const idBytes = (id: string): string => `
  CASE
    WHEN octet_length(${id}) = 36 AND ${id} GLOB '????????-????-????-????-????????????' AND ${id} NOT GLOB '*[^0-9a-f-]*'
      AND length(replace(${id}, '-', '')) = 32 THEN unhex(${id}, '-')
    WHEN octet_length(${id}) < 16 THEN CAST(${id} AS BLOB)
    ELSE CAST(${id} || x'ff' AS BLOB)
  END`;

/** The bytes of a hash; another text keeps its own bytes, which are not a hash's. */
function hashOrText(text: string): Uint8Array {
  const isHash = text.length === 43 && hashText(Buffer.from(text, 'base64url')) === text;
  return isHash ? hashBytes(text) : textBytes(text);
}

/** The bytes of hashes separated by spaces; another text keeps its own bytes, not a multiple of a hash's length. */
function hashesOrText(text: string): Uint8Array {
  const all = text.split(' ').map(hashOrText);
  if (text === '') return Buffer.alloc(0);
  return all.every(({ length }) => length === 32) ? Buffer.concat(all) : textBytes(text);
}

const textBytes = (text: string): Uint8Array => {
  const bytes = Buffer.from(text, 'utf8');
  return bytes.length % 32 === 0 ? Buffer.concat([bytes, Buffer.of(0xff)]) : bytes;
};
