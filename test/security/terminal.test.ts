/** Text from others can neither control an operator's terminal nor forge its contents. */
import { once } from 'node:events';
import { createServer as createHttp2Server, type Http2Server } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import { Code, ConnectError } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Health } from '../../proto/gen/health/v1/health_pb.ts';
import { ApiKeyService } from '../../proto/gen/leadintake/v1/api_key_pb.ts';
import { LeadIntakeService } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { openStore } from '../../src/store/open-store.ts';
import { UNKNOWN_KEY } from '../crash/deployment.ts';
import { aLead, keysFor } from '../support/builders.ts';
import { readAddress, run, temporaryFolder } from '../tools/processes.ts';

/** Clears the screen, forges a line, hides its own end, and reverses the text that follows, with every kind of control character. */
const HOSTILE = 'Ada\u001b[2J\u001b[H\r\nstage        won\u007f\u0085\u009b2J\u2028\u202e\u2066';

/** The escaped form of the first one. */
const ESCAPED = '\\u001b[2J';

/** Makes a process treat its standard output as a terminal. */
const ON_TERMINAL = `--import=data:text/javascript,${encodeURIComponent('process.stdout.isTTY = true')}`;

function expectNoControlCharacters(output: string): void {
  expect(output).not.toMatch(/(?!\n)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u);
}

/** Runs the command line until it exits. */
async function cli(env: Record<string, string>, ...args: string[]) {
  const running = run('operator/cli.ts', { args, env });
  const status = await running.ended();
  return { status, output: running.output() };
}

async function listening(server: Server | Http2Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A fake core that refuses every call with hostile text. */
function aHostileCore(): Promise<string> {
  const refuse = () => () => {
    throw new ConnectError(HOSTILE, Code.Internal);
  };
  const handler = connectNodeAdapter({
    interceptors: [refuse],
    routes: (router) => {
      for (const service of [Health, ApiKeyService, LeadIntakeService]) router.service(service, {});
    },
  });
  const server = createHttp2Server(handler);
  server.on('session', (session) => onTestFinished(() => session.destroy()));
  return listening(server);
}

// @proves secrets-8
describe('the command line', () => {
  test('the command line escapes text from callers and the CRM in fields, tables and JSON', async () => {
    const env = { DATABASE_URL: `sqlite:${join(temporaryFolder(), 'leads.db')}` };
    const both = async (...args: string[]) => {
      const [shown, json] = [await cli(env, ...args), await cli(env, '--json', ...args)];
      for (const { output } of [shown, json]) expectNoControlCharacters(output);
      expect(shown.output).toContain('u001b[2J');
      return { lines: shown.output.split('\n'), value: JSON.parse(json.output) };
    };
    await cli(env, 'studios', 'put', 's1');
    await cli(env, 'members', 'put', 's1', 'm1', '--role', 'owner');
    const store = await openStore(env.DATABASE_URL);
    const lead = aLead({ studioId: 's1', displayName: HOSTILE, note: HOSTILE });
    await store.createLead(lead, keysFor(lead));
    await store.close();

    const { lines, value } = await both('leads', 'stage', 's1', lead.id, 'contacted');
    expect(value).toMatchObject({ displayName: HOSTILE, note: HOSTILE, stage: 'contacted' });
    expect(lines.filter((line) => line.startsWith('stage'))).toEqual(['stage        contacted']);

    expect((await both('leads', 'list', 's1')).value[0]).toMatchObject({ displayName: HOSTILE });
    const exported = (await cli({ ...env, NODE_OPTIONS: ON_TERMINAL }, 'leads', 'export')).output;
    expectNoControlCharacters(exported);
    expect(exported).toContain(ESCAPED);

    await cli(env, 'keys', 'create', 's1', '--member', 'm1', '--name', HOSTILE);
    expect((await both('keys', 'list', 's1', '--member', 'm1')).value[0]).toMatchObject({ name: HOSTILE });
  });

  test('the command line escapes errors', async () => {
    const { status, output } = await cli(
      { DATABASE_URL: `sqlite:/dev/null/\u001b[2J/leads.db` },
      'studios',
      'get',
      's',
    );

    expect(output).toContain(ESCAPED);
    expectNoControlCharacters(output);
    expect(status).toBe(1);
  });

  test('doctor escapes the response of a hostile core', async () => {
    const CORE_URL = await aHostileCore();

    for (const options of [[], ['--json']]) {
      const { output } = await cli({ CORE_URL }, ...options, 'doctor', 'gateway');
      expect(output).toContain('u001b[2J');
      expectNoControlCharacters(output);
    }
  });
});

// @proves secrets-8
test('the log on a terminal is escaped', async () => {
  const gateway = run('gateway/main.ts', { env: { CORE_URL: await aHostileCore(), NODE_OPTIONS: ON_TERMINAL } });
  const url = await readAddress(gateway);

  await fetch(`${url}/v1/integrations/leads`, { headers: { authorization: `Bearer ${UNKNOWN_KEY}` } });

  await gateway.printed(/u001b\[2J/);
  expectNoControlCharacters(gateway.output());
});
