import { afterAll, beforeAll } from 'vitest';
import { describeWithMongoServer, type MongoWireServer, startWireServer } from '../support/mongodb.ts';
import { describeWithRedisServer, type RedisServer, startRedis } from '../support/servers.ts';
import { startMongoWorld } from './mongo-world.ts';
import type { StartWorld } from './run-plan.ts';
import { startSqliteWorld } from './sqlite-world.ts';

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
  if (databases.includes('SQLite')) testsOn('SQLite', startSqliteWorld);
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
        startMongoWorld(settings, plan, database as MongoWireServer, redis as RedisServer),
      );
    });
  });
}
