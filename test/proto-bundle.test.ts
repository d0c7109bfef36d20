import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFileRegistry, type DescService, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { aCreateLeadRequest, CONTRACT_RPCS, CORE_TOKEN, grpcCaller, startTestCore } from './support/grpc.ts';
import { commandsIn, runCommands } from './tools/commands.ts';
import { ROOT, temporaryFolder } from './tools/processes.ts';
import { describeIf, hasCommand } from './tools/servers.ts';

const README = readFileSync(join(ROOT, 'proto/README.md'), 'utf8');

const makeBundle = (folder: string) =>
  execFileSync('npm', ['run', '--silent', 'proto:bundle', '--', folder], { cwd: ROOT, stdio: 'pipe' });

/** Returns the contents of a folder's files by path, in base64. */
function readContents(folder: string): Record<string, string> {
  const files = globSync('**', { cwd: folder, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map(({ parentPath, name }) => join(parentPath, name));
  return Object.fromEntries(paths.map((path) => [path.slice(folder.length + 1), readFileSync(path, 'base64')]));
}

const bundle = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
beforeAll(() => void makeBundle(bundle));
afterAll(() => rmSync(bundle, { recursive: true }));

const read = (path: string) => readFileSync(join(bundle, path), 'utf8');

// @proves clients-5
describe('the bundle of the contract', () => {
  test('the bundle has every file of the contract, their imports, and third-party licences', () => {
    const ours = globSync('leadintake/v1/*.proto', { cwd: join(ROOT, 'proto') });
    const others = [
      'buf/validate/validate.proto',
      ...['google/rpc/LICENSE', 'google/rpc/error_details.proto', 'google/rpc/status.proto'],
    ];
    expect(Object.keys(readContents(bundle)).toSorted()).toEqual(
      [...ours, ...others, 'README.md', 'lead-intake.binpb', 'service-config.json'].toSorted(),
    );
    for (const path of ours) expect(read(path)).toBe(readFileSync(join(ROOT, 'proto', path), 'utf8'));
    for (const licence of others.filter((path) => path.endsWith('LICENSE'))) expect(read(licence)).toContain('Apache');
  });

  test('a bundle that is built again has the same bytes, in any folder', () => {
    const again = join(temporaryFolder(), 'again');
    mkdirSync(again);
    makeBundle(again);
    expect(readContents(again)).toEqual(readContents(bundle));
    writeFileSync(join(again, 'left-over.proto'), 'syntax = "proto3";');
    makeBundle(again);
    expect(readContents(again)).toEqual(readContents(bundle));
  });

  test('the bundle contains a descriptor set with the comments of the contract', () => {
    const set = fromBinary(FileDescriptorSetSchema, readFileSync(join(bundle, 'lead-intake.binpb')));
    const ours = set.file.filter(({ package: name }) => name === 'leadintake.v1');
    expect(ours.length).toBe(globSync('proto/leadintake/v1/*.proto', { cwd: ROOT }).length);
    const comments = ours.flatMap(({ sourceCodeInfo }) => sourceCodeInfo?.location ?? []);
    expect(comments.map(({ leadingComments }) => leadingComments)).toContainEqual(
      expect.stringContaining('The same on every retry'),
    );
    expect(createFileRegistry(set).getMessage('google.rpc.ErrorInfo')).toBeDefined();
  });
});

// @proves clients-5
describeIf(hasCommand('protoc'), 'protoc, with the bundle alone', 'install protobuf-compiler', () => {
  test('protoc compiles the bundle in an empty folder', async () => {
    const folder = temporaryFolder();
    cpSync(bundle, folder, { recursive: true });
    const outcome = await runCommands(`cd ${folder}\n${commandsIn(README, 'protoc')}`);
    expect(outcome).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(globSync('out/**/*_pb2.py', { cwd: folder }).length).toBe(globSync('**/*.proto', { cwd: folder }).length);
  });
});

// @proves clients-5
describeIf(hasCommand('grpcurl'), 'grpcurl, with the descriptor set', 'install grpcurl', () => {
  test('grpcurl with the descriptor set lists the commented methods and calls a core', async () => {
    const core = await startTestCore();
    onTestFinished(() => core.stop());
    const caller = grpcCaller(`127.0.0.1:${core.port}`);
    onTestFinished(() => caller.close());
    await caller.call('DirectoryService/PutStudio', { studio: { id: 'demo', status: 'STUDIO_STATUS_ACTIVE' } });
    await caller.call('LeadIntakeService/CreateLead', aCreateLeadRequest('demo', { displayName: 'Mary Shelley' }));

    const { status, stdout } = await runCommands(`cd ${bundle}\n${commandsIn(README, 'grpcurl')}`, {
      CORE_TOKEN,
      CORE_ADDRESS: `127.0.0.1:${core.port}`,
    });

    expect(status).toBe(0);
    expect(stdout).toContain('leadintake.v1.DirectoryService\n');
    expect(stdout).toContain('// Creates a lead, or replays an earlier creation');
    expect(stdout).toContain('"displayName": "Mary Shelley"');
  });
});

// @proves clients-6
describe('the service config', () => {
  const [{ name: named, retryPolicy }] = JSON.parse(readFileSync(join(ROOT, 'proto/service-config.json'), 'utf8'))
    .methodConfig as [{ name: { service: string; method: string }[]; retryPolicy: object }];
  const repeated = named.map(({ service, method }) => `${service.replace('leadintake.v1.', '')}/${method}`);
  const rows = [...README.matchAll(/^\| (`[A-Z].*?) \|/gm)].map(([, cell = '']) => cell);
  const notRepeated = rows.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, method = '']) => method));

  test('the service config names each method that may be retried, and proto/README.md the others', () => {
    expect(repeated.filter((rpc) => !CONTRACT_RPCS.includes(rpc))).toEqual([]);
    const others = CONTRACT_RPCS.filter((rpc) => !repeated.includes(rpc)).map((rpc) => rpc.split('/')[1]);
    expect(notRepeated.toSorted()).toEqual(others.toSorted());
    expect(retryPolicy).toMatchObject({ maxAttempts: 5, retryableStatusCodes: ['UNAVAILABLE'] });
  });

  /** Methods declared idempotent whose repetition would also affect what others wrote in between. */
  const REACHING_LATER_WRITES = [
    'LeadIntakeService/EraseContact',
    'LeadIntakeService/ResendLeads',
    'ConsumerService/CreateConsumer',
    'ConsumerService/RemoveConsumer',
    'ConsumerService/SetAsideLeadChanges',
    'ConsumerService/TakeBackLeadChanges',
  ];

  test('the service config retries every idempotent unary method, and no stream', () => {
    const set = fromBinary(FileDescriptorSetSchema, readFileSync(join(bundle, 'lead-intake.binpb')));
    const services = [...createFileRegistry(set)].filter((type): type is DescService => type.kind === 'service');
    for (const service of services) {
      for (const { name, methodKind, idempotency } of service.methods) {
        const rpc = `${service.name}/${name}`;
        if (methodKind !== 'unary' || REACHING_LATER_WRITES.includes(rpc)) expect(repeated).not.toContain(rpc);
        else if (idempotency !== 0) expect(repeated).toContain(rpc);
      }
    }
  });
});
