import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { describeWithTools, missingOf } from '../support/examples.ts';
import { describeIf } from '../support/servers.ts';
import type { Service } from '../support/service.ts';
import {
  canStart,
  type DatabaseKind,
  REMEDY,
  startWebsiteServer,
  type WebsiteServer,
} from '../support/website-databases.ts';
import { LANGUAGES, type Language, type StartDriver } from './languages.ts';
import { aWebsite, type Website } from './website.ts';

/** What the tests of one outbox on one database have. */
export interface OutboxUnderTest {
  readonly language: Language;
  readonly kind: DatabaseKind;
  /** Both, for the titles of tests. */
  readonly name: string;
  /** Other languages whose outboxes can keep the same table here. */
  readonly others: readonly Language[];
  /** A website that no other test knows. */
  aWebsite(): Promise<Website>;
  /** Gives the driver of another language, to be used on the same website. */
  driverOf(language: Language): Promise<StartDriver>;
}

/** A suite for the outbox of each language on each of its databases; the tests of all run side by side. */
export function onEachDatabase(service: Service, body: (outbox: OutboxUnderTest) => void): void {
  let scratch: string;
  const closing: (() => Promise<void>)[] = [];
  // Only what a test asks for is started.
  const servers = new Map<DatabaseKind, Promise<WebsiteServer>>();
  const serverOf = (kind: DatabaseKind) => onlyOnce(servers, kind, () => startWebsiteServer[kind]());
  const drivers = new Map<string, Promise<StartDriver>>();
  const driverOf = (language: Language) => onlyOnce(drivers, language.name, () => language.prepare(scratch));

  beforeAll(() => {
    scratch = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  });
  afterAll(async () => {
    for (const close of closing) await close();
    for (const server of servers.values()) await (await server).stop();
    rmSync(scratch, { recursive: true });
  });

  const here = LANGUAGES.filter(({ tools }) => missingOf(tools).length === 0);
  for (const language of LANGUAGES) {
    describeWithTools(language.tools, `the outbox for ${language.name}`, () => {
      for (const kind of language.databases) {
        describeIf(canStart[kind], `on ${kind}`, REMEDY, () => {
          body({
            language,
            kind,
            name: `${language.name} on ${kind}`,
            others: here.filter((other) => other !== language && other.databases.includes(kind)),
            async aWebsite() {
              const database = await (await serverOf(kind)).database();
              closing.push(() => database.close());
              return aWebsite(await driverOf(language), database, service);
            },
            driverOf,
          });
        });
      }
    });
  }
}

function onlyOnce<K, V>(made: Map<K, V>, key: K, make: () => V): V {
  const value = made.get(key) ?? make();
  made.set(key, value);
  return value;
}
