import { cleanUp } from './processes.ts';

/**
 * Runs a benchmark, and ends this process; nothing that it made stays, also when it fails or is interrupted. The status is
 * 1 then, and whatever the benchmark has set otherwise.
 */
export async function runBenchmark(run: () => Promise<void>): Promise<never> {
  const interrupted = new Promise<never>((_, reject) => {
    // The handlers stay, so that a second signal does not cut the cleaning up short.
    process.on('SIGINT', () => reject(new Error('interrupted')));
    process.on('SIGTERM', () => reject(new Error('stopped')));
  });
  try {
    await Promise.race([run(), interrupted]);
  } catch (error) {
    console.error(`\n${(error as Error).message}`);
    process.exitCode = 1;
  } finally {
    await cleanUp();
  }
  process.exit();
}
