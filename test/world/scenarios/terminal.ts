import { once } from 'node:events';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Code, ConnectError } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import fc from 'fast-check';
import { Health } from '../../../proto/gen/health/v1/health_pb.ts';
import { ApiKeyService } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import { LeadIntakeService } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import type { CommandEnd } from '../command-line.ts';
import { now } from '../history.ts';
import type { Life } from '../life.ts';
import { crmOf, makeStudioApart, WAITS } from './apart.ts';
import { aScenario } from './scenario.ts';
import { asFarAsTold, called } from './until-told.ts';

const OVER_WITHIN_MS = 30_000;

/** Sequences that clear a screen, forge a line, or change the direction of text: clients may send each of them. */
const HOSTILE = ['\u001b[2J\u001b[H', '\r\nstatus  active', '\u009b2J\u0085\u007f', '\u2028\u2029', '\u202e\u2066'];

/** Characters that a terminal interprets, or that change how the rest of a line reads, except line feeds. */
const OBEYED = /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;

const choice = fc.record({
  text: fc.subarray(HOSTILE, { minLength: 1 }).map((parts) => `Ada${parts.join('')}`),
  options: fc.constantFrom([], [], ['--json']),
});

function expectNothingObeyed({ history }: Life, what: string, { status, answer, complaint }: CommandEnd): void {
  const [found] = OBEYED.exec(answer + complaint) ?? [];
  const shown = JSON.stringify(answer + complaint);
  history.add({ kind: 'other', party: 'operator', what: `${what}: ${status}`, span: { begin: now(), end: now() } });
  if (found) history.breaks(`${what} sends U+${found.charCodeAt(0).toString(16)} to the terminal: ${shown}`);
}

/** Names set by the CRM that a terminal would interpret are shown escaped to an operator. */
export const lookOnTerminal = aScenario({
  weight: 1,
  choice,
  happen: (life, { text, options }) =>
    asFarAsTold(async () => {
      const { id: studioId, sourceId } = await makeStudioApart(life);
      const leadSource = { studioId, id: sourceId, name: text, enabled: true };
      await called(life, 'a source is put', () => crmOf(life, 0).directory.putLeadSource({ leadSource }, WAITS));
      const words = [...options, 'sources', 'list', studioId];
      const end = await life.world.commandLine.run(words, OVER_WITHIN_MS);
      expectNothingObeyed(life, `lead-intake ${words.join(' ')}`, end);
      if (end.status === 0 && !end.answer.includes('Ada')) life.history.breaks(`a source is not shown: ${end.answer}`);
    }),
});

/** A doctor that is sent to the wrong address shows the response escaped, and reports a problem. */
export const doctorAtImpostor = aScenario({
  weight: 1,
  choice,
  async happen(life, { text, options }) {
    const begin = now();
    const impostor = await anImpostor(text);
    const words = [...options, 'doctor', 'gateway'];
    const end = await life.world.commandLine.run(words, OVER_WITHIN_MS, { env: { CORE_URL: impostor.url } });
    impostor.stop();
    expectNothingObeyed(life, `lead-intake ${words.join(' ')}, at a core that is none,`, end);
    if (end.status === 'SIGKILL' && life.isDisturbedSince(begin)) return;
    if (end.status !== 1) life.history.breaks(`doctor finds a core that is none well: ${end.answer}`);
  },
});

/** Starts a fake core, which refuses every call with a given text. */
async function anImpostor(text: string): Promise<{ readonly url: string; stop(): void }> {
  const refuse = () => () => {
    throw new ConnectError(text, Code.Internal);
  };
  const server = createServer(
    connectNodeAdapter({
      interceptors: [refuse],
      routes: (router) => {
        for (const service of [Health, ApiKeyService, LeadIntakeService]) router.service(service, {});
      },
    }),
  );
  const sessions = new Set<{ destroy(): void }>();
  server.on('session', (session) => sessions.add(session));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop() {
      server.close();
      for (const session of sessions) session.destroy();
    },
  };
}
