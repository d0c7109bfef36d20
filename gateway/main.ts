import { runUntilStopped } from '../src/runtime/lifecycle.ts';
import { startGateway } from './app.ts';
import { readGatewayConfig } from './config.ts';

await runUntilStopped(() => startGateway(readGatewayConfig(process.env)));
