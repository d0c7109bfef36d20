// Alone and first: the other modules take a second to load, and the first process of a container loses a signal for which
// it has no handler.
import '../common/stop-request.ts';

const { runUntilStopped } = await import('../common/run-until-stopped.ts');
const { startCore } = await import('./app.ts');
const { readCoreConfig } = await import('./config.ts');

await runUntilStopped('CORE', () => startCore(readCoreConfig(process.env)));
