import type { MessageInitShape } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { hashKeySecret } from '../../../common/rules/key-secret.ts';
import { ErrorInfoSchema } from '../../../proto/gen/google/rpc/error_details_pb.ts';
import { ApiKeyScope } from '../../../proto/gen/leadintake/v1/api_key_pb.ts';
import type { ExchangeItemSchema, ExchangeResult } from '../../../proto/gen/leadintake/v1/exchange_pb.ts';
import type { SentLead } from '../history.ts';
import type { Life } from '../life.ts';
import { crmOf, leadApart, makeKey, makeStudioApart, WAITS } from './apart.ts';
import { aScenario } from './scenario.ts';
import { answered, asFarAsTold, untilTold } from './until-told.ts';

type Item = MessageInitShape<typeof ExchangeItemSchema>;

/** One item of a message, and the answer that it expects. */
interface Asked {
  readonly item: Item;
  readonly expected: string;
}

/**
 * A client in the place of a gateway sends, concurrently, items with keys of limited permissions and with strings
 * that are no keys.
 */
export const askByKeys = aScenario({
  weight: 1,
  choice: fc.record({
    core: fc.nat(1),
    order: fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6], { minLength: 7, maxLength: 7 }),
  }),
  happen: (life, { core, order }) => asFarAsTold(() => ask(life, core, order)),
});

async function ask(life: Life, core: number, order: readonly number[]): Promise<void> {
  const studio = await makeStudioApart(life);
  const reads = hashKeySecret((await makeKey(life, studio.id, [ApiKeyScope.LEADS_READ])).secret);
  const creates = hashKeySecret((await makeKey(life, studio.id, [ApiKeyScope.LEADS_CREATE])).secret);
  const both = hashKeySecret(studio.secret);
  const [plain, sourced, forbidden, misfit] = ['plain', 'sourced', 'forbidden', 'misfit'].map((name) =>
    leadApart(life, studio.id, name),
  ) as [SentLead, SentLead, SentLead, SentLead];
  const noKey = Buffer.concat([creates, Buffer.from(studio.sourceId)]);
  const list = { case: 'listLeads', value: {} } as const;
  const asked: readonly Asked[] = [
    { item: { secretSha256: creates, request: creation(plain) }, expected: 'a lead' },
    { item: { secretSha256: creates, request: creation(sourced, studio.sourceId) }, expected: 'a lead' },
    { item: { secretSha256: reads, request: creation(forbidden) }, expected: 'SCOPE_FORBIDDEN' },
    { item: { secretSha256: noKey, request: creation(misfit) }, expected: 'INVALID_REQUEST' },
    { item: { secretSha256: creates, request: list }, expected: 'SCOPE_FORBIDDEN' },
    {
      item: { secretSha256: both, request: { case: 'getLead', value: { leadId: life.uuid('nobody') } } },
      expected: 'LEAD_NOT_FOUND',
    },
    { item: { secretSha256: reads, request: { case: 'authenticate', value: {} } }, expected: 'a bearer' },
  ];
  const inOrder = order.map((place) => asked[place] as Asked);
  const told = await untilTold(life, 'items are asked by keys of one scope each', () =>
    outcomes(
      life,
      core,
      inOrder.map(({ item }) => item),
    ),
  );
  const expected = inOrder.map((each) => each.expected);
  if (`${told}` !== `${expected}`) life.history.breaks(`${studio.id}: items are answered ${told}, not ${expected}`);
  const page = JSON.parse((await answered(life, studio.secret, { name: 'list', walk: 0, page: 0, query: '' })).text);
  const notes = page.leads.map(({ note }: { note: string }) => note).sort();
  const written = [plain.note, sourced.note].sort();
  if (`${notes}` !== `${written}`) life.history.breaks(`${studio.id}: there is ${notes}, where ${written} was created`);
}

function creation({ contact, ...lead }: SentLead, sourceId?: string) {
  const value = { ...lead, contact: { value: { case: contact.type, value: contact.value } } };
  return { case: 'createLead', value: sourceId === undefined ? value : { ...value, sourceId } } as const;
}

/** Returns the outcome of each item in short; undefined unless all are certain. */
async function outcomes(life: Life, core: number, items: readonly Item[]): Promise<string[] | undefined> {
  const told: string[] = [];
  async function* messages() {
    yield { items: [...items] };
  }
  try {
    for await (const { results } of crmOf(life, core).exchange.exchange(messages(), WAITS)) {
      for (const result of results) told[result.index] = inAWord(result) ?? '';
    }
  } catch {
    return undefined;
  }
  return items.every((_, index) => told[index]) ? told : undefined;
}

function inAWord({ outcome }: ExchangeResult): string | undefined {
  if (outcome.case === 'bearer') return 'a bearer';
  if (outcome.case === 'body') return 'lead' in JSON.parse(Buffer.from(outcome.value).toString()) ? 'a lead' : 'a page';
  const infos = outcome.value?.details.map((detail) => anyUnpack(detail, ErrorInfoSchema));
  return infos?.find((info) => info?.domain === 'leadintake')?.reason;
}
