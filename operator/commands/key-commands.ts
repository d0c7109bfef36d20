import { createReadStream } from 'node:fs';
import { Argument, type Command, Option } from 'commander';
import { API_KEY_SCOPES, type ApiKey, type ApiKeyScope } from '../../src/domain/api-key.ts';
import { eachPage } from '../../src/domain/cursor.ts';
import { type FoundSecret, findLeakedKeys } from '../../src/usecases/authenticate-api-key.ts';
import {
  createApiKey,
  expiringApiKeys,
  listApiKeys,
  putApiKeyQuota,
  replaceApiKey,
  revokeApiKey,
} from '../../src/usecases/manage-api-keys.ts';
import { BY_HAND } from '../command.ts';
import { readPieces } from '../lines.ts';
import {
  AUDITED_MEMBER,
  DEFAULT_QUOTA_HELP,
  daysFromNow,
  type QuotaOption,
  quotaOption,
  wholeNumber,
} from './options.ts';
import { isJson, program, runOnStore, showSecret } from './program.ts';

const MANAGER = ['--member <id>', 'owner or admin of the studio who issues the secret'] as const;
const MANAGER_OR_OPERATOR = [
  '--member <id>',
  'owner or admin of the studio on whose behalf to act (default: the operator)',
] as const;
const DAYS = ['--days <number>', 'validity from now, in days', wholeNumber] as const;

interface CreateKeyOptions {
  readonly member: string;
  readonly name: string;
  readonly scope: ApiKeyScope[];
  readonly days: number;
}

export function addKeyCommands(): void {
  const keys = program.command('keys').description('manage the API keys of a studio');
  keys
    .command('create <studio>')
    .description('issue a key; its secret is printed once and cannot be shown again')
    .requiredOption(...MANAGER)
    .requiredOption('--name <name>', 'display name')
    .addOption(
      new Option('--scope <scope...>', 'operations that the key allows')
        .choices(API_KEY_SCOPES)
        .default(API_KEY_SCOPES),
    )
    .option(...DAYS, 365)
    .action(createKey);
  addListCommand(keys);
  keys
    .command('ending')
    .description(
      'list the valid keys of all studios that end soon, the next to end first; print nothing if there is none',
    )
    .option('--days <number>', 'how soon, in days', wholeNumber, 30)
    .action(({ days }: { days: number }) =>
      runOnStore(async (deps) => {
        const keys = await expiringApiKeys(deps, daysFromNow(days));
        // Prints nothing without keys: cron mails any output.
        return keys.length > 0 || isJson() ? keys.map(endingKey) : undefined;
      }),
    );
  keys
    .command('replace <studio> <key>')
    .description('issue a new secret for a key, printed once; the old secret stops working immediately')
    .requiredOption(...MANAGER)
    .option(...DAYS)
    .action(replaceKey);
  keys
    .command('revoke <studio> <key>')
    .description('revoke a key permanently')
    .option(...MANAGER_OR_OPERATOR)
    .action((studioId: string, keyId: string, { member = null }: { member?: string | null }) =>
      runOnStore(async (deps) =>
        publicKey(await revokeApiKey(deps, { studioId, memberId: member, keyId, ...BY_HAND })),
      ),
    );
  keys
    .command('find')
    .description('identify the keys whose secrets appear in a file or on standard input')
    .argument('[file]', 'file to search, such as a log (default: standard input)')
    .addHelpText(
      'after',
      '\nSecrets are not arguments, because other users of the machine can see those.\nThey are never printed.',
    )
    .action((file: string | undefined) =>
      runOnStore(async (deps) => {
        const input = file === undefined ? process.stdin : createReadStream(file);
        const { found, misspelt } = await findLeakedKeys(deps, readPieces(input));
        if (misspelt > 0) console.error(`ignored ${misspelt} strings that look like secrets: wrong checksums`);
        return found.map(foundSecret);
      }),
    );
  keys
    .command('quota <studio> <key>')
    .description('set the quota of a key; every gateway applies it within a minute')
    .addArgument(new Argument('<number>', `requests per window; ${DEFAULT_QUOTA_HELP}`).argParser(quotaOption))
    .option(...AUDITED_MEMBER)
    .action((studioId: string, keyId: string, quota: QuotaOption, { member: memberId }: { member?: string }) =>
      runOnStore(async (deps) => {
        const quotaLimit = quota === 'default' ? undefined : quota;
        return publicKey(await putApiKeyQuota(deps, { studioId, keyId, quotaLimit, memberId, ...BY_HAND }));
      }),
    );
}

function createKey(studioId: string, { member: memberId, name, scope: scopes, days }: CreateKeyOptions): Promise<void> {
  return runOnStore(async (deps) => {
    const expiresAt = daysFromNow(days);
    const { key, secret } = await createApiKey(deps, { studioId, memberId, name, scopes, expiresAt, ...BY_HAND });
    await showSecret({ ...publicKey(key), secret }, async () => {
      await revokeApiKey(deps, { studioId, memberId: null, keyId: key.id, ...BY_HAND });
      return `the key ${key.id} was revoked, because its secret is lost`;
    });
  });
}

function replaceKey(
  studioId: string,
  keyId: string,
  { member: memberId, days }: { readonly member: string; readonly days?: number },
): Promise<void> {
  return runOnStore(async (deps) => {
    const expiresAt = days === undefined ? undefined : daysFromNow(days);
    const { key, secret } = await replaceApiKey(deps, { studioId, memberId, keyId, expiresAt, ...BY_HAND });
    // The old secret no longer works in any case.
    const lost = `the new secret of the key ${key.id} is lost, and the old one no longer works: replace it again`;
    await showSecret({ ...publicKey(key), secret }, async () => lost);
  });
}

function addListCommand(keys: Command): void {
  keys
    .command('list <studio>')
    .description('list the keys of a studio, without their secrets: all valid ones, and the newest of the others')
    .option(...MANAGER_OR_OPERATOR)
    .option('--all', 'list every key that the studio ever had')
    .action((studioId: string, { member = null, all = false }: { member?: string | null; all?: boolean }) =>
      runOnStore(async (deps) => {
        const keys: ApiKey[] = [];
        for await (const page of eachPage((pageToken) =>
          listApiKeys(deps, { studioId, memberId: member, pageToken }),
        )) {
          keys.push(...page.apiKeys);
          if (all || page.nextPageToken === '') continue;
          console.error('older keys that are no longer valid are left out: --all lists them');
          break;
        }
        return keys.map(publicKey);
      }),
    );
}

const publicKey = ({ secretSha256: _, ...key }: ApiKey) => key;

/** Describes a key for an email to its studio. */
function endingKey({ expiresAt, studioId, id: keyId, name, memberId: issuer, scopes, secretHint, lastUsedAt }: ApiKey) {
  return { expiresAt, studioId, keyId, name, issuer, scopes, secretHint, lastUsedAt };
}

/** Describes a found secret: the key to revoke, its owner, and its access. */
function foundSecret(found: FoundSecret) {
  const { secretHint } = found;
  if (found.key === null) return { secretHint, opens: 'nothing: it is unknown, or was replaced' };
  const { key, studio, isValid } = found;
  const { id: keyId, name, memberId: issuer, scopes, createdAt, expiresAt, revokedAt, lastUsedAt } = key;
  const opens = isValid ? scopes.join(', ') : 'nothing at the moment';
  return { secretHint, opens, studioId: studio.id, keyId, name, issuer, lastUsedAt, createdAt, expiresAt, revokedAt };
}
