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
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { asFarAsDefinite, definiteOutcome } from './definite-outcomes.ts';
import { aScenario, onRealMachine } from './scenario.ts';
import { makeSeparateStudio } from './separate-studio.ts';

const ENDS_WITHIN_MS = 30_000;

/** Sequences that clear a screen, forge a line, or change the direction of text: clients may send each of them. */
const HOSTILE = ['\u001b[2J\u001b[H', '\r\nstatus  active', '\u009b2J\u0085\u007f', '\u2028\u2029', '\u202e\u2066'];

/** Characters that a terminal interprets, or that change how the rest of a line reads, except line feeds. */
const CONTROL_CHARACTER = /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;

const choice = fc.record({
  text: fc.subarray(HOSTILE, { minLength: 1 }).map((parts) => `Ada${parts.join('')}`),
  options: fc.constantFrom([], [], ['--json']),
});

function expectNoControlCharacters(
  { history }: Simulation,
  what: string,
  { status, stdout, stderr }: CommandEnd,
): void {
  const [found] = CONTROL_CHARACTER.exec(stdout + stderr) ?? [];
  const shown = JSON.stringify(stdout + stderr);
  history.note('operator', `${what}: ${status}`);
  if (found) history.fail(`${what} sends U+${found.charCodeAt(0).toString(16)} to the terminal: ${shown}`);
}

/** Names set by the CRM that a terminal would interpret are shown escaped to an operator. */
export const lookOnTerminal = aScenario({
  ...onRealMachine,
  weight: 1,
  choice,
  run: (sim, { text, options }) =>
    asFarAsDefinite(async () => {
      const { id: studioId, sourceId } = await makeSeparateStudio(sim);
      const leadSource = { studioId, id: sourceId, name: text, enabled: true };
      await definiteOutcome(sim, 'a source is put', () =>
        sim.crmAt(0).directory.putLeadSource({ leadSource }, CRM_TIMEOUT),
      );
      const words = [...options, 'sources', 'list', studioId];
      const end = await sim.world.commandLine.run(words, ENDS_WITHIN_MS);
      expectNoControlCharacters(sim, `lead-intake ${words.join(' ')}`, end);
      if (end.status === 0 && !end.stdout.includes('Ada')) sim.history.fail(`a source is not shown: ${end.stdout}`);
    }),
});

/** A doctor that is sent to the wrong address shows the response escaped, and reports a problem. */
export const doctorAtImpostor = aScenario({
  ...onRealMachine,
  weight: 1,
  choice,
  async run(sim, { text, options }) {
    const begin = now();
    const impostor = await anImpostor(text);
    const words = [...options, 'doctor', 'gateway'];
    const end = await sim.world.commandLine.run(words, ENDS_WITHIN_MS, { env: { CORE_URL: impostor.url } });
    impostor.stop();
    expectNoControlCharacters(sim, `lead-intake ${words.join(' ')}, at an impostor`, end);
    if (end.status === 'SIGKILL' && sim.isDisturbedSince(begin)) return;
    if (end.status !== 1) sim.history.fail(`doctor reports no problem with an impostor: ${end.stdout}`);
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
