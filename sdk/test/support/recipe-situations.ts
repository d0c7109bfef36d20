import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, type TestContext, test, vi } from 'vitest';
import type { Outcome } from '../../../test/tools/commands.ts';
import type { ServedService } from '../../../test/tools/served-service.ts';
import { describeIf } from '../../../test/tools/servers.ts';
import { startProxy } from '../../../test/tools/tcp-proxy.ts';
import { testSize } from '../../../test/tools/test-size.ts';
import { canClockBeSet, type DriverClock } from '../../conformance/driver-clock.ts';
import { faultsOf } from '../../index.ts';
import { type Form, NO_UTF8, type Typed } from './forms.ts';
import { POSTED_CAPTURES } from './posted-captures.ts';
import {
  canStart,
  type DatabaseKind,
  REMEDY,
  startWebsiteServer,
  type WebsiteDatabase,
  type WebsiteServer,
} from './website-databases.ts';

/** The settings with which a website sends its leads. */
type Settings = Readonly<Record<'LEAD_INTAKE_URL' | 'LEAD_INTAKE_KEY', string>>;

/** A website made by a recipe. */
export interface RecipeWebsite {
  /** The clock of the process that serves its pages. */
  readonly clock: DriverClock;
  /** Empties its outbox. */
  empty(): Promise<unknown>;
  /** Changes the settings of the website itself, if it also sends leads. */
  use?(settings: Settings): Promise<unknown>;
  /** Opens the page with the form. */
  open(): Promise<Form>;
  /** Immediately sends the waiting leads once, as the worker or cron job does. Its output counts as a report. */
  send(settings: Settings): Promise<Pick<Outcome, 'stdout' | 'stderr'>>;
  /** Returns the website's report to a person on that day; empty if there is nothing to report. */
  report(): Promise<string>;
}

interface World {
  readonly own: Settings;
  readonly studioId: string;
  readonly service: ServedService;
}

/** Returns settings with which leads cannot be sent. */
type Trouble = (world: World) => Partial<Settings> | Promise<Partial<Settings>>;

const UNREPORTED: Readonly<Record<string, Trouble>> = {
  'an outage': () => ({ LEAD_INTAKE_URL: 'http://127.0.0.1:1' }),
  "a proxy's page in between": async () => ({ LEAD_INTAKE_URL: await aProxy() }),
};
const REPORTED: Readonly<Record<string, Trouble>> = {
  'a wrong address': ({ service }) => ({ LEAD_INTAKE_URL: `${service.url}/elsewhere` }),
  'a mistyped key': ({ own }) => ({ LEAD_INTAKE_KEY: `${own.LEAD_INTAKE_KEY.slice(0, -1)}~` }),
  async 'a revoked key'({ service }) {
    const studio = await service.aStudioWithKey();
    const { secret } = studio;
    await service.revokeKey(studio);
    return { LEAD_INTAKE_KEY: secret };
  },
};

const HOUR_SECONDS = 3600;

/** A message that themes, templates and shortcodes could alter. */
const NOTE = '["a" -- [gallery] {{ 2x3 }} \'&amp;\' :)\r\n<\\b>';

const THANKS = 'Thank you';

/** Defines the tests of every recipe, for a website that has started. `examples/README.md` lists what they show. */
export function testRecipe(service: ServedService, website: () => RecipeWebsite): void {
  const alone = { concurrent: false };
  test('a form reports faults before any thanks, and keeps what was entered', alone, () =>
    expectFaultsBeforeThanks(website(), service),
  );
  test('no lead is lost to spaces around an address, invalid UTF-8, or an IPv6 service', alone, () =>
    expectOddFormsArrive(website(), service),
  );
  // @proves clients-14
  test('each visit becomes one lead despite failures, and a person learns of lasting ones', alone, () =>
    expectEachVisitArrives(website(), service),
  );
}

/** A database server that a recipe's page names. */
type ServerKind = Exclude<DatabaseKind, 'SQLite'>;

/** A website made by a recipe, with its own database, and with its worker if it has one. */
export interface WebsiteOnServer {
  /** Opens the page with the form. */
  open(): Promise<Form>;
  /** Sends the waiting leads, as its cron job does; absent if a worker does that. */
  send?(): Promise<Outcome>;
}

/**
 * Defines the tests of a recipe on the database servers that its page names. The other tests run on SQLite, which has no server to restart
 * and is the only database of the recipe for Next.js.
 *
 * @param kinds all are tested in a soak, and the first `usual` of them every time
 * @param start creates the tables, and starts the website and its worker, which end with the test
 */
export function testRecipeOnServers(
  service: ServedService,
  kinds: readonly ServerKind[],
  usual: number,
  start: (
    database: WebsiteDatabase,
    settings: Settings,
    onTestFinished: TestContext['onTestFinished'],
  ) => Promise<WebsiteOnServer>,
): void {
  for (const kind of kinds.slice(0, testSize('RECIPE_SERVERS', { usual, soak: kinds.length }))) {
    describeIf(canStart[kind], `on ${kind}`, REMEDY, () => {
      let server: WebsiteServer;
      beforeAll(async () => {
        server = await startWebsiteServer[kind]();
      });
      afterAll(() => server?.stop());

      test(`the website loses no lead when all its ${kind} connections end`, {
        concurrent: false,
      }, async ({ onTestFinished }) => {
        const { secret, studioId } = await service.aStudioWithKey();
        const database = await server.database();
        onTestFinished(() => database.close());
        const settings = { LEAD_INTAKE_URL: service.url, LEAD_INTAKE_KEY: secret };
        const website = await start(database, settings, onTestFinished);
        const expectToArrive = async (name: string, number: number) => {
          const typed = { name, email: `${name}@example.org`, message: NOTE };
          expect(await (await website.open()).send(typed)).toMatchObject({ text: expect.stringContaining(THANKS) });
          expect(await website.send?.()).toEqual(website.send && { status: 0, stdout: '', stderr: '' });
          const isThere = async () => expect(await service.countLeads(studioId)).toBe(number);
          await vi.waitFor(isThere, { timeout: 90_000, interval: 100 });
        };

        await expectToArrive('ada', 1);
        await database.endConnections();
        await expectToArrive('mary', 2);
        const notes = (await service.readLeads(studioId)).map(({ note }) => note);
        expect(notes).toEqual(Array(2).fill(NOTE.replaceAll('\r\n', '\n')));
      });
    });
  }
}

async function aWorld(website: RecipeWebsite, service: ServedService): Promise<World> {
  const { secret, studioId } = await service.aStudioWithKey();
  const own = { LEAD_INTAKE_URL: service.url, LEAD_INTAKE_KEY: secret };
  website.clock.set(0);
  await website.empty();
  await website.use?.(own);
  return { own, studioId, service };
}

async function expectEachVisitArrives(website: RecipeWebsite, service: ServedService): Promise<void> {
  const world = await aWorld(website, service);
  const { own, studioId } = world;
  const sendAs = async (form: Form, name: string, more: Partial<Typed> = {}, isKeyless = false) => {
    const typed = { name, email: `${name}@example.org`, message: 'A trial, please.', ...more };
    const { text } = await form.send(typed, isKeyless);
    expect(text).toContain(THANKS);
    return text;
  };
  /** Sends once, and expects this number of leads in the studio, and a report or none. */
  const expectAfterSending = async (settings: Settings, count: number, isReported: boolean, when: string) => {
    const { stdout, stderr } = await website.send(settings);
    const outcome = [await service.countLeads(studioId), stdout + stderr + (await website.report()) !== ''];
    expect(outcome, when).toEqual([count, isReported]);
  };

  const [clicked, corrected, cached] = [await website.open(), await website.open(), await website.open()];
  const [first, second] = await Promise.all([sendAs(clicked, 'ada'), sendAs(clicked, 'ada')]);
  expect(first).toBe(second);
  await sendAs(corrected, 'mary');
  await sendAs(corrected, 'mary', { email: 'mary.s@example.org' });
  for (const name of ['grace', 'joan']) await sendAs(cached, name);
  for (let click = 0; click < 2; click += 1) await sendAs(cached, 'eve', {}, true);
  await expectAfterSending(own, 6, false, 'double clicks, a corrected address, a cached page, and one without its key');

  const visitDuring = async (name: string, trouble: Trouble, isReported: boolean) => {
    const settings = { ...own, ...(await trouble(world)) };
    await website.use?.(settings);
    await sendAs(await website.open(), name.replaceAll(/\W/g, '-'));
    await expectAfterSending(settings, isReported ? 8 : 6, isReported, name);
  };
  for (const [name, trouble] of Object.entries(UNREPORTED)) await visitDuring(name, trouble, false);
  await website.use?.(own);
  await expectAfterSending(own, 8, false, 'after an outage');
  for (const [name, trouble] of Object.entries(REPORTED)) {
    // Otherwise the report could be about the previous trouble.
    await website.empty();
    await visitDuring(name, trouble, true);
  }
  await website.use?.(own);
  await expectAfterSending(own, 9, false, 'with a new key');

  // A visitor without an open lead comes back to the cached page, and one with an open lead writes another message.
  const isGraces = ({ displayName }: { displayName: string }) => displayName === 'grace';
  const leadId = (await service.readLeads(studioId)).find(isGraces)?.id ?? '';
  await service.closeLead(studioId, leadId);
  const isLater = canClockBeSet || process.env.CI !== undefined;
  if (isLater) {
    website.clock.set(HOUR_SECONDS);
    await sendAs(cached, 'grace');
    website.clock.set(0);
  }
  await sendAs(await website.open(), 'joan', { message: 'On Monday, please.' });
  await expectAfterSending(own, isLater ? 10 : 9, true, 'a cached page an hour later, and another message');
}

/**
 * Sends all kinds of forms, and expects each that was thanked for to arrive. A form may refuse only captures that the service refuses, and blank
 * names. A refused form comes back with a fault and all of its input.
 */
async function expectFaultsBeforeThanks(website: RecipeWebsite, service: ServedService): Promise<void> {
  const { own, studioId } = await aWorld(website, service);
  // Opens two forms, because WordPress has the form on two pages.
  const forms = [await website.open(), await website.open()];
  // In an `email` field, browsers refuse addresses that the service accepts.
  expect(forms.map(({ typeOfEmail }) => typeOfEmail)).toEqual(['text', 'text']);
  let thanked = 0;
  for (const [index, [name, { displayName, contact, note = NOTE, sourceId }]] of POSTED_CAPTURES.entries()) {
    // Forms have no source.
    if (contact.type !== 'email' || sourceId !== undefined) continue;
    // Encodes the input as browsers do. Each form comes from another visitor.
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

/** Sends input that phones autocomplete, and input that only a program sends, to a service at an IPv6 address. */
async function expectOddFormsArrive(website: RecipeWebsite, service: ServedService): Promise<void> {
  const { own, studioId } = await aWorld(website, service);
  const { hostname, port } = new URL(service.url);
  const proxy = await startProxy(hostname, Number(port), '::1');
  onTestFinished(() => proxy.stop());
  const settings = { ...own, LEAD_INTAKE_URL: `http://[::1]:${proxy.port}` };
  await website.use?.(settings);
  const forms: Required<Typed>[] = [
    { name: 'ada', email: ' ada@example.org ', message: 'A trial, please.' },
    { name: `Caf${NO_UTF8}`, email: 'mary@example.org', message: `A ${NO_UTF8} trial.` },
  ];
  for (const form of forms) expect((await (await website.open()).send(form)).text).toContain(THANKS);

  const { stdout, stderr } = await website.send(settings);

  expect(stdout + stderr + (await website.report())).toBe('');
  const leads = (await service.readLeads(studioId)).map(({ displayName, contact, note }) => [
    displayName,
    contact,
    note,
  ]);
  expect(leads.sort()).toEqual([
    ['Caf\ufffd', 'mary@example.org', 'A \ufffd trial.'],
    ['ada', 'ada@example.org', 'A trial, please.'],
  ]);
}

/** Returns input as pages show it, with one character for each line break. */
const asShown = (typed: Required<Typed>) =>
  Object.fromEntries(Object.entries(typed).map(([field, text]) => [field, text.replaceAll(/\r\n?/g, '\n')]));

/** Starts a proxy that answers everything with its own page, and returns its address. */
async function aProxy(): Promise<string> {
  const server = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end('<h1>Welcome</h1>'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
