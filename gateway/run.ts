import { runUntilStopped } from '../common/run-until-stopped.ts';
import { startGateway } from './app.ts';
import { readGatewayConfig } from './config.ts';

await runUntilStopped(() => startGateway(readGatewayConfig(process.env)));
