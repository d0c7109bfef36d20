import { runUntilStopped } from '../common/run-until-stopped.ts';
import { startCore } from './app.ts';
import { readCoreConfig } from './config.ts';

await runUntilStopped((stopping) => startCore(readCoreConfig(process.env), stopping));
