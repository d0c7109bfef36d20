import type { MessageInitShape } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { hashKeySecret } from '../../../common/rules/key-secret.ts';
import { ErrorInfoSchema } from '../../../proto/gen/google/rpc/error_details_pb.ts';
import { ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import type { ExchangeItemSchema, ExchangeResult } from '../../../proto/gen/leadintake/v1/exchange_pb.ts';
import type { SentLead } from '../history.ts';
import { CRM_TIMEOUT, type Simulation } from '../simulation.ts';
import { asFarAsDefinite, definiteAnswer, untilDefinite } from './definite-outcomes.ts';
import { aScenario } from './scenario.ts';
import { makeKey, makeSeparateStudio, separateLead } from './separate-studio.ts';

type Item = MessageInitShape<typeof ExchangeItemSchema>;

/** One item of a message, and the answer that it expects. */
interface ExpectedItem {
  readonly item: Item;
  readonly expected: string;
}

/**
 * A client in the place of a gateway sends, concurrently, items with keys of limited permissions and with strings
 * that are no keys.
 */
export const callWithScopedKeys = aScenario({
  weight: 1,
  choice: fc.record({
    core: fc.nat(1),
    order: fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6], { minLength: 7, maxLength: 7 }),
  }),
  run: (sim, { core, order }) => asFarAsDefinite(() => sendItems(sim, core, order)),
});

async function sendItems(sim: Simulation, core: number, order: readonly number[]): Promise<void> {
  const studio = await makeSeparateStudio(sim);
  const reads = hashKeySecret((await makeKey(sim, studio.id, [ApiKeyScope.LEADS_READ])).secret);
  const creates = hashKeySecret((await makeKey(sim, studio.id, [ApiKeyScope.LEADS_CREATE])).secret);
  const both = hashKeySecret(studio.secret);
  const [plain, sourced, forbidden, misfit] = ['plain', 'sourced', 'forbidden', 'misfit'].map((name) =>
    separateLead(sim, studio.id, name),
  ) as [SentLead, SentLead, SentLead, SentLead];
  const noKey = Buffer.concat([creates, Buffer.from(studio.sourceId)]);
  const list = { case: 'listLeads', value: {} } as const;
  const items: readonly ExpectedItem[] = [
    { item: { secretSha256: creates, request: creation(plain) }, expected: 'a lead' },
    { item: { secretSha256: creates, request: creation(sourced, studio.sourceId) }, expected: 'a lead' },
    { item: { secretSha256: reads, request: creation(forbidden) }, expected: 'SCOPE_FORBIDDEN' },
    { item: { secretSha256: noKey, request: creation(misfit) }, expected: 'INVALID_REQUEST' },
    { item: { secretSha256: creates, request: list }, expected: 'SCOPE_FORBIDDEN' },
    {
      item: { secretSha256: both, request: { case: 'getLead', value: { leadId: sim.uuid('unknown lead') } } },
      expected: 'LEAD_NOT_FOUND',
    },
    { item: { secretSha256: reads, request: { case: 'authenticate', value: {} } }, expected: 'a bearer' },
  ];
  const inOrder = order.map((place) => items[place] as ExpectedItem);
  const found = await untilDefinite(sim, 'items with keys of one scope each', () =>
    outcomes(
      sim,
      core,
      inOrder.map(({ item }) => item),
    ),
  );
  const expected = inOrder.map((each) => each.expected);
  if (`${found}` !== `${expected}`) sim.history.fail(`${studio.id}: items are answered with ${found}, not ${expected}`);
  const page = JSON.parse(
    (await definiteAnswer(sim, studio.secret, { name: 'list', walk: 0, page: 0, query: '' })).text,
  );
  const notes = page.leads.map(({ note }: { note: string }) => note).sort();
  const written = [plain.note, sourced.note].sort();
  if (`${notes}` !== `${written}`) sim.history.fail(`${studio.id}: there is ${notes}, expected ${written}`);
}

function creation({ contact, ...lead }: SentLead, sourceId?: string) {
  const value = { ...lead, contact: { value: { case: contact.type, value: contact.value } } };
  return { case: 'createLead', value: sourceId === undefined ? value : { ...value, sourceId } } as const;
}

/** Returns the outcome of each item in short; undefined unless all are certain. */
async function outcomes(sim: Simulation, core: number, items: readonly Item[]): Promise<string[] | undefined> {
  const found: string[] = [];
  async function* messages() {
    yield { items: [...items] };
  }
  try {
    for await (const { results } of sim.crmAt(core).exchange.exchange(messages(), CRM_TIMEOUT)) {
      for (const result of results) found[result.index] = inAWord(result) ?? '';
    }
  } catch {
    return undefined;
  }
  return items.every((_, index) => found[index]) ? found : undefined;
}

function inAWord({ outcome }: ExchangeResult): string | undefined {
  if (outcome.case === 'bearer') return 'a bearer';
  if (outcome.case === 'body') return 'lead' in JSON.parse(Buffer.from(outcome.value).toString()) ? 'a lead' : 'a page';
  const infos = outcome.value?.details.map((detail) => anyUnpack(detail, ErrorInfoSchema));
  return infos?.find((info) => info?.domain === 'leadintake')?.reason;
}
