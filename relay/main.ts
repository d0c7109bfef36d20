// Loaded first and alone, as in the other processes, so that signals are handled while other modules load.
import '../common/stop-request.ts';

/**
 * The number of threads. Half of them resolve names: one for each of 16 endpoints, and one for the core. A name whose servers do not answer
 * holds its thread for some ten seconds. Nothing else should wait for that.
 */
const THREADS = 34;

process.env.UV_THREADPOOL_SIZE ??= `${THREADS}`;

const { runUntilStopped } = await import('../common/run-until-stopped.ts');
const { startRelay } = await import('./app.ts');
const { readRelayConfig } = await import('./config.ts');

await runUntilStopped('RELAY', () => startRelay(readRelayConfig(process.env)));
