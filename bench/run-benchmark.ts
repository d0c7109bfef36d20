import { cleanUp } from './processes.ts';

/**
 * Runs a benchmark, cleans up, and exits. The exit status is 1 when it fails or is interrupted, otherwise what it has set.
 */
export async function runBenchmark(run: () => Promise<void>): Promise<never> {
  const interrupted = new Promise<never>((_, reject) => {
    // The handlers stay registered, so that a second signal does not interrupt the cleanup.
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
