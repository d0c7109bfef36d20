import type { DatabaseSync } from 'node:sqlite';
import { checkedStudio, readableOrNull } from '../checked.ts';
import type { ApiKeyStore, Credential } from '../port/api-keys.ts';
import type { ReportUnreadable } from '../port/faults.ts';
import { API_KEY_COLUMNS, apiKeyOf, leadSourceOf, memberOf, type Row, STUDIO_FIELDS, studioIn } from './rows.ts';

/** The maximum number of credentials that are remembered; all are forgotten when there would be more. */
const MAX_REMEMBERED = 50_000;

/**
 * Reads credentials and remembers them: to read one takes as long as all the rest of a request. They are forgotten when
 * another connection has committed anything, and before a write of this one that may change any; only the time at which a key
 * was last used may be an earlier one.
 *
 * @param transactions the number of transactions begun for reads so far
 */
export function credentialReader(database: DatabaseSync, transactions: () => number, report: ReportUnreadable) {
  const remembered = new Map<string, Credential>();
  // Changes with each commit of another connection, of this process or another.
  const selectVersion = database.prepare('PRAGMA data_version');
  let [version, seen]: [unknown, number] = [undefined, 0];
  const read = credentialFinder(database);

  const forgetCredentials = (): void => remembered.clear();

  function forgetIfOthersWrote(): void {
    const count = transactions();
    if (seen === count) return;
    // The first statement of a transaction, which a lock or a fault of the disk may fail: then the next one of it asks again.
    const current = selectVersion.get()?.data_version;
    if (version !== current) forgetCredentials();
    [version, seen] = [current, count];
  }

  const findCredential: ApiKeyStore['findCredential'] = async (secretSha256, sourceId = '') => {
    forgetIfOthersWrote();
    const name = `${Buffer.from(secretSha256).toString('latin1')} ${sourceId}`;
    const known = remembered.get(name);
    if (known) return known;
    let isReadable = true;
    const found = read(secretSha256, sourceId, (record) => {
      isReadable = false;
      report(record);
    });
    // Of a source that does not exist nothing is remembered: a sender could name ever others.
    if (found && isReadable && (sourceId === '' || found.source)) {
      if (remembered.size >= MAX_REMEMBERED) forgetCredentials();
      remembered.set(name, found);
    }
    return found;
  };
  return { findCredential, forgetCredentials };
}

function credentialFinder(database: DatabaseSync) {
  const select = database.prepare(`
    SELECT ${API_KEY_COLUMNS}, ${STUDIO_FIELDS}, members.role, lead_sources.name AS source_name,
      lead_sources.enabled = 1 AS source_enabled
    FROM api_keys
    JOIN studios ON studios.id = api_keys.studio_id
    LEFT JOIN members ON members.studio_id = api_keys.studio_id AND members.id = api_keys.member_id
    LEFT JOIN lead_sources ON lead_sources.studio_id = api_keys.studio_id AND lead_sources.id = ?
    WHERE secret_sha256 = ?`);
  return (secretSha256: Uint8Array, sourceId: string, report: ReportUnreadable): Credential | null => {
    const row = select.get(sourceId, secretSha256);
    const key = row && readableOrNull(apiKeyOf(row), report);
    if (!key) return null;
    const { studioId, memberId } = key;
    const { role, source_name: name, source_enabled: enabled } = row;
    const member = role === null ? null : memberOf({ studio_id: studioId, id: memberId, role } as Row);
    const source = name === null ? null : leadSourceOf({ studio_id: studioId, id: sourceId, name, enabled } as Row);
    return {
      key,
      studio: checkedStudio(studioIn(row, studioId), report),
      issuerRole: readableOrNull(member, report)?.role ?? null,
      source: readableOrNull(source, report),
    };
  };
}
