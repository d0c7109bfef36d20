// Loaded first and alone: the other modules take a second to load. A container's first process loses signals that it does not handle yet.
import '../common/stop-request.ts';

const { runUntilStopped } = await import('../common/run-until-stopped.ts');
const { startGateway } = await import('./app.ts');
const { readGatewayConfig } = await import('./config.ts');

await runUntilStopped('GATEWAY', () => startGateway(readGatewayConfig(process.env)));
