import { DatabaseSync } from 'node:sqlite';
import { MongoClient, ReadConcern } from 'mongodb';
import { isOpen } from '../../src/domain/lead.ts';
import { databaseNameIn } from '../../src/store/mongo/database-name.ts';

/** The rule version of release 1.2. An open lead of that version may have given up some of its keys. */
const RULE_OF_1_2 = 2;

/** Returns the contradictions in a database, each with the id of its lead. Reads the database without the store's code. */
export const contradictionsIn = (databaseUrl: string): Promise<string[]> =>
  databaseUrl.startsWith('sqlite:') ? inFile(databaseUrl.slice('sqlite:'.length)) : inMongo(databaseUrl);

/** The keys of each lead. A claim is a key of an open lead, or a key of a closed one followed by the lead's number. */
const CLAIMS_OF_LEAD = `
  SELECT lead_number, count(*) AS keys, sum(length(contact_key) = 32) AS open_keys,
    sum(instr(contact_keys, substr(contact_key, 1, 32)) % 32 <> 1) AS foreign_keys
  FROM contact_claims JOIN leads ON number = lead_number AND leads.studio_number = contact_claims.studio_number
  GROUP BY lead_number`;

const IN_FILE = {
  'keys that do not match its stage': `
    SELECT hex(id) AS id FROM leads LEFT JOIN (${CLAIMS_OF_LEAD}) ON lead_number = number
    WHERE erased_at IS NULL AND (
      keys IS NOT length(contact_keys) / 32 OR foreign_keys > 0
      OR iif(stage IN ('won', 'lost'), open_keys > 0, iif(rule_version = ${RULE_OF_1_2}, open_keys < 1, open_keys < keys)))`,
  'keys, and does not exist': `
    SELECT lead_number AS id FROM contact_claims WHERE NOT EXISTS (
      SELECT 1 FROM leads WHERE number = lead_number AND leads.studio_number = contact_claims.studio_number)`,
  'keys of contacts although it is erased': `
    SELECT hex(id) AS id FROM leads WHERE erased_at IS NOT NULL AND (
      length(contact_keys) > 0 OR number IN (SELECT lead_number FROM contact_claims UNION SELECT lead_number FROM former_contacts))`,
  // Deliveries of a removed consumer are deleted later.
  'deliveries, and does not exist': `
    SELECT lead AS id FROM deliveries
    WHERE lead NOT IN (SELECT number FROM leads) AND consumer IN (SELECT number FROM consumers)`,
};

async function inFile(path: string): Promise<string[]> {
  const database = new DatabaseSync(path, { readOnly: true, timeout: 100_000 });
  const found = Object.entries(IN_FILE).flatMap(([what, sql]) =>
    database
      .prepare(sql)
      .all()
      .map(({ id }) => `${id} has ${what}`),
  );
  database.close();
  return found;
}

/** Checks fewer contradictions: a lead stores its own keys, and deliveries may outlive a lead until the next poll. */
async function inMongo(url: string): Promise<string[]> {
  const client = new MongoClient(url);
  // The address may ask for weaker reads.
  const database = client.db(databaseNameIn(url, client), {
    readPreference: 'primary',
    readConcern: new ReadConcern('majority'),
  });
  const fields = { projection: { openContactKey: 1, stage: 1, erasedAt: 1, contactRule: 1 } };
  const found: string[] = [];
  for await (const lead of database.collection('leads').find({}, fields)) {
    const { stage, erasedAt, contactRule } = lead;
    const id = String(lead._id.id);
    const keys = [lead.openContactKey].flat() as string[];
    const open = keys.filter((key) => /^open:[\w-]{43}$/.test(key));
    const closed = keys.filter((key) => RegExp(`^closed:[\\w-]{43}:${id}$`).test(key));
    const former = keys.filter((key) => RegExp(`^former:[\\w-]{43}:${id}$`).test(key));
    const matchesStage = !isOpen(stage)
      ? open.length === 0 && closed.length > 0
      : open.length > 0 && (closed.length === 0 || contactRule?.version === RULE_OF_1_2);
    const areKnown = open.length + closed.length + former.length === keys.length;
    if (!erasedAt && !(matchesStage && areKnown)) found.push(`${id} has keys that do not match its stage`);
    if (erasedAt && `${keys}` !== `closed:${id}`) found.push(`${id} has keys of contacts although it is erased`);
  }
  await client.close();
  return found;
}
