import { runUntilStopped } from '../common/run-until-stopped.ts';
import { startRelay } from './app.ts';
import { readRelayConfig } from './config.ts';

await runUntilStopped(() => startRelay(readRelayConfig(process.env)));
