import { runUntilStopped } from '../common/run-until-stopped.ts';
import { startCore } from './app.ts';
import { readCoreConfig } from './config.ts';

await runUntilStopped(() => startCore(readCoreConfig(process.env)));
