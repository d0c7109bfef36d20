import { setTimeout as sleep } from 'node:timers/promises';
import type { CoreConfig } from './config.ts';
import { systemClock } from './domain/clock.ts';
import { newId } from './domain/new-id.ts';
import type { Running } from './runtime/lifecycle.ts';
import { createCoreServer } from './server.ts';
import { openStore } from './store/open-store.ts';

/**
 * Starts the core: store, use cases, RPCs, port.
 *
 * @throws Error when the store cannot be opened or the port is taken
 */
export async function startCore(config: CoreConfig): Promise<Running> {
  const store = await openStore(config.DATABASE_URL.reveal());
  const draining = new AbortController();
  const check = async () =>
    !draining.signal.aborted &&
    (await store.check().then(
      () => true,
      () => false,
    ));
  try {
    const server = await createCoreServer(
      config,
      { store, clock: systemClock, newId },
      { check, draining: draining.signal },
    );
    const url = await server.listen({ host: config.CORE_HOST, port: config.CORE_PORT });
    return {
      url,
      async stop() {
        draining.abort();
        // Whoever balances load must see the health check turn before the port closes.
        await sleep(config.SHUTDOWN_DRAIN_MS);
        await server.close();
        await store.close();
      },
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}
