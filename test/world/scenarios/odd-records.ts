import fc from 'fast-check';
import { StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { LeadStage } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { times } from '../../support/builders.ts';
import type { StoredRecord } from '../hand.ts';
import { now, type RestAnswer, type SentLead } from '../history.ts';
import type { Life } from '../life.ts';
import { ODD_KEYS, ODD_LEADS, ODD_STUDIOS, type Oddness, oddValue } from '../odd-records.ts';
import {
  createApart,
  crmOf,
  inShort,
  leadApart,
  leadIdIn,
  makeKey,
  makeStudioApart,
  putOwner,
  putSource,
  type StudioApart,
  WAITS,
} from './apart.ts';
import { aScenario } from './scenario.ts';
import { answered, asFarAsTold, called, type Told, untilTold } from './until-told.ts';

// A newer release, another program or a manual change leaves data in the database that this release does not know:
// each time in a separate studio, in which the expected response to every request is known.

/** Selects the value that is written, and its place. */
const which = fc.nat(11);

/** More than the maximum number of live keys of a studio. */
const ENOUGH_KEYS = 22;

/** Records the response to a request in a studio with odd records. */
type Note = (asked: string, told: string) => void;

/** Runs a scenario in a separate studio, as far as disturbances of the service permit. */
async function inStudioApart(
  life: Life,
  happen: (studio: StudioApart, noteOf: (oddness: Oddness) => Note) => Promise<void>,
): Promise<void> {
  await asFarAsTold(async () => {
    const studio = await makeStudioApart(life);
    const { id: studioId } = studio;
    const [party, begin] = ['those there', now()];
    await happen(studio, (oddness) => (asked, told) => {
      life.history.add({ kind: 'odd', party, studioId, oddness, asked, told, span: { begin, end: now() } });
    });
  });
}

/** Writes an unknown value directly into a record; returns a function that restores it. */
async function makeOdd(
  life: Life,
  record: Omit<StoredRecord, 'kind'>,
  oddness: Oddness,
  which: number,
): Promise<() => Promise<unknown>> {
  const { hand } = life.world;
  const { kind, field, value } = oddValue(hand, oddness, { which, word: life.personal });
  const found = { ...record, kind };
  const byHand = <T>(what: string, act: () => Promise<T>): Promise<{ readonly value: T }> =>
    untilTold(life, `${what} by hand`, () =>
      act().then(
        (value) => ({ value }),
        () => undefined,
      ),
    );
  const before = await byHand(`the ${field} of a ${kind} is read`, () => hand.read(found, field));
  const write = (value: unknown) =>
    byHand(`the ${field} of a ${kind} is written`, () => hand.write(found, field, value));
  await write(value);
  const what = `writes ${JSON.stringify(value)?.slice(0, 60)} into the ${field} of the ${kind} ${record.id} of ${record.studioId}`;
  life.history.add({ kind: 'other', party: 'somebody’s hand', what, span: { begin: now(), end: now() } });
  return () => write(before.value);
}

/** The leads, from the oldest to the newest. */
const ROLES = ['first', 'odd 1', 'odd 2', 'odd 3', 'last'] as const;

interface MadeLead {
  readonly sent: SentLead;
  readonly id: string;
  readonly answer: RestAnswer;
  role: (typeof ROLES)[number];
}

/** Some leads of a studio cannot be read. */
export const oddLeads = aScenario({
  weight: 3,
  choice: fc.record({ oddness: fc.constantFrom(...ODD_LEADS), which, core: fc.nat(1) }),
  happen: (life, { oddness, which, core }) =>
    inStudioApart(life, async (studio, noteOf) => {
      const note = noteOf(oddness);
      const { id: studioId, secret } = studio;
      const made: MadeLead[] = [];
      for (const role of ROLES) {
        const sent = leadApart(life, studioId, role);
        const answer = await createApart(life, studio, sent);
        made.push({ sent, id: leadIdIn(answer), answer, role });
      }
      // By id, because a clock that is set back in between makes a later lead the older one.
      made.sort((a, b) => (a.id < b.id ? -1 : 1));
      for (const [index, role] of ROLES.entries()) (made[index] as MadeLead).role = role;
      const roleOf = (id: string | undefined) => made.find((each) => each.id === id)?.role ?? `${id}`;
      const odd = made.filter(({ role }) => role.startsWith('odd'));
      const one = odd[1] as MadeLead;
      const setRight = [];
      for (const { id } of odd) setRight.push(await makeOdd(life, { studioId, id }, oddness, which));

      // Concurrently, so that they are read in one batch.
      await Promise.all([
        ...made.flatMap(({ role, id }) =>
          times(2, async () => {
            const told = inShort(await answered(life, secret, { name: 'get', leadId: id }));
            note(role.startsWith('odd') ? 'it is asked for' : 'another is asked for', told);
          }),
        ),
        pages(life, secret, 1).then((pages) =>
          note('leads are listed, one a page', pages.map((ids) => ids.map(roleOf).join()).join(' | ')),
        ),
        called(life, `the leads of ${studioId} are listed`, () =>
          crmOf(life, core).leads.listLeads({ studioId }, WAITS),
        ).then((told) =>
          note(
            'the CRM lists leads',
            inWords(told, ({ leads }) => leads.map(({ id }) => roleOf(id)).join()),
          ),
        ),
      ]);
      const again = await createApart(life, studio, one.sent);
      const isSame = again.text === one.answer.text;
      note('its creation is repeated', again.status === 201 && isSame ? 'the same answer' : inShort(again));
      const rival = await createApart(life, studio, leadApart(life, studioId, 'rival', one.sent.contact));
      const inTheWay = /\/([0-9a-f-]{36})>/.exec(rival.headers.get('link') ?? '')?.[1];
      note('its contact is sent by another', `${inShort(rival)}, ${roleOf(inTheWay)}`);
      const move = { studioId, leadId: one.id, stage: LeadStage.CONTACTED };
      const moved = await called(life, 'a lead is moved', () => crmOf(life, core).leads.changeLeadStage(move, WAITS));
      note(
        'it is moved',
        inWords(moved, () => 'moved'),
      );
      for (const each of setRight) await each();
      note('it is asked for, set right', inShort(await answered(life, secret, { name: 'get', leadId: one.id })));
      const all = await pages(life, secret, 100);
      note('leads are listed, when all are set right', all.map((ids) => ids.map(roleOf).join()).join(' | '));
    }),
});

/** Returns the ids of a list, page by page. */
async function pages(life: Life, secret: string, limit: number): Promise<string[][]> {
  const all: string[][] = [];
  for (let cursor: string | null = ''; cursor !== null && all.length < 20; ) {
    const query: string = `?limit=${limit}${cursor && `&cursor=${cursor}`}`;
    const answer = await answered(life, secret, { name: 'list', walk: 0, page: all.length, query });
    if (answer.status !== 200) return [...all, [inShort(answer)]];
    const page = JSON.parse(answer.text);
    all.push(page.leads.map(({ id }: { id: string }) => id));
    cursor = page.nextCursor;
  }
  return all;
}

const inWords = <T>(told: Told<T>, words: (answer: T) => string): string =>
  'refused' in told ? told.refused : words(told.answer);

/** A key of a studio that has its maximum number of keys cannot be read. */
export const oddKey = aScenario({
  weight: 2,
  choice: fc.record({ oddness: fc.constantFrom(...ODD_KEYS), which, core: fc.nat(1) }),
  happen: (life, { oddness, which, core }) =>
    inStudioApart(life, async (studio, noteOf) => {
      const note = noteOf(oddness);
      const { id: studioId } = studio;
      const odd = await makeKey(life, studioId);
      await Promise.all(times(ENOUGH_KEYS, () => makeKey(life, studioId)));
      const setRight = await makeOdd(life, { studioId, id: odd.apiKeyId }, oddness, which);

      const { apiKeys } = crmOf(life, core);
      const owner = { studioId, memberId: 'owner' };
      const listed = async () => {
        const told = await called(life, 'keys are listed', () => apiKeys.listApiKeys(owner, WAITS));
        return 'answer' in told ? told.answer.apiKeys : [];
      };
      const list = { name: 'list', walk: 0, page: 0, query: '' } as const;
      const tried = async (asked: string, secret: string) => note(asked, inShort(await answered(life, secret, list)));
      await Promise.all([tried('it is tried', odd.secret), tried('another is tried', studio.secret)]);
      const more = await makeKey(life, studioId);
      note('one more is made', more.refused ?? 'made');
      const found = (await listed()).find(({ id }) => id === odd.apiKeyId);
      note('it is listed', found ? `expires in ${found.expireTime?.seconds === 0n ? 1970 : 'its time'}` : 'not there');
      const request = { ...owner, apiKeyId: odd.apiKeyId };
      if (oddness === 'a key') {
        const replaced = await called(life, 'a key is replaced', () => apiKeys.replaceApiKey(request, WAITS));
        note(
          'it is replaced',
          inWords(replaced, () => 'replaced'),
        );
      }
      await called(life, 'a key is revoked', () => apiKeys.revokeApiKey(request, WAITS));
      const revoked = (await listed()).find(({ id }) => id === odd.apiKeyId);
      note('it is revoked', revoked?.revokeTime ? 'revoked' : 'not revoked');
      const next = await makeKey(life, studioId);
      // If a key was created but its response was lost, the next attempt sees only that there is no room.
      if (!next.isUnsure) note('one more is made, then', next.refused ?? 'made');
      await setRight();
      await tried('it is tried, set right', odd.secret);
    }),
});

/** Operations that depend on an unreadable record of a studio are refused until it is written again. */
export const oddStudio = aScenario({
  weight: 3,
  choice: fc.record({
    oddnesses: fc.shuffledSubarray([...ODD_STUDIOS], { minLength: 2, maxLength: 3 }),
    which,
    core: fc.nat(1),
  }),
  happen: (life, { oddnesses, which, core }) =>
    inStudioApart(life, async (studio, noteOf) => {
      for (const oddness of oddnesses) await meetOddStudio(life, studio, { oddness, which, core }, noteOf(oddness));
    }),
});

async function meetOddStudio(
  life: Life,
  studio: StudioApart,
  { oddness, which, core }: { readonly oddness: Oddness; readonly which: number; readonly core: number },
  note: Note,
): Promise<void> {
  const { id: studioId, sourceId, secret } = studio;
  const { directory } = crmOf(life, core);
  const id = { 'the role of a member': 'owner', 'a source': sourceId }[oddness as string] ?? studioId;
  const look = async (then: string) => {
    const lead = { ...leadApart(life, studioId, `${oddness}${then}`), sourceId };
    note(`a lead is created${then}`, inShort(await createApart(life, studio, lead)));
    const list = await answered(life, secret, { name: 'list', walk: 0, page: 0, query: '' });
    note(`leads are listed${then}`, inShort(list));
    const seen = await called(life, 'a studio is looked at', () => directory.getStudio({ studioId }, WAITS));
    const status = inWords(seen, ({ studio }) => (studio?.status === StudioStatus.ACTIVE ? 'active' : 'suspended'));
    note(`the CRM looks at it${then}`, status);
    const sources = await called(life, 'sources are listed', () => directory.listLeadSources({ studioId }, WAITS));
    note(
      `sources are listed${then}`,
      inWords(sources, ({ leadSources }) => `${leadSources.length}`),
    );
  };
  await makeOdd(life, { studioId, id }, oddness, which);
  await look('');
  if (oddness === 'the role of a member') await putOwner(life, studioId);
  else if (oddness === 'a source') await putSource(life, studioId, sourceId);
  else {
    const put = { id: studioId, status: StudioStatus.ACTIVE, regionCode: 'FR' };
    const told = await called(life, 'a studio is put', () => directory.putStudio({ studio: put }, WAITS));
    note(
      'it is put',
      inWords(told, () => 'put'),
    );
  }
  await look(', then');
}
