import { printable, printableJson } from '../common/printable.ts';
import type { ApiKey } from '../src/domain/api-key.ts';
import type { Lead } from '../src/domain/lead.ts';
import type { Studio } from '../src/domain/studio.ts';
import type { FoundSecret } from '../src/usecases/find-leaked-keys.ts';
import type { Finding } from './doctor/finding.ts';

/** Returns a key without the hash of its secret. */
export function publicKey({ secretSha256, ...key }: ApiKey): Omit<ApiKey, 'secretSha256'> {
  return key;
}

/** Describes a found secret: the key to revoke, its owner, and what it gives access to. */
export function foundSecret(found: FoundSecret) {
  const { secretHint } = found;
  if (found.key === null) return { secretHint, opens: 'nothing: it is unknown, or was replaced' };
  const { key, studio, isValid } = found;
  const { id: keyId, name, memberId: issuer, scopes, createdAt, expiresAt, revokedAt, lastUsedAt } = key;
  const opens = isValid ? scopes.join(', ') : 'nothing at the moment';
  return { secretHint, opens, studioId: studio.id, keyId, name, issuer, lastUsedAt, createdAt, expiresAt, revokedAt };
}

/** Returns a studio's record without internal fields. */
export function publicStudio({ id, status, regionCode, quotaLimit }: Studio): Omit<Studio, 'formerRegions'> {
  return { id, status, regionCode, quotaLimit };
}

/** Returns the columns of a lead for a table, without the note, which would be too wide. */
export function listedLead({ id, displayName, contact, stage, createdAt }: Lead) {
  return { id, displayName, contact, stage, createdAt };
}

/** Prints a result: as JSON, or as a table or a list of fields. */
export function show(result: unknown, json: boolean): void {
  if (json) console.log(printableJson(result));
  else if (Array.isArray(result) && result.length > 0) console.table(result.map(textFields));
  else if (Array.isArray(result)) console.log('none');
  else for (const [name, value] of Object.entries(textFields(result))) console.log(`${name.padEnd(12)} ${value}`);
}

/** Prints the findings of `doctor`. */
export function showFindings(findings: readonly Finding[], json: boolean): void {
  if (json) console.log(printableJson(findings));
  else {
    for (const { what, verdict, says } of findings) {
      console.log(`${(verdict === 'fault' ? 'FAULT' : verdict).padEnd(8)} ${what.padEnd(22)} ${printable(says)}`);
    }
  }
}

function textFields(record: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(record as object).map(([name, value]) => [name, textOf(value)]));
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return '-';
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map(textOf).join(', ');
  return typeof value === 'object' ? Object.values(value).map(textOf).join(' ') : printable(String(value));
}
