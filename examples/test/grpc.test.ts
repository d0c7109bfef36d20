import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { enumToJson } from '@bufbuild/protobuf';
import { afterAll, beforeAll, expect, onTestFinished, type TestContext, test, vi } from 'vitest';
import { ConsumerStart } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { LeadStage, LeadStageSchema } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { deployApart } from '../../test/crash/deployment.ts';
import { times } from '../../test/support/builders.ts';
import { arrangeStudio, connectToCore } from '../../test/support/core-clients.ts';
import { CORE_TOKEN, type GrpcCaller, grpcCaller, startTestCore, type TestCore } from '../../test/support/grpc.ts';
import {
  describeWithTools,
  findCommands,
  type Outcome,
  runCommands,
  startCommands,
} from '../../test/tools/commands.ts';
import { run, temporaryFolder } from '../../test/tools/processes.ts';
import { startProxy, type TcpProxy } from '../../test/tools/tcp-proxy.ts';

/** The tools that each language's examples need. They fetch their packages from the registries that the machine is configured for. */
const TOOLS = {
  typescript: [],
  python: [`python3 -c 'import ensurepip'`],
  go: ['go -C examples/grpc/go list -m'],
  java: ['mvn --version', 'java --version'],
  // Rust compiles for a minute of processor time.
  ...(process.env.SOAK && { rust: ['cargo --version'] }),
  ruby: ['ruby -e \'require "grpc"\'', 'grpc_tools_ruby_protoc --version'],
};

/** Programs whose library retries calls automatically, by the service config. */
const RETRYING = /^(examples\/grpc\/go\/bin\/grpc|java|ruby) ?/;

// Fetching and compiling without caches is slow on a busy machine, and so are the programs.
vi.setConfig({ hookTimeout: 600_000 });

let core: TestCore;
let caller: GrpcCaller;
const proxies: TcpProxy[] = [];
beforeAll(async () => {
  expect(await runCommands(findCommands('bundle'))).toMatchObject({ status: 0 });
  core = await startTestCore();
  caller = grpcCaller(`127.0.0.1:${core.port}`);
});
afterAll(async () => {
  caller.close();
  await Promise.all(proxies.map((proxy) => proxy.stop()));
  await core.stop();
});

/** Creates a studio with leads. */
async function aStudioWithLeads(count: number): Promise<string> {
  const id = `studio-${randomUUID()}`;
  await caller.call('DirectoryService/PutStudio', { studio: { id, status: 'STUDIO_STATUS_ACTIVE' } });
  for (const key of times(count, () => randomUUID())) {
    const contact = { email: `${key}@example.org` };
    const request = { studioId: id, idempotencyKey: key, displayName: 'Ada Lovelace', contact };
    await caller.call('LeadIntakeService/CreateLead', request);
  }
  return id;
}

/** Expects the output of a successful example. */
function expectAllDone({ status, stdout, stderr }: Outcome, leads: number): void {
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  const [, id] = /^created (\S+)\n/.exec(stdout) ?? [];
  expect(stdout).toBe(`created ${id}\nreplayed ${id}\nrefused IDEMPOTENCY_CONFLICT\nlisted ${leads}\n`);
}

/** Runs a consumer that keeps a copy, and kills it and the core while leads are created, moved, corrected and erased. */
async function expectEqualCopy(commands: string): Promise<void> {
  const folder = temporaryFolder();
  const copyPath = join(folder, 'copy.db');
  const env = { DATABASE_URL: `sqlite:${join(folder, 'leads.db')}`, CORE_TOKEN, LOG_LEVEL: 'silent' };
  const deployment = await deployApart(env);
  const clients = connectToCore(deployment.coreUrl, CORE_TOKEN);
  onTestFinished(() => clients.close());
  const { leads } = clients;
  const { studioId } = await arrangeStudio(clients);
  const startConsumer = () => {
    const child = startCommands(commands.replace('COPY=copy.db ', ''), {
      CORE_ADDRESS: new URL(deployment.coreUrl).host,
      CORE_TOKEN,
      COPY: copyPath,
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    return child;
  };
  const known: string[] = [];
  let isOver = false;
  const writing = (async () => {
    for (let step = 0; !isOver; step += 1) {
      const leadId = known[step % known.length] ?? '';
      const [lead, stage] = [{ id: leadId, displayName: `Ada ${step}` }, step % 2 ? LeadStage.WON : LeadStage.NEW];
      const works = [
        async () => {
          const contact = { value: { case: 'email', value: `${randomUUID()}@example.org` } } as const;
          const request = { studioId, idempotencyKey: randomUUID(), displayName: 'Ada', contact };
          known.push((await leads.createLead(request, { timeoutMs: 3000 })).lead?.id ?? '');
        },
        () => leads.changeLeadStage({ studioId, leadId, stage }, { timeoutMs: 3000 }),
        () => leads.updateLead({ studioId, lead }, { timeoutMs: 3000 }),
        () => (step % 20 === 3 ? leads.eraseLead({ studioId, leadId }, { timeoutMs: 3000 }) : Promise.resolve()),
      ];
      await works[step % works.length]?.().catch(() => {});
      // Writes must be continuous, not many.
      await sleep(20);
    }
  })();

  let consumer = startConsumer();
  for (const _ of times(3, () => 0)) {
    await sleep(1000);
    consumer.kill('SIGKILL');
    await deployment.kill('core');
    await deployment.restart('core');
    consumer = startConsumer();
    await deployment.serves();
  }
  // On a busy machine, wait for enough leads to make the comparison meaningful.
  await vi.waitUntil(() => known.length >= 30, { timeout: 60_000 });
  isOver = true;
  await writing;

  const stored = new Map<string, string>();
  for await (const page of leads.exportLeads({ studioId })) {
    for (const { id, displayName, contact, stage } of page.leads) {
      stored.set(id, `${displayName} ${contact?.value.value} ${enumToJson(LeadStageSchema, stage)}`);
    }
  }
  expect(stored.size).toBeGreaterThan(5);
  const copied = () => {
    const copy = new DatabaseSync(copyPath, { readOnly: true });
    const rows = copy.prepare("SELECT * FROM leads WHERE contact <> ''").all();
    copy.close();
    return new Map(rows.map(({ id, display_name, contact, stage }) => [id, `${display_name} ${contact} ${stage}`]));
  };
  await expect.poll(copied, { timeout: 40_000, interval: 500 }).toEqual(stored);
}

/** Runs a consumer that keeps a copy of a database, which loses the writes since a backup. */
async function expectForgotten(commands: string): Promise<void> {
  const folder = temporaryFolder();
  const [path, copyPath, backup] = ['leads.db', 'copy.db', 'backup.db'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const DATABASE_URL = `sqlite:${path}`;
  const deployment = await deployApart({ DATABASE_URL, CORE_TOKEN, LOG_LEVEL: 'silent' });
  const clients = connectToCore(deployment.coreUrl, CORE_TOKEN);
  onTestFinished(() => clients.close());
  const { studioId } = await arrangeStudio(clients);
  const create = async () => {
    const contact = { value: { case: 'email', value: `${randomUUID()}@example.org` } } as const;
    const request = { studioId, idempotencyKey: randomUUID(), displayName: 'Ada', contact };
    return (await clients.leads.createLead(request)).lead?.id ?? '';
  };
  const child = startCommands(commands.replace('COPY=copy.db ', ''), {
    CORE_ADDRESS: new URL(deployment.coreUrl).host,
    CORE_TOKEN,
    COPY: copyPath,
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const copied = () => {
    using copy = new DatabaseSync(copyPath, { timeout: 10_000 });
    const rows = copy.prepare('SELECT id, stage FROM leads').all();
    return new Map(rows.map(({ id, stage }) => [id, stage]));
  };
  const operate = async (...args: string[]) => {
    const command = run('operator/cli.ts', { args, env: { DATABASE_URL } });
    expect(await command.ended(), command.output()).toBe(0);
  };
  const [kept, moved] = [await create(), await create()];
  const before = new Map([kept, moved].map((id) => [id, 'LEAD_STAGE_NEW']));
  await expect.poll(() => existsSync(copyPath) && copied(), { timeout: 40_000 }).toEqual(before);
  await operate('backup', backup);
  const lost = await create();
  await clients.leads.changeLeadStage({ studioId, leadId: moved, stage: LeadStage.WON });
  const since = new Map([...before, [moved, 'LEAD_STAGE_WON'], [lost, 'LEAD_STAGE_NEW']]);
  await expect.poll(copied, { timeout: 40_000 }).toEqual(since);

  await deployment.kill('core');
  for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true });
  copyFileSync(backup, path);
  await operate('restored');
  await deployment.restart('core');
  await deployment.serves();
  const later = await create();
  await expect.poll(copied, { timeout: 40_000 }).toEqual(new Map([...before, [later, 'LEAD_STAGE_NEW']]));

  // Another program with this copy knows of a newer restore: earlier changes in flight are left to be sent again.
  using copy = new DatabaseSync(copyPath, { timeout: 10_000 });
  copy.exec('INSERT INTO epochs (epoch) SELECT max(epoch) + 1 FROM epochs');
  const onItsWay = await create();
  await sleep(3000);
  expect(copied().has(onItsWay)).toBe(false);
  const { changes } = await clients.leads.pullLeadChanges({});
  expect(changes.map(({ lead }) => lead?.id)).toEqual([onItsWay]);
}

/** Runs a named consumer that cannot store one lead, until somebody repairs the copy and asks for the lead again. */
async function expectSetAside(commands: string): Promise<void> {
  const folder = temporaryFolder();
  const copyPath = join(folder, 'copy.db');
  const clients = connectToCore(`http://127.0.0.1:${core.port}`, CORE_TOKEN);
  onTestFinished(() => clients.close());
  const { studioId } = await arrangeStudio(clients);
  const consumer = `copy-${randomUUID()}`;
  const request = { consumer: { name: consumer, studioIds: [studioId] }, start: ConsumerStart.NOW };
  await clients.consumers.createConsumer(request);
  const child = startCommands(commands.replace('COPY=copy.db ', ''), {
    CORE_ADDRESS: `127.0.0.1:${core.port}`,
    CORE_TOKEN,
    CONSUMER: consumer,
    COPY: copyPath,
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const inCopy = <Result>(work: (copy: DatabaseSync) => Result) => {
    const copy = new DatabaseSync(copyPath, { timeout: 10_000 });
    try {
      return work(copy);
    } finally {
      copy.close();
    }
  };
  const names = () =>
    inCopy((copy) =>
      copy
        .prepare('SELECT display_name AS name FROM leads')
        .all()
        .map(({ name }) => name),
    );
  await expect.poll(() => existsSync(copyPath) && names(), { timeout: 40_000 }).toEqual([]);
  inCopy((copy) =>
    copy.exec(
      `CREATE TRIGGER refused BEFORE INSERT ON leads WHEN NEW.display_name = 'Ada' BEGIN SELECT RAISE(ABORT, 'no'); END`,
    ),
  );
  for (const displayName of ['Ada', 'Grace']) {
    const contact = { value: { case: 'email', value: `${randomUUID()}@example.org` } } as const;
    await clients.leads.createLead({ studioId, idempotencyKey: randomUUID(), displayName, contact });
  }
  await expect.poll(names, { timeout: 40_000 }).toEqual(['Grace']);
  const listed = async () => (await clients.consumers.listSetAsideLeadChanges({ consumer })).leads;
  await expect.poll(listed).toMatchObject([{ studioId, reason: 'CANNOT_STORE', attempts: 1, retryTime: {} }]);
  inCopy((copy) => copy.exec('DROP TRIGGER refused'));
  await clients.consumers.takeBackLeadChanges({ consumer, all: true });
  await expect.poll(async () => names().toSorted(), { timeout: 40_000 }).toEqual(['Ada', 'Grace']);
  await expect.poll(listed).toEqual([]);
  await clients.consumers.removeConsumer({ consumer });
}

/** The result of installing each language's packages. */
const installs = new Map<string, Outcome>();

/** Skips the test when the packages could not be installed, for instance offline; in CI that is a failure. */
function requireInstalled(language: string, { skip }: TestContext): void {
  const outcome = installs.get(language);
  if (outcome?.status === 0) return;
  const reason = `${language} lacks its packages: ${outcome?.stderr || outcome?.stdout}`;
  // Without an outcome, a tool is missing, so nothing was installed.
  if (outcome && process.env.CI === 'true') throw new Error(reason);
  console.warn(`NOT RUN: ${reason}`);
  skip(reason);
}

for (const [language, tools] of Object.entries(TOOLS)) {
  // @proves clients-6
  describeWithTools(tools, `gRPC examples in ${language}`, () => {
    beforeAll(async () => {
      installs.set(language, await runCommands(findCommands(`${language}-get`)));
    });

    const requirePackages = (context: TestContext) => requireInstalled(language, context);

    for (const command of findCommands(`${language}-run`).trim().split('\n')) {
      const run = (env: Record<string, string>) =>
        runCommands(command, { CORE_ADDRESS: `127.0.0.1:${core.port}`, CORE_TOKEN, ...env });

      test(`creates a lead once and lists all pages although responses are lost: ${command}`, async (context) => {
        requirePackages(context);
        const STUDIO_ID = await aStudioWithLeads(4);
        const proxy = await startProxy('127.0.0.1', core.port);
        proxies.push(proxy);
        const retries = RETRYING.test(command);
        let isCreated = false;
        // The first bytes returned over HTTP/2 need not be the response: give the core time to execute the request.
        proxy.loseReplies({
          of(bytes) {
            if (!bytes.includes('@example.com')) return retries && bytes.includes(STUDIO_ID);
            const isFirst = !isCreated;
            isCreated = true;
            return isFirst;
          },
          count: retries ? 3 : 1,
          afterMs: 300,
        });

        const outcome = await run({ STUDIO_ID, CORE_ADDRESS: `127.0.0.1:${proxy.port}` });

        expect(proxy.lost()).toBe(retries ? 3 : 1);
        expectAllDone(outcome, 5);
      });
    }

    if (language === 'python') {
      test('the standard health client sees a core serve, and sees it stop while it still responds', async (context) => {
        requirePackages(context);
        const stopping = await startTestCore({ SHUTDOWN_DRAIN_MS: '5000' });
        let stopped: Promise<void> | undefined;

        const outcome = await runCommands(
          findCommands('health-run'),
          { CORE_ADDRESS: `127.0.0.1:${stopping.port}` },
          () => {
            stopped ??= stopping.stop();
          },
        );

        await stopped;
        expect(outcome).toEqual({
          status: 0,
          stdout: 'watched SERVING checked SERVING\nwatched NOT_SERVING checked NOT_SERVING\n',
          stderr: '',
        });
      });
    }
  });
}

for (const language of ['typescript', 'python']) {
  // @proves leads-34
  test(`a nightly load in ${language} loads the changes since the previous one`, async (context) => {
    requireInstalled(language, context);
    const [report, studioId] = [join(temporaryFolder(), 'report.db'), await aStudioWithLeads(3)];
    const command = findCommands(`${language}-load`).replace('REPORT=report.db ', '');
    const env = { CORE_ADDRESS: `127.0.0.1:${core.port}`, CORE_TOKEN, REPORT: report };
    const load = () => runCommands(command, env);
    const stages = () => {
      using database = new DatabaseSync(report);
      // This has the effect of a day between the loads.
      database.exec('UPDATE loads SET began_ms = began_ms + 300000');
      return database.prepare('SELECT id, stage FROM leads WHERE studio_id = ? ORDER BY id').all(studioId);
    };
    expect(await load()).toMatchObject({ status: 0, stderr: '' });
    const before = stages();
    expect(before.map(({ stage }) => stage)).toEqual(times(3, () => 'LEAD_STAGE_NEW'));

    const leadId = before[1]?.id as string;
    await caller.call('LeadIntakeService/ChangeLeadStage', { studioId, leadId, stage: 'LEAD_STAGE_WON' });
    expect(await load()).toEqual({ status: 0, stderr: '', stdout: 'loaded 1\n' });
    expect(stages()).toEqual(
      before.map((lead) => (lead.id === leadId ? { id: leadId, stage: 'LEAD_STAGE_WON' } : lead)),
    );
  });
}

// Sequential and after the others: each test stops the processes that it starts.
for (const language of ['typescript', 'python']) {
  // @proves feed-3
  test(`a copy in ${language} equals the store after repeated kills of it and of the core`, async (context) => {
    requireInstalled(language, context);
    await expectEqualCopy(findCommands(`${language}-copy`));
  });

  // @proves feed-10
  test(`a copy in ${language} eventually equals a restored database`, async (context) => {
    requireInstalled(language, context);
    await expectForgotten(findCommands(`${language}-copy`));
  });

  // @proves feed-9
  test(`a copy in ${language} sets aside a lead that it cannot store, and stores the others`, async (context) => {
    requireInstalled(language, context);
    await expectSetAside(findCommands(`${language}-copy`));
  });
}
