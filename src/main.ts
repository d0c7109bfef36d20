import { startCore } from './app.ts';
import { readCoreConfig } from './config.ts';
import { runUntilStopped } from './runtime/lifecycle.ts';

await runUntilStopped(() => startCore(readCoreConfig(process.env)));
