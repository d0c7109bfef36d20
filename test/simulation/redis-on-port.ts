import { freePort } from '../tools/servers.ts';
import { RedisServer, type Weather } from './redis/redis-server.ts';

/** A simulated Redis on a real port. */
export interface RedisOnPort {
  readonly url: string;
  readonly server: RedisServer;
  readonly weather: Weather;
}

/**
 * Starts a simulated Redis. The caller must stop its server.
 *
 * @param now its clock; by default the real one
 */
export async function redisOnPort(now: () => number = Date.now): Promise<RedisOnPort> {
  const weather: Weather = { losses: 0, slowness: 0, refusal: undefined };
  const server = new RedisServer(new Map(), {
    weather,
    now,
    fail(error) {
      setImmediate(() => {
        throw error;
      });
    },
  });
  const port = await freePort();
  server.start(port);
  return { url: `redis://127.0.0.1:${port}`, server, weather };
}
