import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { LeadStage } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { canClockBeSet, type DriverClock } from '../../sdk/conformance/driver-clock.ts';
import { faultsOf } from '../../sdk/index.ts';
import { allLeads } from './core-clients.ts';
import type { Outcome } from './examples.ts';
import type { Form, Typed } from './forms.ts';
import { POSTED_CAPTURES } from './posted-captures.ts';
import type { Service } from './service.ts';

/** Where a website sends its leads. */
type Settings = Readonly<Record<'LEAD_INTAKE_URL' | 'LEAD_INTAKE_KEY', string>>;

/** A website made by a recipe. */
export interface RecipeWebsite {
  /** The clock of the process that serves its pages. */
  readonly clock: DriverClock;
  /** Empties its outbox. */
  empty(): Promise<unknown>;
  /** Gives the website itself its settings, if it sends, too. */
  use?(settings: Settings): Promise<unknown>;
  /** Opens the page with the form. */
  open(): Promise<Form>;
  /** Makes the waiting leads due and sends them once, as the worker or cron job does. What it prints counts as reported. */
  send(settings: Settings): Promise<Pick<Outcome, 'stdout' | 'stderr'>>;
  /** Returns what the website reports to a person on that day; empty: nothing. */
  report(): Promise<string>;
}

/** The situation in which a visitor comes, and what becomes of the visit. */
interface Situation {
  /** The website's settings meanwhile; by default its own ones. */
  readonly settings?: (world: World) => Partial<Settings> | Promise<Partial<Settings>>;
  /** Whether the clock of the website is moved. */
  readonly needsClock?: boolean;
  /** What the visitor does. Returns the last page. */
  readonly visit: (website: RecipeWebsite, world: World) => Promise<string>;
  /** The leads in the studio while the situation lasts, and after it. */
  readonly arrive: readonly [meanwhile: number, afterwards: number];
  /** Whether it is reported while it lasts, and after it. */
  readonly isReported: readonly [meanwhile: boolean, afterwards: boolean];
}

interface World {
  readonly own: Settings;
  readonly studioId: string;
  readonly service: Service;
}

const HOUR_SECONDS = 3600;

const GRACE = { name: 'Grace', email: 'grace@example.org', message: 'A trial, please.' };
const FINE = { arrive: [1, 1], isReported: [false, false] } as const;
const LATE = { arrive: [0, 1], isReported: [false, false] } as const;
const LATE_AND_REPORTED = { arrive: [0, 1], isReported: [true, false] } as const;

const send = async (website: RecipeWebsite, typed: Typed) => (await (await website.open()).send(typed)).text;
const sendOnce = (website: RecipeWebsite) => send(website, GRACE);

/** A message that themes, templates and shortcodes could alter. */
const NOTE = '["a" -- [gallery] {{ 2x3 }} \'&amp;\' :)\r\n<\\b>';

const THANKS = 'Thank you';

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
  'a cached page an hour later, when the lead is closed': {
    async visit(website, { own, studioId, service }) {
      const form = await website.open();
      await form.send(GRACE);
      await website.send(own);
      for (const { id: leadId } of await allLeads(service, studioId)) {
        await service.leads.changeLeadStage({ studioId, leadId, stage: LeadStage.LOST });
      }
      website.clock.set(HOUR_SECONDS);
      return (await form.send(GRACE)).text;
    },
    needsClock: true,
    ...FINE,
    arrive: [2, 2],
  },
  'another message of a visitor with an open lead': {
    async visit(website, { own }) {
      await sendOnce(website);
      await website.send(own);
      return send(website, { ...GRACE, message: 'On Monday, please.' });
    },
    ...FINE,
    isReported: [true, true],
  },
  'an outage': { settings: () => ({ LEAD_INTAKE_URL: 'http://127.0.0.1:1' }), visit: sendOnce, ...LATE },
  "a proxy's page in between": {
    settings: async () => ({ LEAD_INTAKE_URL: await aProxy() }),
    visit: sendOnce,
    ...LATE,
  },
  'a wrong address': {
    settings: ({ service }) => ({ LEAD_INTAKE_URL: `${service.url}/elsewhere` }),
    visit: sendOnce,
    ...LATE_AND_REPORTED,
  },
  'a mistyped key': {
    settings: ({ own }) => ({ LEAD_INTAKE_KEY: `${own.LEAD_INTAKE_KEY.slice(0, -1)}~` }),
    visit: sendOnce,
    ...LATE_AND_REPORTED,
  },
  'a revoked or replaced key': {
    async settings({ service }) {
      const { secret, ...ids } = await service.aStudioWithKey();
      await service.apiKeys.revokeApiKey(ids);
      return { LEAD_INTAKE_KEY: secret };
    },
    visit: sendOnce,
    ...LATE_AND_REPORTED,
  },
  'a message that is too long': {
    visit: (website) => send(website, { ...GRACE, message: 'x'.repeat(2001) }),
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

const FAULTS = 'what the service refuses is said before any thanks; what was entered stays in the form';

/** Defines the tests of every recipe, of a website that has started when they run. */
export function testRecipe(service: Service, website: () => RecipeWebsite): void {
  const alone = { concurrent: false, timeout: 300_000 };
  test(FAULTS, alone, () => expectOfRecipe(FAULTS, website(), service));
  test('does in each situation what the table of recipes says', alone, async () => {
    const canBeRun = ([, { needsClock = false }]: [string, Situation]) =>
      !needsClock || canClockBeSet || process.env.CI;
    for (const [name] of Object.entries(SITUATIONS).filter(canBeRun)) await expectOfRecipe(name, website(), service);
  });
}

/** Tests a website in the situation of that name, or with all kinds of forms. */
export function expectOfRecipe(name: string, website: RecipeWebsite, service: Service): Promise<void> {
  const situation = SITUATIONS[name];
  return situation ? expectSituation(name, situation, website, service) : expectFaultsBeforeThanks(website, service);
}

async function aWorld(website: RecipeWebsite, service: Service): Promise<World> {
  const { secret, studioId } = await service.aStudioWithKey();
  const own = { LEAD_INTAKE_URL: service.url, LEAD_INTAKE_KEY: secret };
  website.clock.set(0);
  await website.empty();
  await website.use?.(own);
  return { own, studioId, service };
}

async function expectSituation(name: string, situation: Situation, website: RecipeWebsite, service: Service) {
  const { visit, arrive, isReported } = situation;
  const world = await aWorld(website, service);
  const { own, studioId } = world;
  const meanwhile = { ...own, ...(await situation.settings?.(world)) };
  if (situation.settings) await website.use?.(meanwhile);
  expect((await visit(website, world)).includes(THANKS), name).toBe(arrive[1] > 0);
  for (const [index, settings] of (situation.settings ? [meanwhile, own] : [own]).entries()) {
    if (index === 1) await website.use?.(own);
    const { stdout, stderr } = await website.send(settings);
    const outcome = [await service.countLeads(studioId), stdout + stderr + (await website.report()) !== ''];
    expect(outcome, name).toEqual([arrive[index], isReported[index]]);
  }
}

/**
 * Sends all kinds of forms. One that the service accepts is thanked for, except for a blank name. Any other one is thanked for as well, such as
 * with white space around an address that the form removes, or comes back with a fault and with all that was entered. Each that was thanked for arrives.
 */
async function expectFaultsBeforeThanks(website: RecipeWebsite, service: Service): Promise<void> {
  const { own, studioId } = await aWorld(website, service);
  // Two, because WordPress has the form on two pages.
  const forms = [await website.open(), await website.open()];
  let thanked = 0;
  for (const [index, [name, { displayName, contact, note = NOTE }]] of POSTED_CAPTURES.entries()) {
    if (contact.type !== 'email') continue;
    // As browsers encode it; each form from another visitor.
    const value = contact.value.replace('grace', `g${index}`).toWellFormed();
    const typed = { name: displayName.toWellFormed(), email: value, message: (note ?? '').toWellFormed() };
    const form = forms[index % 2];
    const answer = await form?.send(typed);
    if (answer?.text.includes(THANKS)) {
      thanked += 1;
      continue;
    }
    const faults = faultsOf({ displayName: typed.name, contact: { type: 'email', value }, note: typed.message });
    expect(Object.keys(faults).length > 0 || typed.name.trim() === '', name).toBe(true);
    expect(answer?.text, name).not.toBe(form?.text);
    expect(answer?.form?.entered, name).toEqual(asShown(typed));
  }
  const { stdout, stderr } = await website.send(own);
  expect([await service.countLeads(studioId), stdout + stderr + (await website.report())]).toEqual([thanked, '']);
}

/** Pages have one character for each line break. */
const asShown = (typed: Required<Typed>) =>
  Object.fromEntries(Object.entries(typed).map(([field, text]) => [field, text.replaceAll(/\r\n?/g, '\n')]));

/** Returns the address of a proxy that answers everything with a page of its own. */
async function aProxy(): Promise<string> {
  const server = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end('<h1>Welcome</h1>'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
