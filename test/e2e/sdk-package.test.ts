import { execFile } from 'node:child_process';
import { copyFileSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { codeSamplesIn } from '../support/code-samples.ts';
import { ROOT, temporaryFolder } from '../support/processes.ts';
import { aService } from '../support/service.ts';

const run = promisify(execFile);

const service = aService();

/** The machine's own Node and npm, as a website's server has them; not those that this project brings along. */
const ownPath = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter);

test('the package does what its README and the reference show, in plain JavaScript and checked by TypeScript', {
  timeout: 120_000,
}, async () => {
  const { studioId, secret } = await service.aStudioWithKey();
  const [, example = ''] =
    /<!-- example -->\n```js\n([\s\S]*?)```/.exec(readFileSync(join(ROOT, 'sdk/README.md'), 'utf8')) ?? [];
  const folder = temporaryFolder();
  const packed = join(folder, 'packed');
  const website = join(folder, 'website');
  for (const each of [packed, website]) mkdirSync(each);
  const options = {
    cwd: website,
    env: { ...process.env, PATH: ownPath, LEAD_INTAKE_URL: service.url, LEAD_INTAKE_KEY: secret },
  };
  const tsc = join(ROOT, 'node_modules/.bin/tsc');

  await run(tsc, ['-p', join(ROOT, 'sdk'), '--outDir', join(packed, 'dist')]);
  copyFileSync(join(ROOT, 'sdk/package.json'), join(packed, 'package.json'));
  const { stdout: tarball } = await run('npm', ['pack', packed, '--silent'], options);
  writeFileSync(join(website, 'package.json'), '{ "type": "module" }');
  await run('npm', ['install', '--offline', '--no-audit', '--silent', `./${tarball.trim()}`], options);
  const installed = globSync('**/*.js', { cwd: join(website, 'node_modules/lead-intake-sdk') });
  expect(installed.filter((file) => dirname(file) !== 'dist')).toEqual([]);
  writeFileSync(join(website, 'example.js'), example);
  writeFileSync(
    join(website, 'visit.js'),
    `import { names, onContactForm } from './example.js';
    const key = crypto.randomUUID();
    console.log(await onContactForm('Grace', 'grace@example.com', key));
    console.log(await onContactForm('Grace', 'grace@example.com', key));
    console.log(await onContactForm('Grace', 'grace@example.com'));
    console.log((await names()).join());`,
  );
  const { stdout } = await run('node', ['visit.js'], options);

  const [first = '', ...others] = stdout.trim().split('\n');
  const [, id] = /^lead (\S+)$/.exec(first) ?? [];
  expect(others).toEqual([`lead ${id}`, `open already: ${id}`, 'Grace']);
  expect(await service.countLeads(studioId)).toBe(1);

  const other = await service.aStudioWithKey();
  const samples = codeSamplesIn('javascript', service.url);
  const runSample = async (name: string, source: string) => {
    for (const ending of ['js', 'ts']) writeFileSync(join(website, `${name}.${ending}`), source);
    const env = { ...options.env, LEAD_INTAKE_KEY: other.secret };
    return (await run('node', [`${name}.js`], { ...options, env })).stdout.trim();
  };
  const created = await runSample('create', samples.create);
  expect(await runSample('read', samples.read(created))).toBe('new');
  expect(await runSample('list', samples.list)).toBe('Grace Hopper');

  writeFileSync(
    join(website, 'example.ts'),
    example.replace('displayName, email', 'displayName: string, email: string'),
  );
  writeFileSync(
    join(website, 'wrong.ts'),
    `import { createLeadIntakeClient } from 'lead-intake-sdk';
    const client = createLeadIntakeClient({ baseUrl: '', apiKey: '' });
    await client.createLead({ displayName: 'Grace', contact: { type: 'fax', value: '1' } });`,
  );
  const check = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node'];
  const types = ['--typeRoots', join(ROOT, 'node_modules/@types')];
  await run(tsc, [...check, ...types, 'example.ts', 'create.ts', 'read.ts', 'list.ts'], options);
  await expect(run(tsc, [...check, ...types, 'wrong.ts'], options)).rejects.toMatchObject({
    stdout: expect.stringMatching(/^wrong\.ts\(3,[\s\S]*"fax"[\s\S]*$/),
  });
});
