// Alone and first: the other modules take a second to load, and the first process of a container loses a signal for which
// it has no handler.
import '../common/stop-request.ts';

const { runUntilStopped } = await import('../common/run-until-stopped.ts');
const { startGateway } = await import('./app.ts');
const { readGatewayConfig } = await import('./config.ts');

await runUntilStopped('GATEWAY', () => startGateway(readGatewayConfig(process.env)));
