import { checked, readableOrNull } from '../checked.ts';
import type { ApiKeyStore, Credential } from '../port/api-keys.ts';
import type { ReportUnreadable } from '../port/faults.ts';
import { API_KEY, checkedStudio, LEAD_SOURCE, MEMBER } from '../records.ts';
import { API_KEYS, LEAD_SOURCES, MEMBERS, STUDIOS } from './record-rows.ts';
import type { Prepare } from './rows.ts';

/** The maximum number of credentials that are remembered; all are forgotten when there would be more. */
const MAX_REMEMBERED = 50_000;

/**
 * Reads credentials and remembers them: to read one takes as long as all the rest of a request. They are forgotten when
 * another connection has committed anything, and before a write of this one that may change any; only the time at which a key
 * was last used may be an earlier one.
 *
 * @param transactions the number of transactions begun for reads so far
 */
export function credentialReader(prepare: Prepare, transactions: () => number, report: ReportUnreadable) {
  const remembered = new Map<string, Credential>();
  // Changes with each commit of another connection, of this process or another.
  const selectVersion = prepare('PRAGMA data_version');
  let [version, seen]: [unknown, number] = [undefined, 0];
  const read = credentialFinder(prepare);

  const forgetCredentials = (): void => remembered.clear();

  function forgetIfOthersWrote(): void {
    const count = transactions();
    if (seen === count) return;
    // The first statement of a transaction, which a lock or a fault of the disk may fail: then the next one of it asks again.
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
    // Of a source that does not exist nothing is remembered: a sender could name ever others.
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
    // The columns of a row that the join did not find are null.
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
