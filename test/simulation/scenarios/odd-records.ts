import fc from 'fast-check';
import { StudioStatus } from '../../../proto/gen/leadintake/v1/directory_pb.ts';
import { LeadStage } from '../../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { times } from '../../support/builders.ts';
import type { StoredRecord } from '../direct-access.ts';
import { conflictingLeadId, now, type RestAnswer, type SentLead } from '../history.ts';
import { ODD_KEYS, ODD_LEADS, ODD_STUDIOS, type Oddness, oddValue } from '../odd-records.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import {
  asFarAsDefinite,
  type DefiniteOutcome,
  definiteAnswer,
  definiteOutcome,
  untilDefinite,
} from './definite-outcomes.ts';
import { aScenario } from './scenario.ts';
import {
  createSeparateLead,
  inShort,
  leadIdIn,
  makeKey,
  makeSeparateStudio,
  putOwner,
  putSource,
  type SeparateStudio,
  separateLead,
} from './separate-studio.ts';

// A newer release, another program or a manual change leaves data in the database that this release does not know:
// each time in a separate studio, in which the expected response to every request is known.

/** Selects the value that is written, and its place. */
const which = fc.nat(11);

/** More than the maximum number of live keys of a studio. */
const ENOUGH_KEYS = 22;

/** Records the response to a request in a studio with odd records. */
type Note = (operation: string, result: string) => void;

/** Runs a scenario in a separate studio, as far as disturbances of the service permit. */
async function inSeparateStudio(
  sim: Simulation,
  run: (studio: SeparateStudio, noteOf: (oddness: Oddness) => Note) => Promise<void>,
): Promise<void> {
  await asFarAsDefinite(async () => {
    const studio = await makeSeparateStudio(sim);
    const { id: studioId } = studio;
    const [party, begin] = ['caller', now()];
    await run(studio, (oddness) => (operation, result) => {
      sim.history.add({ kind: 'odd', party, studioId, oddness, operation, result, span: { begin, end: now() } });
    });
  });
}

/** Writes an unknown value directly into a record; returns a function that restores it. */
async function makeOdd(
  sim: Simulation,
  record: Omit<StoredRecord, 'kind'>,
  oddness: Oddness,
  which: number,
): Promise<() => Promise<unknown>> {
  const { directAccess } = sim.world;
  const { kind, field, value } = oddValue(directAccess, oddness, { which, word: sim.personal });
  const found = { ...record, kind };
  const directly = <T>(what: string, act: () => Promise<T>): Promise<{ readonly value: T }> =>
    untilDefinite(sim, `${what} directly`, () =>
      act().then(
        (value) => ({ value }),
        () => undefined,
      ),
    );
  const before = await directly(`the ${field} of a ${kind} is read`, () => directAccess.read(found, field));
  const write = (value: unknown) =>
    directly(`the ${field} of a ${kind} is written`, () => directAccess.write(found, field, value));
  await write(value);
  const what = `writes ${JSON.stringify(value)?.slice(0, 60)} into the ${field} of the ${kind} ${record.id} of ${record.studioId}`;
  sim.history.note('direct access', what);
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
  run: (sim, { oddness, which, core }) =>
    inSeparateStudio(sim, async (studio, noteOf) => {
      const note = noteOf(oddness);
      const { id: studioId, secret } = studio;
      const made: MadeLead[] = [];
      for (const role of ROLES) {
        const sent = separateLead(sim, studioId, role);
        const answer = await createSeparateLead(sim, studio, sent);
        made.push({ sent, id: leadIdIn(answer), answer, role });
      }
      // By id, because a clock that is set back in between makes a later lead the older one.
      made.sort((a, b) => (a.id < b.id ? -1 : 1));
      for (const [index, role] of ROLES.entries()) (made[index] as MadeLead).role = role;
      const roleOf = (id: string | undefined) => made.find((each) => each.id === id)?.role ?? `${id}`;
      const odd = made.filter(({ role }) => role.startsWith('odd'));
      const one = odd[1] as MadeLead;
      const repair = [];
      for (const { id } of odd) repair.push(await makeOdd(sim, { studioId, id }, oddness, which));

      // Concurrently, so that they are read in one batch.
      await Promise.all([
        ...made.flatMap(({ role, id }) =>
          times(2, async () => {
            const outcome = inShort(await definiteAnswer(sim, secret, { name: 'get', leadId: id }));
            note(role.startsWith('odd') ? 'it is read' : 'another is read', outcome);
          }),
        ),
        pages(sim, secret, 1).then((pages) =>
          note('leads are listed, one a page', pages.map((ids) => ids.map(roleOf).join()).join(' | ')),
        ),
        definiteOutcome(sim, `the leads of ${studioId} are listed`, () =>
          sim.crmAt(core).leads.listLeads({ studioId }, CRM_TIMEOUT),
        ).then((outcome) =>
          note(
            'the CRM lists leads',
            inWords(outcome, ({ leads }) => leads.map(({ id }) => roleOf(id)).join()),
          ),
        ),
      ]);
      const again = await createSeparateLead(sim, studio, one.sent);
      const isSame = again.text === one.answer.text;
      note('its creation is repeated', again.status === 201 && isSame ? 'the same answer' : inShort(again));
      const rival = await createSeparateLead(sim, studio, separateLead(sim, studioId, 'rival', one.sent.contact));
      const inTheWay = conflictingLeadId(rival);
      note('another creation has its contact', `${inShort(rival)}, ${roleOf(inTheWay)}`);
      const move = { studioId, leadId: one.id, stage: LeadStage.CONTACTED };
      const moved = await definiteOutcome(sim, 'a lead is moved', () =>
        sim.crmAt(core).leads.changeLeadStage(move, CRM_TIMEOUT),
      );
      note(
        'it is moved',
        inWords(moved, () => 'moved'),
      );
      for (const each of repair) await each();
      note('it is read after the repair', inShort(await definiteAnswer(sim, secret, { name: 'get', leadId: one.id })));
      const all = await pages(sim, secret, 100);
      note('leads are listed after the repair', all.map((ids) => ids.map(roleOf).join()).join(' | '));
    }),
});

/** Returns the ids of a list, page by page. */
async function pages(sim: Simulation, secret: string, limit: number): Promise<string[][]> {
  const all: string[][] = [];
  for (let cursor: string | null = ''; cursor !== null && all.length < 20; ) {
    const query: string = `?limit=${limit}${cursor && `&cursor=${cursor}`}`;
    const answer = await definiteAnswer(sim, secret, { name: 'list', walk: 0, page: all.length, query });
    if (answer.status !== 200) return [...all, [inShort(answer)]];
    const page = JSON.parse(answer.text);
    all.push(page.leads.map(({ id }: { id: string }) => id));
    cursor = page.nextCursor;
  }
  return all;
}

const inWords = <T>(outcome: DefiniteOutcome<T>, words: (answer: T) => string): string =>
  'refused' in outcome ? outcome.refused : words(outcome.answer);

/** A key of a studio that has its maximum number of keys cannot be read. */
export const oddKey = aScenario({
  weight: 2,
  choice: fc.record({ oddness: fc.constantFrom(...ODD_KEYS), which, core: fc.nat(1) }),
  run: (sim, { oddness, which, core }) =>
    inSeparateStudio(sim, async (studio, noteOf) => {
      const note = noteOf(oddness);
      const { id: studioId } = studio;
      const odd = await makeKey(sim, studioId);
      await Promise.all(times(ENOUGH_KEYS, () => makeKey(sim, studioId)));
      const repair = await makeOdd(sim, { studioId, id: odd.apiKeyId }, oddness, which);

      const { apiKeys } = sim.crmAt(core);
      const owner = { studioId, memberId: 'owner' };
      const listed = async () => {
        const outcome = await definiteOutcome(sim, 'keys are listed', () => apiKeys.listApiKeys(owner, CRM_TIMEOUT));
        return 'answer' in outcome ? outcome.answer.apiKeys : [];
      };
      const list = { name: 'list', walk: 0, page: 0, query: '' } as const;
      const tried = async (operation: string, secret: string) =>
        note(operation, inShort(await definiteAnswer(sim, secret, list)));
      await Promise.all([tried('it is tried', odd.secret), tried('another is tried', studio.secret)]);
      const more = await makeKey(sim, studioId);
      note('another is created', more.refused ?? 'made');
      const found = (await listed()).find(({ id }) => id === odd.apiKeyId);
      note('it is listed', found ? `expires in ${found.expireTime?.seconds === 0n ? 1970 : 'its time'}` : 'not there');
      const request = { ...owner, apiKeyId: odd.apiKeyId };
      if (oddness === 'a key') {
        const replaced = await definiteOutcome(sim, 'a key is replaced', () =>
          apiKeys.replaceApiKey(request, CRM_TIMEOUT),
        );
        note(
          'it is replaced',
          inWords(replaced, () => 'replaced'),
        );
      }
      await definiteOutcome(sim, 'a key is revoked', () => apiKeys.revokeApiKey(request, CRM_TIMEOUT));
      const revoked = (await listed()).find(({ id }) => id === odd.apiKeyId);
      note('it is revoked', revoked?.revokeTime ? 'revoked' : 'not revoked');
      const next = await makeKey(sim, studioId);
      // If a key was created but its response was lost, the next attempt sees only that there is no room.
      if (!next.isUnsure) note('another is created, then', next.refused ?? 'made');
      await repair();
      await tried('it is tried after the repair', odd.secret);
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
  run: (sim, { oddnesses, which, core }) =>
    inSeparateStudio(sim, async (studio, noteOf) => {
      for (const oddness of oddnesses) await meetOddStudio(sim, studio, { oddness, which, core }, noteOf(oddness));
    }),
});

async function meetOddStudio(
  sim: Simulation,
  studio: SeparateStudio,
  { oddness, which, core }: { readonly oddness: Oddness; readonly which: number; readonly core: number },
  note: Note,
): Promise<void> {
  const { id: studioId, sourceId, secret } = studio;
  const { directory } = sim.crmAt(core);
  const id = { 'the role of a member': 'owner', 'a source': sourceId }[oddness as string] ?? studioId;
  const observe = async (then: string) => {
    const lead = { ...separateLead(sim, studioId, `${oddness}${then}`), sourceId };
    note(`a lead is created${then}`, inShort(await createSeparateLead(sim, studio, lead)));
    const list = await definiteAnswer(sim, secret, { name: 'list', walk: 0, page: 0, query: '' });
    note(`leads are listed${then}`, inShort(list));
    const found = await definiteOutcome(sim, 'a studio is read', () => directory.getStudio({ studioId }, CRM_TIMEOUT));
    const status = inWords(found, ({ studio }) => (studio?.status === StudioStatus.ACTIVE ? 'active' : 'suspended'));
    note(`the CRM reads it${then}`, status);
    const sources = await definiteOutcome(sim, 'sources are listed', () =>
      directory.listLeadSources({ studioId }, CRM_TIMEOUT),
    );
    note(
      `sources are listed${then}`,
      inWords(sources, ({ leadSources }) => `${leadSources.length}`),
    );
  };
  await makeOdd(sim, { studioId, id }, oddness, which);
  await observe('');
  if (oddness === 'the role of a member') await putOwner(sim, studioId);
  else if (oddness === 'a source') await putSource(sim, studioId, sourceId);
  else {
    const put = { id: studioId, status: StudioStatus.ACTIVE, regionCode: 'FR' };
    const outcome = await definiteOutcome(sim, 'a studio is put', () =>
      directory.putStudio({ studio: put }, CRM_TIMEOUT),
    );
    note(
      'it is put',
      inWords(outcome, () => 'put'),
    );
  }
  await observe(', then');
}
