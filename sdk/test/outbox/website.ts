import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { ServedService, StudioWithKey } from '../../../test/tools/served-service.ts';
import { createLeadIntakeClient, type LeadCapture } from '../../index.ts';
import type { WebsiteDatabase } from '../support/website-databases.ts';
import type { Command, Driver, Drivers, Line } from './drivers.ts';

/** The default name of the table. */
export const TABLE = 'lead_intake_outbox';

/** A row of the table. */
export interface Row {
  readonly idempotency_key: string;
  readonly capture: string | null;
  readonly state: string;
  readonly attempts: number;
  readonly created_at: number;
  readonly next_attempt_at: number;
  readonly settled_at: number | null;
  readonly lead_id: string | null;
  readonly reason: string | null;
}

/** Settings that a command gets in place of the website's own. */
interface Settings {
  readonly table?: string;
  readonly baseUrl?: string;
  readonly apiKey?: string;
  readonly deadlineMs?: number;
  readonly onAttempt?: 'throw';
}

/** A website with an outbox in one language, its own database, and an API key of its own studio. */
export interface Website {
  readonly database: WebsiteDatabase;
  readonly studio: StudioWithKey;
  /** Gives a command to a process of its own; the caller waits for or kills it. */
  begin(command: string, args?: object, settings?: Settings): Driver;
  /** Runs a command that must succeed; returns its result and the preceding lines. */
  run(
    command: string,
    args?: object,
    settings?: Settings,
  ): Promise<{ readonly result: Line; readonly before: readonly Line[] }>;
  /** Runs a command that must be refused; returns the message. */
  refusal(command: string, args?: object, settings?: Settings): Promise<string>;
  /** Adds leads, each in a committed transaction; returns their keys. */
  add(...captures: LeadCapture[]): Promise<string[]>;
  /** Returns the rows of the table, oldest first. */
  rows(): Promise<Row[]>;
  /** Makes all waiting leads due. */
  letTimePass(): Promise<void>;
  /** Returns the sorted names of the studio's leads. */
  leads(): Promise<string[]>;
  /** Returns the same website with the outbox of another language. */
  by(drivers: Drivers): Website;
}

/** Returns a lead with a unique contact. */
export function aCapture(overrides: Partial<LeadCapture> = {}): LeadCapture {
  const id = randomUUID();
  return { displayName: `Mary ${id}`, contact: { type: 'email', value: `${id}@example.com` }, ...overrides };
}

/** Creates a website with its table. */
export async function aWebsite(drivers: Drivers, database: WebsiteDatabase, service: ServedService): Promise<Website> {
  const studio = await service.aStudioWithKey();
  await database.run('CREATE TABLE visits (note VARCHAR(200))');
  const website = websiteBy(drivers, database, service, studio);
  await website.run('set-up');
  return website;
}

function websiteBy(
  drivers: Drivers,
  database: WebsiteDatabase,
  service: ServedService,
  studio: StudioWithKey,
): Website {
  const toLine = (command: string, args: object, settings: Settings): Command => ({
    command,
    arguments: args,
    settings: {
      database: database.address,
      baseUrl: service.url,
      apiKey: studio.secret,
      deadlineMs: 20_000,
      attemptTimeoutMs: 20_000,
      ...settings,
    },
  });
  const run: Website['run'] = async (command, args = {}, settings = {}) => {
    const outcome = await drivers.run(toLine(command, args, settings));
    expect(outcome.result).not.toHaveProperty('error');
    return outcome;
  };

  return {
    database,
    studio,
    begin: (command, args = {}, settings = {}) => drivers.begin(toLine(command, args, settings)),
    run,
    async refusal(command, args = {}, settings = {}) {
      const { result } = await drivers.run(toLine(command, args, settings));
      expect(result).toEqual({ error: expect.stringMatching(/./) });
      return String(result.error);
    },
    async add(...captures) {
      const { before } = await run('add', { leads: captures.map((capture) => ({ capture })) });
      return before.map(({ added }) => String(added));
    },
    async rows() {
      const rows = await database.run(`SELECT * FROM ${TABLE} ORDER BY created_at, idempotency_key`);
      // Some drivers return integers as strings.
      const number = (value: unknown) => (value === null ? null : Number(value));
      return rows.map(
        (row) =>
          ({
            ...row,
            attempts: number(row.attempts),
            created_at: number(row.created_at),
            next_attempt_at: number(row.next_attempt_at),
            settled_at: number(row.settled_at),
          }) as Row,
      );
    },
    letTimePass: async () =>
      void (await database.run(`UPDATE ${TABLE} SET next_attempt_at = created_at WHERE state = 'waiting'`)),
    async leads() {
      const client = createLeadIntakeClient({ baseUrl: service.url, apiKey: studio.secret });
      const names: string[] = [];
      for await (const { displayName } of client.allLeads({ limit: 100 })) names.push(displayName);
      return names.sort();
    },
    by: (other) => websiteBy(other, database, service, studio),
  };
}

/** Waits until the condition holds, at most until the test's timeout. */
export async function eventually(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20);
}
