import { checked, readableOrNull } from '../checked.ts';
import type { ApiKeyStore, Credential } from '../port/api-keys.ts';
import type { ReportUnreadable } from '../port/faults.ts';
import { API_KEY, checkedStudio, LEAD_SOURCE, MEMBER } from '../records.ts';
import { API_KEYS, LEAD_SOURCES, MEMBERS, STUDIOS } from './record-rows.ts';
import type { Prepare } from './rows.ts';

/** The maximum number of cached credentials; one more clears the cache. */
const MAX_REMEMBERED = 50_000;

/**
 * Reads and caches credentials, because reading one takes as long as the rest of a request. The cache is cleared when
 * another connection has committed anything, and before a write of this one that may change a credential. Only
 * `lastUsedAt` may be stale.
 *
 * @param transactions the number of transactions begun for reads so far
 */
export function credentialReader(prepare: Prepare, transactions: () => number, report: ReportUnreadable) {
  const remembered = new Map<string, Credential>();
  // Changes with each commit of another connection, in this process or another.
  const selectVersion = prepare('PRAGMA data_version');
  let [version, seen]: [unknown, number] = [undefined, 0];
  const read = credentialFinder(prepare);

  const forgetCredentials = (): void => remembered.clear();

  function forgetIfOthersWrote(): void {
    const count = transactions();
    if (seen === count) return;
    // A lock or disk fault may fail this first statement of a transaction. The next call in the transaction then repeats it.
    const current = selectVersion.get()?.[0];
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
    // Missing sources are not cached, because a caller could name new ones forever.
    if (found && isReadable && (sourceId === '' || found.source)) {
      if (remembered.size >= MAX_REMEMBERED) forgetCredentials();
      remembered.set(name, found);
    }
    return found;
  };
  return { findCredential, forgetCredentials };
}

function credentialFinder(prepare: Prepare) {
  const select = prepare(`
    SELECT ${API_KEYS.selected}, ${STUDIOS.selected}, ${MEMBERS.selected}, ${LEAD_SOURCES.selected}
    FROM api_keys
    JOIN studios ON studios.id = api_keys.studio_id
    LEFT JOIN members ON members.studio_id = api_keys.studio_id AND members.id = api_keys.member_id
    LEFT JOIN lead_sources ON lead_sources.studio_id = api_keys.studio_id AND lead_sources.id = ?
    WHERE secret_sha256 = ?`);
  const studioFrom = API_KEYS.width;
  const memberFrom = studioFrom + STUDIOS.width;
  const sourceFrom = memberFrom + MEMBERS.width;
  return (secretSha256: Uint8Array, sourceId: string, report: ReportUnreadable): Credential | null => {
    const row = select.get(sourceId, secretSha256);
    const key = row && readableOrNull(checked(API_KEY, API_KEYS.read(row)), report);
    if (!key) return null;
    // Columns of a row that the join did not find are null.
    const member = row[memberFrom] === null ? null : checked(MEMBER, MEMBERS.read(row, memberFrom));
    const source = row[sourceFrom] === null ? null : checked(LEAD_SOURCE, LEAD_SOURCES.read(row, sourceFrom));
    return {
      key,
      studio: checkedStudio(STUDIOS.read(row, studioFrom), report),
      issuerRole: readableOrNull(member, report)?.role ?? null,
      source: readableOrNull(source, report),
    };
  };
}
