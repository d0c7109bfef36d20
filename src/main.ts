// This import comes first and alone, because loading the other modules takes a second. The first process of a container
// loses signals for which it has no handler.
import '../common/stop-request.ts';

const { runUntilStopped } = await import('../common/run-until-stopped.ts');
const { startCore } = await import('./app.ts');
const { readCoreConfig } = await import('./config.ts');

await runUntilStopped('CORE', () => startCore(readCoreConfig(process.env)));
