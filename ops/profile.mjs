/**
 * Prints a CPU profile (`cpu SECONDS`) or a heap snapshot (`heap`) of a process that has received SIGUSR1, and closes the port that the signal
 * opened: docs/how-to/runbook.md. It imports nothing, so that a container's Node can read it from standard input.
 */
const [what = 'cpu', seconds = '30'] = process.argv.slice(2);
const { INSPECTOR = '127.0.0.1:9229' } = process.env;
const { fstatSync, writeFileSync } = process.getBuiltinModule('node:fs');
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const sessions = async () => (await fetch(`http://${INSPECTOR}/json`)).json();

/** Retries for ten seconds, because the process opens and closes its port with a delay. */
async function patiently(attempt) {
  for (let left = 100; ; left -= 1) {
    try {
      return await attempt();
    } catch (error) {
      if (left === 0) throw error;
      await sleep(100);
    }
  }
}

let written = Promise.resolve();
// Closes the port even if the output fails.
process.stdout.on('error', () => {});

/** Appends to the output. `written` rejects with the first error. */
function write(text) {
  written = written.then(
    () =>
      new Promise((resolve, reject) => {
        // With a file, the stream reports success for a write that a full disk cut short.
        if (fstatSync(1).isFile()) resolve(writeFileSync(1, text));
        else process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
      }),
  );
  written.catch(() => {});
}

const [{ webSocketDebuggerUrl }] = await patiently(sessions);
const socket = new WebSocket(webSocketDebuggerUrl);
const waiting = new Map();
socket.addEventListener('message', ({ data }) => {
  const { id, method, params, error, result } = JSON.parse(data);
  if (method === 'HeapProfiler.addHeapSnapshotChunk') write(params.chunk);
  waiting.get(id)?.(error ? Promise.reject(new Error(error.message)) : result);
});
const call = (method, params = {}) =>
  new Promise((resolve) => {
    const id = waiting.size + 1;
    waiting.set(id, resolve);
    socket.send(JSON.stringify({ id, method, params }));
  });
await new Promise((resolve, reject) => {
  socket.addEventListener('open', resolve);
  socket.addEventListener('error', () => reject(new Error(`no connection to ${INSPECTOR}`)));
});
let fault = '';
try {
  if (what === 'heap') {
    await call('HeapProfiler.takeHeapSnapshot');
  } else {
    await call('Profiler.enable');
    await call('Profiler.start');
    await sleep(Number(seconds) * 1000);
    const { profile } = await call('Profiler.stop');
    write(JSON.stringify(profile));
  }
  await written;
} catch (error) {
  fault = `${error.message}; `;
}
// Closes the port once the reply has left.
const expression = "setTimeout(() => process.getBuiltinModule('node:inspector').close(), 500)";
await call('Runtime.evaluate', { expression });
socket.close();
const isClosed = await patiently(async () => {
  if (await sessions().catch(() => undefined)) throw new Error(`${INSPECTOR} is still open`);
}).then(
  () => true,
  () => false,
);
if (fault || !isClosed) {
  console.error(`${fault}${INSPECTOR} is ${isClosed ? 'closed' : 'still open: try again with cpu 0'}`);
  process.exitCode = 1;
}
