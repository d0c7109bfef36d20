import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'vitest';
import type { Form } from './forms.ts';
import type { Service } from './service.ts';

/** A website made by a recipe. */
export interface RecipeWebsite {
  /** Empties its outbox. */
  empty(): Promise<unknown>;
  /** Gives the website, and its worker or cron job, an address and a key of the service. */
  use(address: string, key: string): Promise<unknown>;
  /** Opens the page with the form. */
  open(): Promise<Form>;
  /** Makes the waiting leads due and sends them once, as the worker or cron job does. */
  send(): Promise<unknown>;
  /** Returns what the website reports to a person on that day; empty: nothing. */
  report(): Promise<string>;
}

/** The situation in which a visitor comes, and what becomes of the visit. */
interface Situation {
  /** The website's settings meanwhile; by default its own ones. */
  readonly settings?: (world: World) => [address: string, key: string] | Promise<[address: string, key: string]>;
  /** What the visitor does. Returns the last page. */
  readonly visit: (website: RecipeWebsite) => Promise<string>;
  /** The leads in the studio while the situation lasts, and after it. */
  readonly arrive: readonly [meanwhile: number, afterwards: number];
  /** Whether it is reported while it lasts, and after it. */
  readonly isReported: readonly [meanwhile: boolean, afterwards: boolean];
}

interface World {
  readonly key: string;
  readonly service: Service;
}

const GRACE = { name: 'Grace', email: 'grace@example.org', message: 'A trial, please.' };
const FINE = { arrive: [1, 1], isReported: [false, false] } as const;
const LATE = { arrive: [0, 1], isReported: [false, false] } as const;
const LATE_AND_REPORTED = { arrive: [0, 1], isReported: [true, false] } as const;

const sendOnce = async (website: RecipeWebsite, typed = GRACE) => (await (await website.open()).send(typed)).text;

/** What every recipe does; `examples/README.md` has the table. */
const SITUATIONS: Readonly<Record<string, Situation>> = {
  'a double click': {
    async visit(website) {
      const form = await website.open();
      const [first, second] = await Promise.all([form.send(GRACE), form.send(GRACE)]);
      expect(first.text).toBe(second.text);
      return second.text;
    },
    ...FINE,
  },
  'going back, and correcting the address': {
    async visit(website) {
      const form = await website.open();
      await form.send(GRACE);
      return (await form.send({ ...GRACE, email: 'grace.h@example.org' })).text;
    },
    ...FINE,
    arrive: [2, 2],
  },
  'two visitors of one cached page': {
    async visit(website) {
      const form = await website.open();
      await form.send(GRACE);
      return (await form.send({ ...GRACE, name: 'Ada', email: 'ada@example.org' })).text;
    },
    ...FINE,
    arrive: [2, 2],
  },
  'another message of a visitor with an open lead': {
    async visit(website) {
      await sendOnce(website);
      await website.send();
      return sendOnce(website, { ...GRACE, message: 'On Monday, please.' });
    },
    ...FINE,
    isReported: [true, true],
  },
  'an outage': { settings: ({ key }) => ['http://127.0.0.1:1', key], visit: sendOnce, ...LATE },
  "a proxy's page in between": { settings: async ({ key }) => [await aProxy(), key], visit: sendOnce, ...LATE },
  'a wrong address': {
    settings: ({ key, service }) => [`${service.url}/elsewhere`, key],
    visit: sendOnce,
    ...LATE_AND_REPORTED,
  },
  'a mistyped key': {
    settings: ({ key, service }) => [service.url, `${key.slice(0, -1)}~`],
    visit: sendOnce,
    ...LATE_AND_REPORTED,
  },
  'a revoked or replaced key': {
    async settings({ service }) {
      const { secret, ...ids } = await service.aStudioWithKey();
      await service.apiKeys.revokeApiKey(ids);
      return [service.url, secret];
    },
    visit: sendOnce,
    ...LATE_AND_REPORTED,
  },
  'a message that is too long': {
    visit: (website) => sendOnce(website, { ...GRACE, message: 'x'.repeat(2001) }),
    arrive: [0, 0],
    isReported: [false, false],
  },
};

/** Returns what becomes of visits to the websites of all recipes, as rows of a table. */
export const documentedRows = (): string[] =>
  Object.entries(SITUATIONS).map(([name, { arrive, isReported }]) => {
    const page = arrive[1] === 0 ? 'the form, with the fault and all that was entered' : '“Thank you”';
    const reported = isReported.map((is) => (is ? 'yes' : 'no'));
    return `| ${[name, page, ...[arrive, reported].map((both) => [...new Set<unknown>(both)].join(', then '))].join(' | ')} |`;
  });

/** Tests a website in each situation, each with its own studio. */
export async function expectInEachSituation(website: RecipeWebsite, service: Service): Promise<void> {
  for (const [name, { settings, visit, arrive, isReported }] of Object.entries(SITUATIONS)) {
    const { secret: key, studioId } = await service.aStudioWithKey();
    await website.empty();
    await website.use(...((await settings?.({ key, service })) ?? [service.url, key]));
    expect((await visit(website)).includes('Thank you'), name).toBe(arrive[1] > 0);
    for (const index of [0, 1] as const) {
      if (index === 1) await website.use(service.url, key);
      await website.send();
      const outcome = [await service.countLeads(studioId), (await website.report()) !== ''];
      expect(outcome, name).toEqual([arrive[index], isReported[index]]);
    }
  }
}

/** Returns the address of a proxy that answers everything with a page of its own. */
async function aProxy(): Promise<string> {
  const server = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end('<h1>Welcome</h1>'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
