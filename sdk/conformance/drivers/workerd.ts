import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

// Runs a driver in workerd. Because workerd has no stdin, this program passes each request to it over a socket.
// Usage: node workerd.js WORKERD FOLDER, with the program of workerd and the folder of the compiled client.
const [, , program = '', built = ''] = process.argv;

const folder = mkdtempSync(join(tmpdir(), 'lead-intake-workerd-'));
const socketPath = join(folder, 'socket');
// workerd calls the first module.
const modules = [
  'conformance/drivers/worker.js',
  ...globSync(['*.js', 'conformance/drivers/report-on.js'], { cwd: built }),
];
const embedded = modules.map((name) => `(name = ${JSON.stringify(name)}, esModule = embed ${JSON.stringify(name)})`);
// workerd finds the modules only beside its configuration.
const config = join(built, `workerd-${process.pid}.capnp`);
writeFileSync(
  config,
  `using Workerd = import "/workerd/workerd.capnp";
  const config :Workerd.Config = (
    services = [
      (name = "main", worker = (modules = [${embedded.join(', ')}], compatibilityDate = "2026-01-01")),
      (name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true)))
    ],
    sockets = [(name = "http", address = ${JSON.stringify(`unix:${socketPath}`)}, http = (), service = "main")]
  );`,
);
// This shell ends workerd when its own stdin ends: when this driver ends or is killed.
const script = '"$0" "$@" & exec 3>&-; read -r _; kill $!';
const workerd = spawn('sh', ['-c', script, program, 'serve', '--control-fd=3', config], {
  stdio: ['pipe', 'inherit', 'inherit', 'pipe'],
});
try {
  await isListening(workerd);
  for await (const line of createInterface({ input: process.stdin })) process.stdout.write(`${await reportOn(line)}\n`);
} finally {
  workerd.stdin?.end();
  rmSync(folder, { recursive: true });
  rmSync(config);
}

/** Waits until workerd reports on its control channel that it listens. @throws Error when it ends */
async function isListening(workerd: ChildProcess): Promise<void> {
  const [first] = await Promise.race([
    once(workerd.stdio[3] ?? workerd, 'data'),
    once(workerd.stdio[3] ?? workerd, 'end'),
  ]);
  if (!String(first).includes('"listen"')) throw new Error(`workerd reported ${first} instead of listening`);
}

async function reportOn(line: string): Promise<string> {
  const sent = request({ socketPath, method: 'POST', headers: { host: 'driver' } }).end(line);
  const [response] = await once(sent, 'response');
  const body = await text(response);
  if (response.statusCode !== 200) throw new Error(`workerd has answered ${response.statusCode}: ${body}`);
  return body;
}
