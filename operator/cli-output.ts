import { Console } from 'node:console';
import { Writable } from 'node:stream';
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

/** Returns a result as JSON, or as a table or a list of fields. */
export function resultText(result: unknown, json: boolean): string {
  if (json) return `${printableJson(result)}\n`;
  if (Array.isArray(result)) return result.length > 0 ? tableText(result.map(textFields)) : 'none\n';
  const fields = Object.entries(textFields(result));
  return fields.map(([name, value]) => `${name.padEnd(12)} ${value}\n`).join('');
}

/** Returns the findings of `doctor`. */
export function findingsText(findings: readonly Finding[], json: boolean): string {
  if (json) return `${printableJson(findings)}\n`;
  const lines = findings.map(({ what, verdict, says }) => {
    return `${(verdict === 'fault' ? 'FAULT' : verdict).padEnd(8)} ${what.padEnd(22)} ${printable(says)}\n`;
  });
  return lines.join('');
}

function tableText(rows: readonly object[]): string {
  const texts: string[] = [];
  const stream = new Writable({
    write(chunk, _, written) {
      texts.push(String(chunk));
      written();
    },
  });
  new Console(stream).table(rows);
  return texts.join('');
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
