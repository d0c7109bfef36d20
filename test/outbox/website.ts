import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { createLeadIntakeClient, type LeadCapture } from '../../sdk/index.ts';
import type { RunningProcess } from '../support/processes.ts';
import type { Service, StudioWithKey } from '../support/service.ts';
import type { WebsiteDatabase } from '../support/website-databases.ts';
import type { StartDriver } from './languages.ts';

/** The default name of the table, which websites of 1.1 have. */
export const TABLE = 'lead_intake_outbox';

/** A line that a driver prints; see README.md. */
export type Line = Readonly<Record<string, unknown>>;

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

/** A running driver. */
export interface RunningDriver {
  readonly process: RunningProcess;
  /** The lines printed so far. */
  lines(): readonly Line[];
  /** Waits for its exit and returns its last line: the result or the error. */
  result(): Promise<Line>;
}

/** A website with an outbox in one language, its own database, and an API key of its own studio. */
export interface Website {
  readonly database: WebsiteDatabase;
  readonly studio: StudioWithKey;
  /** Starts a command; the caller waits for or kills it. */
  begin(command: string, args?: object, env?: Readonly<Record<string, string>>): RunningDriver;
  /** Runs a command that must succeed; returns its result and the preceding lines. */
  run(
    command: string,
    args?: object,
    env?: Readonly<Record<string, string>>,
  ): Promise<{ readonly result: Line; readonly before: readonly Line[] }>;
  /** Runs a command that must be refused; returns the message. */
  refusal(command: string, args?: object, env?: Readonly<Record<string, string>>): Promise<string>;
  /** Adds leads, each in a committed transaction; returns their keys. */
  add(...captures: LeadCapture[]): Promise<string[]>;
  /** The table, oldest first. */
  rows(): Promise<Row[]>;
  /** Makes all waiting leads due. */
  letTimePass(): Promise<void>;
  /** The sorted names of the studio's leads. */
  leads(): Promise<string[]>;
  /** The same website with the outbox of another language. */
  by(start: StartDriver): Website;
}

/** A lead with a unique contact. */
export function aCapture(overrides: Partial<LeadCapture> = {}): LeadCapture {
  const id = randomUUID();
  return { displayName: `Mary ${id}`, contact: { type: 'email', value: `${id}@example.com` }, ...overrides };
}

/** Creates a website with its table. */
export async function aWebsite(start: StartDriver, database: WebsiteDatabase, service: Service): Promise<Website> {
  const studio = await service.aStudioWithKey();
  await database.run('CREATE TABLE visits (note VARCHAR(200))');
  const website = websiteBy(start, database, service, studio);
  await website.run('set-up');
  return website;
}

function websiteBy(start: StartDriver, database: WebsiteDatabase, service: Service, studio: StudioWithKey): Website {
  const begin: Website['begin'] = (command, args = {}, env = {}) => {
    const process = start([command, JSON.stringify(args)], {
      OUTBOX_DATABASE: JSON.stringify(database.address),
      LEAD_INTAKE_URL: service.url,
      LEAD_INTAKE_KEY: studio.secret,
      LEAD_INTAKE_DEADLINE_MS: '20000',
      LEAD_INTAKE_ATTEMPT_TIMEOUT_MS: '20000',
      ...env,
    });
    let printed = '';
    process.child.stdout?.on('data', (chunk) => {
      printed += chunk;
    });
    const lines = () =>
      printed
        .split('\n')
        .slice(0, -1)
        .map((line): Line => JSON.parse(line));
    return {
      process,
      lines,
      async result() {
        const status = await process.ended();
        const last = lines().at(-1);
        if (last === undefined || status !== ('error' in last ? 1 : 0)) {
          throw new Error(`the driver ended with ${status}, for the command ${command}:\n${process.output()}`);
        }
        return last;
      },
    };
  };
  const run: Website['run'] = async (command, args, env) => {
    const driver = begin(command, args, env);
    const result = await driver.result();
    expect(result).not.toHaveProperty('error');
    return { result, before: driver.lines().slice(0, -1) };
  };

  return {
    database,
    studio,
    begin,
    run,
    async refusal(command, args, env) {
      const result = await begin(command, args, env).result();
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

/** Polls until the condition holds; the test's timeout is the limit. */
export async function eventually(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20);
}
