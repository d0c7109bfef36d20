// Alone and first, as in the other processes: signals are heard while the other modules are loaded.
import '../common/stop-request.ts';

/**
 * Threads, half of which resolve names: one for each of 16 endpoints, and one for the core. A name whose servers do not
 * answer keeps its thread for some ten seconds, and nothing else is to wait for that.
 */
const THREADS = 34;

process.env.UV_THREADPOOL_SIZE ??= `${THREADS}`;

const { runUntilStopped } = await import('../common/run-until-stopped.ts');
const { startRelay } = await import('./app.ts');
const { readRelayConfig } = await import('./config.ts');

await runUntilStopped('RELAY', () => startRelay(readRelayConfig(process.env)));
