import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseCallers, tokenHash } from '../../src/callers-file.ts';
import { times } from '../support/builders.ts';
import { anAuthority } from '../support/certificates.ts';
import { CLI, executed } from '../support/command-line.ts';
import { arrangeStudio, connectToCore } from '../support/core-clients.ts';
import { grpcCaller, refusalOf } from '../support/grpc.ts';
import { addressOf, run, temporaryFolder } from '../support/processes.ts';

/** The `callers` commands, on a separate file that does not exist yet. */
function commands() {
  const folder = temporaryFolder();
  const path = join(folder, 'callers.json');
  const env = { CORE_CALLERS_FILE: path };
  const cli = async (...args: string[]) => (await executed(CLI, ['--json', 'callers', ...args], { env })).stdout;
  const refused = (...args: string[]) => cli(...args).then(String, ({ code, stderr }) => `${code} ${stderr}`);
  const token = async (...args: string[]): Promise<string> => JSON.parse(await cli('new', ...args)).token;
  return { folder, path, cli, refused, token, entries: () => parseCallers(readFileSync(path, 'utf8')) };
}

test('a caller is added, gets a second token, loses the first, and is removed; no token is stored', async () => {
  const { folder, path, cli, refused, token, entries } = commands();
  expect(await refused('list')).toBe('[]\n');
  expect(await refused('new', 'website')).toMatch(
    /^1 caller website does not exist: to add it, give its roles with --may/,
  );

  const first = await token('website', '--may', 'gateway');
  const crm = await token('crm', '--may', 'crm', 'operator', '--studio', 'studio-1', 'studio-2');
  expect(first).toMatch(/^lic_[\w-]{48}$/);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(entries()).toMatchObject({
    website: { may: ['gateway'], tokens: [{ sha256: tokenHash(first) }] },
    crm: { may: ['crm', 'operator'], studios: ['studio-1', 'studio-2'], tokens: [{ sha256: tokenHash(crm) }] },
  });
  expect(await refused('new', 'website', '--may', 'read')).toMatch(/^1 caller website exists/);
  expect(await refused('retire', 'website')).toMatch(/^1 website has no second token/);

  const second = await token('website');
  expect(await refused('new', 'website')).toMatch(/^1 website has 2 tokens: .*`callers retire website`/);
  const listed = JSON.parse(await cli('list'));
  expect(listed[0].tokens).toEqual([first, second].map((each) => expect.stringContaining(tokenHash(each).slice(0, 8))));
  await cli('retire', 'website');
  expect(entries().website?.tokens).toMatchObject([{ sha256: tokenHash(second) }]);

  const third = await token('website');
  expect(await refused('retire', 'website', '--token', tokenHash(first).slice(0, 8))).toMatch(
    /^1 website has no token/,
  );
  // The newer token, which has leaked.
  await cli('retire', 'website', '--token', tokenHash(third).slice(0, 8));
  expect(entries().website?.tokens).toMatchObject([{ sha256: tokenHash(second) }]);
  await cli('remove', 'website');
  expect(Object.keys(entries())).toEqual(['crm']);
  expect(await refused('remove', 'website')).toMatch(/^1 caller website does not exist/);
  expect(await refused('new', 'Web Site', '--may', 'read')).toMatch(/^1 The file is not a callers file: names have/);
  expect(readFileSync(path, 'utf8')).not.toContain(crm);
  // Refused commands leave no files.
  expect(readdirSync(folder)).toEqual(['callers.json']);
});

test('a caller is added with a certificate; a symbolic link stays one, and a file that is not a callers file is left unchanged', async () => {
  const { folder, path, cli, refused, entries } = commands();
  const authority = await anAuthority('authority');
  const { cert } = await authority.issue('crm of ours', 'client');
  const certificate = join(folder, 'crm.pem');
  const target = join(folder, 'elsewhere.json');
  writeFileSync(certificate, cert);
  writeFileSync(target, '{"callers":{}}');
  symlinkSync(target, path);
  expect(await cli('new', 'crm', '--may', 'crm', '--certificate', certificate)).toBe('');
  expect(entries()).toEqual({ crm: { may: ['crm'], certificateSubject: { CN: 'crm of ours' } } });
  expect(readFileSync(target, 'utf8')).toBe(readFileSync(path, 'utf8'));
  expect(await refused('new', 'other', '--may', 'crm', '--certificate', certificate)).toMatch(
    /twice: for crm and for other/,
  );
  expect(await refused('new', 'other', '--may', 'crm', '--certificate', target)).toMatch(/has no certificate/);
  // A renewed certificate of the same subject changes nothing; another subject is refused.
  expect(await cli('new', 'crm', '--certificate', certificate)).toBe('');
  writeFileSync(join(folder, 'another.pem'), (await authority.issue('crm of others', 'client')).cert);
  expect(await refused('new', 'crm', '--certificate', join(folder, 'another.pem'))).toMatch(
    /a certificate of another subject/,
  );
  expect(entries()).toEqual({ crm: { may: ['crm'], certificateSubject: { CN: 'crm of ours' } } });

  writeFileSync(target, 'something else');
  expect(await refused('new', 'other', '--may', 'crm')).toMatch(/^1 The file is not JSON/);
  expect(readFileSync(target, 'utf8')).toBe('something else');
  expect(await refused('new', 'other', '--may', 'everything')).toMatch(
    /^1 error: .*Allowed choices are gateway, read, crm/,
  );
  expect(existsSync(`${target}.next`)).toBe(false);
});

// @proves secrets-3
test('a token is changed under load without a failed request, and the retired token is refused', async () => {
  const { path, cli, token } = commands();
  const first = await token('website', '--may', 'gateway');
  const crm = await token('crm', '--may', 'crm');
  const DATABASE_URL = `sqlite:${join(temporaryFolder(), 'leads.db')}`;
  const core = run('src/main.ts', { env: { DATABASE_URL, CORE_CALLERS_FILE: path } });
  const CORE_URL = await addressOf(core);
  const tokenFile = join(temporaryFolder(), 'token');
  writeFileSync(tokenFile, first);
  const gateway = run('gateway/main.ts', { env: { CORE_URL, CORE_TOKEN_FILE: tokenFile, QUOTA_LIMIT: '1000000' } });
  const url = await addressOf(gateway);
  const caller = grpcCaller(new URL(CORE_URL).host);
  onTestFinished(() => caller.close());
  const clients = connectToCore(CORE_URL, crm);
  onTestFinished(() => clients.close());
  const { secret } = await arrangeStudio(clients);

  const statuses = new Map<number, number>();
  let isOver = false;
  const load = times(4, async () => {
    while (!isOver) {
      const { status } = await fetch(`${url}/v1/integrations/leads`, {
        headers: { authorization: `Bearer ${secret}` },
      });
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  });
  const served = () => statuses.get(200) ?? 0;
  const moreServed = async () => {
    const before = served();
    await expect.poll(served).toBeGreaterThan(before + 50);
  };
  await moreServed();
  const second = await token('website');
  await core.printed(/callers reloaded/);
  writeFileSync(tokenFile, second);
  await gateway.printed(/tokens for the core reloaded/);
  await cli('retire', 'website');
  const byFirst = () =>
    caller.call(
      'ApiKeyService/AuthenticateApiKey',
      { secretSha256: Buffer.alloc(32) },
      { authorization: `Bearer ${first}` },
    );
  await expect.poll(async () => (await refusalOf(byFirst())).reason).toBe('CALLER_UNAUTHENTICATED');
  await moreServed();
  isOver = true;
  await Promise.all(load);
  expect([...statuses.keys()]).toEqual([200]);
});
