/**
 * `npm start`: runs the core and the gateway on this machine, each in its own process, as in production. When one exits, this process stops
 * the other, and exits with the first status that is not 0.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { styleText } from 'node:util';
import { stopRequest } from './common/stop-request.ts';

const HERE = import.meta.dirname;

interface Demo {
  readonly studioId: string;
  readonly memberId: string;
  readonly sourceId: string;
  readonly secret: string | null;
}

interface Part {
  readonly child: ChildProcess;
  /** The exit status; 1 if a signal from elsewhere killed the process. */
  readonly ended: Promise<number>;
}

const bold = (text: string) => styleText('bold', text);
const link = (address: string) => styleText(['cyan', 'underline'], address);

const parts: Part[] = [];
let isStopping = false;

stopRequest.addEventListener('abort', () => stopAll(0));
if (process.env.npm_lifecycle_event === 'start') stopWithParent();

// Only the default database, a SQLite file, gets a demo studio.
const isDemo = !process.env.DATABASE_URL && !process.env.DATABASE_URL_FILE;
const defaults = isDemo ? { LOG_LEVEL: 'warn', GATEWAY_REQUEST_LOG: 'yes' } : {};

try {
  // Reflection lets people who try the service explore its RPCs; in production it is off.
  const coreUrl = await startProcess('src/main.ts', { ...defaults, CORE_REFLECTION: 'yes' });
  // The core starts first, because it reports faults of the database file.
  const demo = isDemo ? makeDemo() : undefined;
  // Printed at once: the key is never shown again, and the gateway may fail to start.
  if (demo?.secret) console.log(`\nThe key of the demo studio, shown this once:\n  ${bold(demo.secret)}`);
  const gatewayUrl = await startProcess('gateway/main.ts', { ...defaults, CORE_URL: coreUrl });
  console.log(welcome(gatewayUrl, coreUrl, demo));
} catch (error) {
  console.error((error as Error).message);
  await stopAll(1);
}

/** Stops once npm has exited, because npm does not pass on signals that it gets itself. */
function stopWithParent(): void {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) stopAll(0);
  }, 500).unref();
}

function makeDemo(): Demo {
  const command = [`${HERE}/operator/cli.ts`, 'demo', '--json'];
  const made = spawnSync(process.execPath, command, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
  if (made.status !== 0) throw new Error('creating the demo studio failed: see the message above');
  return JSON.parse(made.stdout);
}

/** Starts a process and returns the address that it listens on. Never resolves if the process fails or everything stops. */
async function startProcess(file: string, settings: Record<string, string>): Promise<string> {
  // Lets a signal be handled that came while the demo studio was created.
  await setImmediate();
  if (isStopping) return new Promise(() => {});
  const child = spawn(process.execPath, [`${HERE}/${file}`], {
    env: { ...settings, ...process.env },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // In its own process group, Ctrl-C in the terminal does not reach the child. So this process decides the order of the stop.
    detached: true,
  });
  const ended = once(child, 'exit').then(([code, signal]) => {
    if (!isStopping) console.error(`${file} exited (${signal ?? `status ${code}`})`);
    // SIGTERM kills a process that does not handle signals yet.
    return isStopping && signal === 'SIGTERM' ? 0 : (code ?? 1);
  });
  parts.push({ child, ended });
  ended.then(stopAll);
  const [message] = await once(child, 'message');
  return (message as { url: string }).url;
}

/** Stops the gateway, then the core that it needs, and exits; with 0 if all ended cleanly. */
async function stopAll(status: number): Promise<void> {
  if (isStopping) return;
  isStopping = true;
  console.log('\nStopping Lead Intake.');
  for (const { child, ended } of parts.toReversed()) {
    child.kill('SIGTERM');
    const ownStatus = await ended;
    status ||= ownStatus;
  }
  console.log('Lead Intake has stopped.');
  process.exit(status);
}

function welcome(gatewayUrl: string, coreUrl: string, demo: Demo | undefined): string {
  const docs = `${process.env.PUBLIC_URL?.replace(/\/$/, '') || gatewayUrl}/docs`;
  return `
${styleText(['bold', 'green'], 'Lead Intake is running.')} Ctrl-C stops it.
${demo ? `\n  Inbox     ${link(`${docs}/inbox${demo.secret ? `#key=${demo.secret}` : ''}`)}` : ''}
  REST API  ${link(`${gatewayUrl}/v1/integrations/leads`)}
  Docs      ${link(docs)}
  RPC       ${link(coreUrl)}  (gRPC, gRPC-Web, Connect)
${demo ? demoHint(gatewayUrl, docs, demo) : ''}`;
}

function demoHint(gatewayUrl: string, docs: string, { studioId, memberId, sourceId, secret }: Demo): string {
  const first = secret
    ? `${bold('Create a lead:')}
curl -i -w '\\n' ${gatewayUrl}/v1/integrations/leads \\
  -H 'Authorization: Bearer ${secret}' \\
  -H 'Content-Type: application/json' \\
  -H 'Idempotency-Key: ${crypto.randomUUID()}' \\
  -d '{"displayName":"Ada Lovelace","contact":{"type":"email","value":"ada@example.com"},"sourceId":"${sourceId}"}'

Paste it again: you get the same response, and no second lead.`
    : `${bold('The demo key was shown when it was created. To create another one:')}
  npx lead-intake keys create ${studioId} --member ${memberId} --name "Another key"`;
  return `
${first}

${bold('Next, in a second terminal:')}
  1. See your leads:                  npx lead-intake leads list ${studioId}
  2. Get every response of the API:   docs/tutorial/walkthrough.md
  3. Connect your website:            ${link(docs)}
`;
}
