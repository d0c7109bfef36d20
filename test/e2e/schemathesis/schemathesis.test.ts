import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FULL_CAPTURE } from '../../../gateway/docs/examples.ts';
import { arrangeStudio, connectToCore } from '../../support/core-clients.ts';
import { type RunningProcess, readAddress, start } from '../../tools/processes.ts';
import { describeIf, hasCommand } from '../../tools/servers.ts';

/** How long requests are generated; seconds. Only a soak sets it, because seconds find little. */
const SECONDS = Number(process.env.SCHEMATHESIS_SECONDS ?? 0);

const CORE_TOKEN = crypto.randomUUID();

// @proves leads-30
describe.runIf(SECONDS > 0)('requests that are generated from the OpenAPI document', () => {
  describeIf(hasCommand('schemathesis'), 'by Schemathesis', 'install it with .ci/install-schemathesis', findNoFault);
});

function findNoFault(): void {
  let folder: string;
  let core: RunningProcess;
  let gateway: RunningProcess;
  let url: string;
  let secret: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
    core = start('src/main.ts', { env: { CORE_TOKEN, DATABASE_URL: `sqlite:${join(folder, 'leads.db')}` } });
    const coreUrl = await readAddress(core);
    gateway = start('gateway/main.ts', { env: { CORE_TOKEN, CORE_URL: coreUrl, QUOTA_LIMIT: '1000000000' } });
    url = await readAddress(gateway);
    const crm = connectToCore(coreUrl, CORE_TOKEN);
    const studio = await arrangeStudio(crm);
    secret = studio.secret;
    // The source in the document's examples must exist, or each creation would be refused.
    const leadSource = { studioId: studio.studioId, id: FULL_CAPTURE.sourceId, name: 'Web form', enabled: true };
    await crm.directory.putLeadSource({ leadSource });
    crm.close();
  });
  afterAll(async () => {
    await gateway?.kill();
    await core?.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  test('Schemathesis finds no response that the OpenAPI document does not allow', {
    timeout: SECONDS * 1000 + 120_000,
  }, async () => {
    const { status, output } = await run([
      ...['--config-file', join(import.meta.dirname, 'schemathesis.toml')],
      ...['run', `${url}/v1/openapi.json`, '--url', url, '--header', `Authorization: Bearer ${secret}`],
      // beyond_schemas.py has a stricter check than the excluded one.
      ...['--checks', 'all', '--exclude-checks', 'positive_data_acceptance', '--max-time', String(SECONDS)],
      ...['--workers', '2', '--continue-on-failure', '--generation-database', 'none', '--no-color'],
    ]);
    // The output has the seed, and how to reproduce a failure.
    expect(status, output).toBe(0);
    expect(output).toContain('Tested: 3');
  });

  test('the generated requests cause no fault of the service', () => {
    for (const { child, output } of [core, gateway]) {
      expect([child.exitCode, child.signalCode]).toEqual([null, null]);
      expect(output().match(/^.*"level":[4-6]0,.*$/gm) ?? []).toEqual([]);
    }
  });

  async function run(args: readonly string[]): Promise<{ status: number; output: string }> {
    const child = spawn('schemathesis', args, {
      cwd: folder,
      env: {
        ...process.env,
        SCHEMATHESIS_HOOKS: join(import.meta.dirname, 'beyond_schemas.py'),
        PYTHONDONTWRITEBYTECODE: '1',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output += chunk;
      });
    }
    const [status] = await once(child, 'close');
    return { status, output };
  }
}
