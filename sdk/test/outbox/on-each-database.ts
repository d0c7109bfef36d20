import { afterAll } from 'vitest';
import { describeWithTools, missingTools } from '../../../test/tools/commands.ts';
import type { ServedService } from '../../../test/tools/served-service.ts';
import { describeIf } from '../../../test/tools/servers.ts';
import {
  canStart,
  type DatabaseKind,
  REMEDY,
  startWebsiteServer,
  type WebsiteServer,
} from '../support/website-databases.ts';
import type { Drivers } from './drivers.ts';
import { LANGUAGES, type Language } from './languages.ts';
import { aWebsite, type Website } from './website.ts';

/** One outbox on one database. */
export interface OutboxUnderTest {
  readonly language: Language;
  readonly kind: DatabaseKind;
  /** Language and database, for test titles. */
  readonly name: string;
  /** The other languages that support this database on this machine. */
  readonly others: readonly Language[];
  /** Creates a website for one test. */
  aWebsite(): Promise<Website>;
  /** Returns the drivers of another language, for use on the same website. */
  prepareDrivers(language: Language): Promise<Drivers>;
}

/** Defines the tests for the outbox of each language on each of its databases; all run concurrently. */
export function onEachDatabase(service: ServedService, body: (outbox: OutboxUnderTest) => void): void {
  const closing: (() => Promise<void>)[] = [];
  // Servers are started on first use.
  const servers = new Map<DatabaseKind, Promise<WebsiteServer>>();
  const startServer = (kind: DatabaseKind) => onlyOnce(servers, kind, () => startWebsiteServer[kind]());
  const drivers = new Map<string, Promise<Drivers>>();
  const prepareDrivers = (language: Language) => onlyOnce(drivers, language.name, () => language.prepare());

  afterAll(async () => {
    for (const close of closing) await close();
    for (const each of drivers.values()) await (await each).stop();
    for (const server of servers.values()) await (await server).stop();
  });

  const here = LANGUAGES.filter(({ tools }) => missingTools(tools).length === 0);
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
              const database = await (await startServer(kind)).database();
              closing.push(() => database.close());
              return aWebsite(await prepareDrivers(language), database, service);
            },
            prepareDrivers,
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
