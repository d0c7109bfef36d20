import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { describeWithTools } from '../support/examples.ts';
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
  /** A website that no other test knows. */
  aWebsite(): Promise<Website>;
}

/** A suite for the outbox of each language on each of its databases; the tests of all run side by side. */
export function onEachDatabase(service: Service, body: (outbox: OutboxUnderTest) => void): void {
  const servers = new Map<DatabaseKind, Promise<WebsiteServer>>();
  const serverOf = (kind: DatabaseKind): Promise<WebsiteServer> => {
    const started = servers.get(kind) ?? startWebsiteServer[kind]();
    servers.set(kind, started);
    return started;
  };
  const closing: (() => Promise<void>)[] = [];
  let scratch: string;
  beforeAll(() => {
    scratch = mkdtempSync(join(tmpdir(), 'lead-intake-test-'));
  });
  afterAll(async () => {
    for (const close of closing) await close();
    for (const server of servers.values()) await (await server).stop();
    rmSync(scratch, { recursive: true });
  });

  for (const language of LANGUAGES) {
    describeWithTools(language.tools, `the outbox for ${language.name}`, () => {
      let start: StartDriver;
      beforeAll(async () => {
        start = await language.prepare(scratch);
      });
      for (const kind of language.databases) {
        describeIf(canStart[kind], `on ${kind}`, REMEDY, () => {
          body({
            language,
            kind,
            name: `${language.name} on ${kind}`,
            async aWebsite() {
              const database = await (await serverOf(kind)).database();
              closing.push(() => database.close());
              return aWebsite(start, database, service);
            },
          });
        });
      }
    });
  }
}
