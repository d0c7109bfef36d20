import { afterAll, beforeAll } from 'vitest';
import { describeWithMongoServer, type MongoWireServer, startWireServer } from '../support/mongodb.ts';
import { describeWithRedisServer, type RedisServer, startRedis } from '../support/servers.ts';
import { startLargeWorld } from './large-world.ts';
import type { StartWorld } from './live.ts';
import { startSmallWorld } from './small-world.ts';

export type Database = 'SQLite' | 'MongoDB';

/**
 * Defines tests for worlds on SQLite, and on MongoDB with Redis when these servers are installed.
 *
 * @param databases the databases to test
 */
export function onEachDatabase(
  testsOn: (database: Database, startWorld: StartWorld) => void,
  databases: readonly Database[] = ['SQLite', 'MongoDB'],
): void {
  if (databases.includes('SQLite')) testsOn('SQLite', startSmallWorld);
  if (!databases.includes('MongoDB')) return;
  describeWithMongoServer('on MongoDB', () => {
    describeWithRedisServer('with Redis', () => {
      let [database, redis]: [MongoWireServer | undefined, RedisServer | undefined] = [undefined, undefined];
      beforeAll(async () => {
        [database, redis] = [await startWireServer(), await startRedis()];
      });
      afterAll(async () => {
        await database?.stop();
        await redis?.stop();
      });
      testsOn('MongoDB', (settings, plan) =>
        startLargeWorld(settings, plan, database as MongoWireServer, redis as RedisServer),
      );
    });
  });
}
