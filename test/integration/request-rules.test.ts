import { execFileSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { connect } from 'node:http2';
import { join } from 'node:path';
import {
  createFileRegistry,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  fromJson,
  type JsonObject,
  type JsonValue,
  ScalarType,
  toBinary,
  toJsonString,
} from '@bufbuild/protobuf';
import { FieldOptionsSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { createValidator } from '@bufbuild/protovalidate';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { BOUNDS, DATA_FIELDS, TEXT_FIELDS, type TextField } from '../../common/rules/field-rules.ts';
import { MAX_RECORDED_REQUESTS, RECORDED_FIELDS } from '../../common/rules/request-log.ts';
import { safeJson } from '../../src/rpc/routes.ts';
import { framed, grpcCall, onStream } from '../security/http2-wire.ts';
import { CORE_TOKEN, findRefusal, type PackedStatus, refusalIn } from '../support/grpc.ts';
import { ROOT } from '../tools/processes.ts';
import { testSize } from '../tools/test-size.ts';
import { aSharedCore } from './shared-core.ts';

// The rules of fields are in the contract, for protovalidate, and in the core's domain, which decides. These tests put values at and
// around each bound into each field of each request, and compare both verdicts.

const buf = join(ROOT, 'node_modules/.bin/buf');
const contract = createFileRegistry(
  fromBinary(
    FileDescriptorSetSchema,
    execFileSync(buf, ['build', 'proto', '--as-file-descriptor-set', '--output', '-'], { cwd: ROOT }),
  ),
);
const validator = createValidator({ registry: contract });

const STUDIO = { studioId: 'studio' };
const MEMBER = { ...STUDIO, memberId: 'owner' };
const id = () => randomUUID();
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
const aContact = () => ({ email: `${id()}@example.org` });
const aLeadData = (ofText = (_: Exclude<TextField, 'sourceId'>) => 'x') => ({
  ...Object.fromEntries(TEXT_FIELDS.map((field) => [field, field === 'sourceId' ? id() : ofText(field)])),
  contact: aContact(),
});
const aCreation = () => ({ idempotencyKey: id(), ...aLeadData() });
const aRange = () => ({ startTime: '2026-01-01T00:00:00Z', endTime: '2026-01-02T00:00:00Z' });
/** Times near the ends of that range that differ by less than a stored millisecond. */
const SLIVERS = ['2026-01-01T23:59:59.999999999Z', '2026-01-02T00:00:00.000000001Z', '2025-12-31T23:59:59.999999999Z'];
const aFilter = () => ({
  ...{ stages: [1, 5], sourceIds: [id()], apiKeyIds: [id()] },
  ...{ createTime: aRange(), updateTime: aRange() },
});

const WATCH = 'LeadIntakeService/WatchLeadChanges';
const SET_ASIDE = 'ConsumerService/SetAsideLeadChanges';

/** A valid request of each method, with every field. */
const REQUESTS: Readonly<Record<string, () => JsonObject>> = {
  'LeadIntakeService/CreateLead': () => ({ ...STUDIO, ...aCreation() }),
  'LeadIntakeService/GetLead': () => ({ ...STUDIO, leadId: id(), view: 1 }),
  'LeadIntakeService/ListLeads': () => ({ ...STUDIO, pageSize: 1, pageToken: '', view: 1, filter: aFilter() }),
  'LeadIntakeService/ExportLeads': () => ({ ...STUDIO, resumeToken: '', filter: aFilter() }),
  'LeadIntakeService/CountLeads': () => ({ ...STUDIO, filter: aFilter() }),
  'LeadIntakeService/ExportContact': () => ({ ...STUDIO, contact: aContact() }),
  'LeadIntakeService/ListLeadEvents': () => ({ ...STUDIO, leadId: id() }),
  'LeadIntakeService/FindLeads': () => ({ ...STUDIO, contact: aContact(), pageSize: 1, pageToken: '' }),
  'LeadIntakeService/ChangeLeadStage': () => ({ ...MEMBER, leadId: id(), stage: 2, expectedUpdateTime: inDays(0) }),
  'LeadIntakeService/ImportLeads': () => ({
    ...STUDIO,
    leads: [{ ...aCreation(), stage: 2, createTime: inDays(-2), updateTime: inDays(-1), leadId: id() }],
  }),
  'LeadIntakeService/EraseLead': () => ({ ...MEMBER, leadId: id() }),
  'LeadIntakeService/EraseContact': () => ({ ...MEMBER, contact: aContact() }),
  'LeadIntakeService/PullLeadChanges': () => ({ max: 1, wait: '0s', consumer: '' }),
  [WATCH]: () => ({ consumer: 'nobody', heartbeat: '60s' }),
  'LeadIntakeService/AcknowledgeLeadChanges': () => ({
    acknowledgements: [{ ...STUDIO, leadId: id(), revision: '1' }],
    consumer: '',
  }),
  'LeadIntakeService/ResendLeads': () => ({ ...STUDIO, pageToken: '', consumer: '', leadIds: [id()] }),
  'LeadIntakeService/UpdateLead': () => ({
    ...MEMBER,
    lead: { id: id(), ...STUDIO, ...aLeadData() },
    updateMask: 'displayName',
    expectedUpdateTime: inDays(0),
  }),
  'ApiKeyService/CreateApiKey': () => ({ ...MEMBER, name: 'Website', scopes: [1], expireTime: inDays(1) }),
  'ApiKeyService/ListApiKeys': () => MEMBER,
  'ApiKeyService/ReplaceApiKey': () => ({ ...MEMBER, apiKeyId: id(), expireTime: inDays(1) }),
  'ApiKeyService/RevokeApiKey': () => ({ ...MEMBER, apiKeyId: id() }),
  'ApiKeyService/AuthenticateApiKey': () => ({ secretSha256: randomBytes(32).toString('base64') }),
  'DirectoryService/PutStudio': () => ({
    studio: { id: 'other', status: 1, regionCode: 'DE', quotaLimit: 1, retentionDays: 30 },
    memberId: 'owner',
    updateMask: 'status,quotaLimit,regionCode,keepEnquiries,retentionDays',
  }),
  'DirectoryService/EmptyStudio': () => STUDIO,
  'DirectoryService/EraseStudio': () => ({ ...MEMBER, studioId: 'none', confirmStudioId: 'none', pageToken: '' }),
  'DirectoryService/GetStudio': () => STUDIO,
  'DirectoryService/ListStudios': () => ({ pageSize: 1, pageToken: '' }),
  'DirectoryService/PutApiKeyQuota': () => ({ ...MEMBER, apiKeyId: id(), quotaLimit: 1 }),
  'DirectoryService/PutMember': () => ({ member: { ...STUDIO, id: 'another', role: 1 } }),
  'DirectoryService/RemoveMember': () => ({ ...STUDIO, memberId: 'another' }),
  'DirectoryService/PutLeadSource': () => ({ leadSource: { ...STUDIO, id: id(), name: 'Form', enabled: true } }),
  'DirectoryService/RemoveLeadSource': () => ({ ...STUDIO, leadSourceId: id() }),
  'DirectoryService/ListLeadSources': () => ({ ...STUDIO, pageSize: 1, pageToken: '' }),
  'ConsumerService/CreateConsumer': () => ({ consumer: { name: 'reporting', studioIds: ['studio'] }, start: 1 }),
  'ConsumerService/ListConsumers': () => ({}),
  'ConsumerService/RemoveConsumer': () => ({ consumer: 'reporting' }),
  [SET_ASIDE]: () => ({
    consumer: 'relay',
    leads: [{ ...STUDIO, leadId: id(), revision: '1', reason: 'ANY', retryTime: inDays(1) }],
  }),
  'ConsumerService/TakeBackLeadChanges': () => ({ consumer: 'relay', ...STUDIO, leadIds: [id()], pageToken: '' }),
  'ConsumerService/ListSetAsideLeadChanges': () => ({ consumer: 'relay', pageSize: 1, pageToken: '' }),
  'ConsumerService/FindMissingLeads': () => ({ ...STUDIO, leadIds: [id()] }),
  'AuditService/ListAuditEvents': () => ({ ...STUDIO, leadId: id() }),
  'RequestLogService/ListRequests': () => ({
    ...STUDIO,
    failed: true,
    xRequestId: 'r.1_-',
    apiKeyId: id(),
    pageSize: 1,
    pageToken: '',
  }),
  'AuditService/ExportAuditEvents': () => ({ resumeToken: '' }),
};

/** Methods only for gateways, which refuse or skip their items separately. */
const GATEWAY_METHODS = /^ExchangeService|\/Record/;

const UUID = '0190163d-8694-739b-aea5-966c26f8ad90';
const STRINGS = [
  ...['', ' ', 'a', 'A-z_9', 'a.b', 'ä', 'a\0b', 'a\nb', 'demo\n', '🦉', 'nonsense'],
  ...['a', '1', '🦉'].flatMap((character) =>
    [4, 5, 64, 65, 160, 161, 254, 255, 512, 513, 2000, 2001].map((length) => character.repeat(length)),
  ),
  ...[UUID, UUID.toUpperCase(), UUID.replaceAll('-', ''), `{${UUID}}`, `${UUID} `, UUID.replace('9', 'g')],
  ...['-0', '-9'].map((version) => UUID.replace('-7', version)),
  ...[UUID.replace('-a', '-7'), UUID.replaceAll(/\w/g, '0'), UUID.replaceAll(/\w/g, 'F')],
  ...['a@b', '@b', 'a@', 'a@@b', 'a@b@c', 'a@b.c\n', 'ä@ö', `${'a'.repeat(252)}@b`, `${'a'.repeat(253)}@b`],
  ...[...' \t\v\u0085\u00a0\u1680\u2003\u2028\u202f\u3000\ufeff\u200b\u0000\u007f\u0301'].map((odd) => `a${odd}@b`),
  ...[
    '+49 30 123',
    '(1) 2 x 3',
    '12 ab',
    '١٢٣ ab',
    '1\n2\n3',
    '1\u20282\u20283',
    `123${' '.repeat(61)}`,
    `${' '.repeat(62)}123`,
  ],
];
const MOMENTS = [
  ...['1969-12-31T23:59:59.999Z', '1970-01-01T00:00:00Z', ...SLIVERS],
  ...[-1, -0.01, 0.01, 365.9, 366.1].map(inDays),
];
/** Sizes of lists. */
const COUNTS = [0, 20, 21, 100, 101, 500, 501];
const OF_TYPES: Readonly<Record<string, readonly JsonValue[]>> = {
  'google.protobuf.Timestamp': MOMENTS,
  'google.protobuf.Duration': ['-1s', '-0.001s', '0s', '0.001s'],
  'google.protobuf.FieldMask': ['', 'status', 'regionCode', 'quotaLimit', ...DATA_FIELDS, 'id'],
};

/** Returns values of a field at and around possible bounds. @param given its valid value, if it has one */
function makeValues(field: DescField, given: JsonValue | undefined): readonly JsonValue[] {
  if (field.fieldKind !== 'list') return makeElements(field);
  if (field.enum) return [[], [1], [1, 1], [0], [1, 99]];
  const counts = COUNTS.map((count) => Array(count).fill([given ?? {}].flat()[0]));
  return field.message ? counts : [...makeElements(field).map((each) => [each]), ...counts];
}

/** Returns values of a field, or of an element of a list. */
function makeElements(field: DescField): readonly JsonValue[] {
  if (field.message) return OF_TYPES[field.message.typeName] ?? [{}];
  if (field.enum) return [...field.enum.values.map(({ number }) => number), 99, -1];
  switch (field.scalar) {
    case ScalarType.STRING:
      return STRINGS;
    case ScalarType.BYTES:
      return [0, 31, 32, 33].map((length) => randomBytes(length).toString('base64'));
    case ScalarType.INT32:
      return [-2_147_483_648, -1, 0, 1, 1000, 2_147_483_647];
    case ScalarType.UINT32:
      return [0, 1, 29, 30, 3650, 3651, 1_000_000_000, 1_000_000_001, 4_294_967_295];
    case ScalarType.BOOL:
      return [true, false];
    case ScalarType.INT64:
      return ['-1', '0', '9007199254740991', '9007199254740992'];
    default:
      return [];
  }
}

/** A request with one field changed or removed, and the path of the field. */
interface Variant {
  readonly field: DescField;
  readonly path: string;
  readonly value: JsonValue | undefined;
  readonly request: JsonObject;
}

/** Yields a request with each of its fields changed in turn, including those of nested messages. */
function* makeVariants(desc: DescMessage, request: JsonObject, at = ''): Generator<Variant> {
  for (const field of desc.fields) {
    const { jsonName: name } = field;
    const path = at + field.name;
    const { [name]: value, ...without } = request;
    // A request has one field of a oneof.
    const others = Object.fromEntries(Object.entries(without).filter(([other]) => !isAlternativeTo(field, other)));
    yield { field, path, value: undefined, request: without };
    for (const other of makeValues(field, value))
      yield { field, path, value: other, request: { ...others, [name]: other } };

    if (Array.isArray(value) && field.message) {
      for (const inner of makeVariants(field.message, value[0] as JsonObject, `${path}.`)) {
        yield { ...inner, request: { ...without, [name]: [inner.request] } };
      }
    } else if (field.fieldKind === 'message' && !(field.message.typeName in OF_TYPES)) {
      for (const inner of makeVariants(field.message, (value ?? {}) as JsonObject, `${path}.`)) {
        yield { ...inner, request: { ...without, [name]: inner.request } };
      }
    }
  }
}

const isAlternativeTo = ({ oneof }: DescField, name: string) =>
  oneof?.fields.some(({ jsonName }) => jsonName === name) ?? false;

/** The checks of the core that a rule of the contract cannot express. */
const ONLY_IN_CORE: Readonly<Record<string, (rpc: string, variant: Variant) => boolean>> = {
  'the versions and variants of UUIDs': (_, { value }) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(`${value}`),
  'whether the core issued a page token, for this list': (_, { path }) => /^(page|resume)_token$/.test(path),
  'which callers must name a member': (rpc, { path }) => /ListApiKeys|RevokeApiKey/.test(rpc) && path === 'member_id',
  'which of two fields is named that exclude each other': (_, { path }) => /^all$|_studios$/.test(path),
  'fields that the field mask does not name': (rpc, { path }) =>
    /UpdateLead|PutStudio/.test(rpc) && /^(lead|studio)\.(?!id$)/.test(path),
  'whether an expected time is in whole milliseconds': (_, { path, value }) =>
    path === 'expected_update_time' && SLIVERS.includes(`${value}`),
  'how far ahead a retry_time is': (_, { path }) => path === 'leads.retry_time',
  'from 1970 until when an export of the audit log is': (rpc, { path }) =>
    rpc.endsWith('ExportAuditEvents') && /_time$/.test(path),
  'the order of the times of an imported lead': (rpc, { path }) => rpc.endsWith('ImportLeads') && /_time$/.test(path),
};

const { core, caller } = aSharedCore();
beforeAll(async () => {
  await caller.call('DirectoryService/PutStudio', { studio: { id: 'studio', status: 'STUDIO_STATUS_ACTIVE' } });
  const consumer = { name: 'relay', allStudios: true };
  await caller.call('ConsumerService/CreateConsumer', { consumer, start: 'CONSUMER_START_NOW' });
  await caller.call('DirectoryService/PutMember', { member: { ...MEMBER, id: 'owner', role: 'MEMBER_ROLE_OWNER' } });
});

/** Returns the fields for which the core refuses a request, or a lead in it; undefined: it is not refused as invalid. */
async function fieldsRefusedByCore(rpc: string, { input, methodKind }: DescMethod, request: JsonObject) {
  const listFields = ({ reason, fields = [] }: Refused) => (reason === 'INVALID_REQUEST' ? fields : undefined);
  const call: Promise<unknown> =
    methodKind === 'unary'
      ? caller.call(rpc, {}, { bytes: toBinary(input, fromJson(input, request)) })
      : drain(rpc, request, toBinary(input, fromJson(input, request)));
  const [answer] = await Promise.allSettled([call]);
  if (answer.status === 'rejected') return listFields(await findRefusal(call));
  const { results = [] } = (answer.value ?? {}) as { results?: { error?: PackedStatus }[] };
  return results.map(({ error }) => error && listFields(refusalIn(error))).find(Boolean);
}

type Refused = Awaited<ReturnType<typeof findRefusal>>;

/** Whether one of the fields in a refusal is the changed one, contains it, or is part of it. */
const isNamed = ({ path }: Variant, fields: readonly string[]) => {
  const name = path.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
  const named = fields.map((field) => field.replace(/\[\d+\]/g, ''));
  return named.some((field) => `.${name}.`.includes(`.${field}.`) || `.${field}.`.includes(`.${name}.`));
};

async function drain(rpc: string, request: JsonObject, bytes: Uint8Array): Promise<void> {
  // This request would not end.
  if (rpc === WATCH && !request.consumer) return;
  for await (const _ of caller.stream(rpc, {}, { authorization: `Bearer ${CORE_TOKEN}`, bytes }));
}

const allMethods = [...contract]
  .filter((type): type is DescService => type.kind === 'service' && type.file.proto.package === 'leadintake.v1')
  .flatMap(({ name, methods }) => methods.map((method) => [`${name}/${method.name}`, method] as const));
const methods = allMethods.filter(([rpc]) => !GATEWAY_METHODS.test(rpc));
const used = new Set<string>();

/**
 * The number of texts with the same rule that get all values. Further texts get only the values at which the rule's verdict changes, which
 * show whether the core applies that rule to them.
 */
const TEXTS_OF_A_RULE = testSize('TEXTS_OF_A_RULE', { usual: 1, soak: 1000 });
const textsByRule = new Map<string, Set<string>>();

/** Whether all values of a field are tried. A field without a rule in the contract has its own rule in the core. */
function isTriedInFull(rpc: string, { field, path }: Variant): boolean {
  const { options } = field.proto;
  if (field.scalar !== ScalarType.STRING || !options) return true;
  const rule = Buffer.from(toBinary(FieldOptionsSchema, options)).toString('base64');
  const texts = textsByRule.get(rule) ?? new Set();
  if (texts.size < TEXTS_OF_A_RULE) texts.add(`${rpc} ${path}`);
  textsByRule.set(rule, texts);
  return texts.has(`${rpc} ${path}`);
}

// @proves clients-7 bounds-55 bounds-56 bounds-95 bounds-115
test.each(methods)('the rules of the contract and of the core agree on the request of %s', async (rpc, method) => {
  const request = REQUESTS[rpc]?.() as JsonObject;
  const isRefusedByRules = (request: JsonObject) => {
    const { kind, error } = validator.validate(method.input, fromJson(method.input, request));
    if (kind === 'error') throw error;
    return kind === 'invalid';
  };
  expect([isRefusedByRules(request), await fieldsRefusedByCore(rpc, method, request)]).toEqual([false, undefined]);

  const [stricter, looser, unnamed]: [Variant[], Variant[], Variant[]] = [[], [], []];
  const variants = [...makeVariants(method.input, request)].map((variant) => ({
    ...variant,
    byRules: isRefusedByRules(variant.request),
  }));
  const isOtherThan = (
    { path, byRules }: (typeof variants)[number],
    neighbour: (typeof variants)[number] | undefined,
  ) => neighbour?.path === path && neighbour.byRules !== byRules;
  for (const [at, variant] of variants.entries()) {
    const { byRules } = variant;
    const isEdge = [at - 1, at + 1].some((neighbour) => isOtherThan(variant, variants[neighbour]));
    if (variant.value !== undefined && !isEdge && !isTriedInFull(rpc, variant)) continue;
    const byCore = await fieldsRefusedByCore(rpc, method, variant.request);
    if (byRules && !byCore) stricter.push(variant);
    if (byCore && !byRules) looser.push(variant);
    if (byCore && !isNamed(variant, byCore)) unnamed.push(variant);
  }

  const summary = (variants: Variant[]) =>
    variants.map(({ path, value }) => `${path}: ${JSON.stringify(value)?.slice(0, 300)}`);
  expect(summary(stricter)).toEqual([]);
  const isOnlyInCore = (variant: Variant) => {
    const reasons = Object.keys(ONLY_IN_CORE).filter((name) => ONLY_IN_CORE[name]?.(rpc, variant));
    for (const reason of reasons) used.add(reason);
    return reasons.length > 0;
  };
  expect(summary(looser.filter((variant) => !isOnlyInCore(variant)))).toEqual([]);
  expect(summary(unnamed.filter((variant) => !isOnlyInCore(variant)))).toEqual([]);
});

const TIMES = [
  ...['2024-02-29T23:59:59.999999999Z', '2000-02-29T00:00:00+23:59', '2023-04-30T23:59:59-00:00'],
  ...['0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z'],
];
/** Days that are not on the calendar, the hour 24, the second 60, and times without a zone. */
const NO_TIMES = [
  ...['2023-02-29T00:00:00Z', '1900-02-29T12:00:00Z', '2023-04-31T23:59:59.999Z', '2023-02-31T00:00:00+14:00'],
  ...['2023-00-10T00:00:00Z', '2023-13-01T00:00:00Z', '2023-01-00T00:00:00Z', '2023-01-32T00:00:00Z'],
  ...['2023-01-01T24:00:00Z', '2016-12-31T23:59:60Z', '2023-01-01T00:00:00', '2023-01-01'],
];

/** Yields each field of a message, however deep, with a function that makes the message with that alone. */
function* fieldsIn({ fields }: DescMessage): Generator<[DescField, put: (value: JsonValue) => JsonObject]> {
  for (const field of fields) {
    const put = (value: JsonValue) => ({ [field.jsonName]: field.fieldKind === 'list' ? [value] : value });
    if (!field.message || field.message.typeName in OF_TYPES) yield [field, put];
    else for (const [inner, within] of fieldsIn(field.message)) yield [inner, (value) => put(within(value))];
  }
}

// @proves clients-7
test('JSON is refused if a time is invalid or an enum word is unknown, and read otherwise', () => {
  let times = 0;
  for (const [, { input }] of allMethods) {
    const { decode } = safeJson(input).textDecoder;
    const reading = (request: JsonObject) => () => decode(Buffer.from(JSON.stringify(request)));
    for (const [field, put] of fieldsIn(input)) {
      if (field.enum) expect(reading(put('NO_SUCH_WORD'))).toThrow(`in the form of the contract: ${field.name} is not`);
      if (field.message?.typeName !== 'google.protobuf.Timestamp') continue;
      times += 1;
      for (const time of TIMES) expect(reading(put(time))).not.toThrow();
      for (const time of NO_TIMES) expect(reading(put(time)), time).toThrow('in the form of the contract');
    }
  }
  expect(times).toBeGreaterThan(30);
});

/** A time or duration within a message of a request, and the names of the fields that lead to it. */
interface Moment {
  readonly message: Record<string, unknown>;
  readonly names: readonly string[];
  readonly isDuration: boolean;
}

/** Yields the times and durations of a request. */
function* makeMoments(
  desc: DescMessage,
  message: Record<string, unknown>,
  names: readonly string[] = [],
): Generator<Moment> {
  for (const field of desc.fields) {
    if (!field.message) continue;
    const [path, isDuration] = [[...names, field.localName], field.message.typeName === 'google.protobuf.Duration'];
    const each = [message[field.localName]].flat() as Record<string, unknown>[];
    if (isDuration || field.message.typeName === 'google.protobuf.Timestamp') {
      // UpdateLead ignores the times of its lead.
      if (each[0]) yield { message: each[0], names: path, isDuration };
    } else for (const inner of each) if (inner) yield* makeMoments(field.message, inner, path);
  }
}

const moments = new Set<string>();

// JSON, from which the variants above are made, cannot express these values.
// @proves clients-7
test.each(methods)(
  '%s refuses times and durations outside their range, and names the faulty field',
  async (rpc, method) => {
    if (method.methodKind !== 'unary') return;
    const message = () => fromJson(method.input, REQUESTS[rpc]?.() as JsonObject) as unknown as Record<string, unknown>;
    const count = [...makeMoments(method.input, message())].length;
    for (let index = 0; index < count; index += 1) {
      for (const change of [
        { nanos: -1 },
        { nanos: 1_000_000_000 },
        { seconds: -1n },
        { seconds: -1n, nanos: 999_999_999 },
        { seconds: 253_402_300_800n },
        { seconds: 9_223_372_036_854_775_807n },
      ]) {
        const changed = message();
        const { message: moment, names, isDuration } = [...makeMoments(method.input, changed)][index] as Moment;
        // The core cuts a wait that is longer than its own.
        if (isDuration && (change.seconds ?? 0n) > 0n) continue;
        // Ranges may begin before 1970.
        if (names[0] === 'filter' && change.seconds === -1n) continue;
        Object.assign(moment, change);
        const call = caller.call<{ results?: { error?: PackedStatus }[] }>(
          rpc,
          {},
          { bytes: toBinary(method.input, changed as never) },
        );
        const [answer] = await Promise.allSettled([call]);
        const refusal =
          answer.status === 'rejected'
            ? await findRefusal(call)
            : refusalIn(answer.value.results?.[0]?.error as PackedStatus);
        const isNamed = refusal.fields?.some((field) => field.split('.').at(-1) === names.at(-1));
        moments.add(`${rpc} ${names.join('.')}`);
        expect({ change, names, reason: refusal.reason, isNamed }).toEqual({
          change,
          names,
          reason: 'INVALID_REQUEST',
          isNamed: true,
        });
      }
    }
  },
);

/** Returns the highest allowed number; 0: every number below twice the power of two is allowed. */
function most(power: number, isAllowed: (number: number) => boolean): number {
  let number = 0;
  for (let step = power; step >= 1; step /= 2) if (isAllowed(number + step)) number += step;
  return number === 2 * power - 1 ? 0 : number;
}

const makeBytes = (value: JsonValue) => Buffer.byteLength(JSON.stringify(value));

type IsAllowed = (value: JsonObject) => boolean;

/** Returns a message whose fields are as long as their rules allow. Fields without a rule stay short. */
function longest(desc: DescMessage, request: JsonObject, isAllowed: IsAllowed): JsonObject {
  let best = request;
  for (const field of desc.fields) {
    const name = field.jsonName;
    const first = [best[name] ?? []].flat()[0];
    if (first === undefined) continue;
    const isList = field.fieldKind === 'list';
    const put = (each: JsonValue, count = 1) => ({ ...best, [name]: isList ? Array(count).fill(each) : each });
    const offer = (value: JsonObject) => {
      if (makeBytes(value) > makeBytes(best) && isAllowed(value)) best = value;
    };
    if (field.message && !(field.message.typeName in OF_TYPES)) {
      offer(put(longest(field.message, first as JsonObject, (inner) => isAllowed(put(inner)))));
    } else {
      for (const each of makeElements(field)) offer(put(each));
      for (const one of field.scalar === ScalarType.STRING ? ['a', 'A', '1', '🦉'] : []) {
        for (const end of ['', '@b']) {
          const count = most(2048, (count) => isAllowed(put(one.repeat(count) + end)));
          offer(put(one.repeat(count) + end));
        }
      }
    }
    if (isList) {
      const [each = null] = best[name] as JsonValue[];
      const count = most(512, (count) => isAllowed(put(each, count)));
      offer(put(each, count));
    }
  }
  return best;
}

const makeLongest = (rpc: string, input: DescMessage) =>
  longest(input, REQUESTS[rpc]?.() as JsonObject, (request) => {
    return validator.validate(input, fromJson(input, request)).kind === 'valid';
  });

test('the longest message has as many elements as allowed, each with its longest values', () => {
  const [, { input }] = methods.find(([rpc]) => rpc === SET_ASIDE) ?? expect.fail();
  const { leads } = makeLongest(SET_ASIDE, input) as { leads: JsonObject[] };
  expect(leads).toHaveLength(500);
  expect(leads[0]).toMatchObject({ studioId: 'a'.repeat(64), reason: 'A'.repeat(63), revision: '9007199254740991' });
});

const text = (count: number, character = 'x') => character.repeat(count);

/** The largest messages of gateways. The contract has no rules for them, because their items are refused or skipped separately. */
const OF_GATEWAYS: Readonly<Record<string, JsonObject>> = {
  'ExchangeService/Exchange': {
    items: Array(100).fill({
      requestId: text(128),
      traceparent: `00-${text(32, 'a')}-${text(16, 'a')}-01`,
      secretSha256: randomBytes(32).toString('base64'),
      createLead: {
        ...{ idempotencyKey: UUID, ...aLeadData((field) => text(BOUNDS[field].max, '🦉')) },
        contact: { email: `${text(252, '🦉')}@b` },
      },
    }),
  },
  'RequestLogService/RecordRequests': {
    batchId: UUID,
    requests: Array(MAX_RECORDED_REQUESTS).fill({
      ...{ studioId: text(64), time: SLIVERS[0], operation: 'createLead', apiKeyId: UUID, secretHint: text(4) },
      ...{ status: 599, code: text(64), faultyFields: RECORDED_FIELDS, requestId: text(128), leadId: UUID },
      ...{ replayed: true, durationMs: 4_294_967_295, omittedCount: 4_294_967_295 },
    }),
  },
};

/** Calls a method in a protocol; returns its answer, which tells if it could not read the message. */
async function answerTo(rpc: string, contentType: string, message: Uint8Array): Promise<string> {
  const session = connect(core.url);
  onTestFinished(() => session.destroy());
  const call = grpcCall(`/leadintake.v1.${rpc}`, {
    authorization: `Bearer ${CORE_TOKEN}`,
    'content-type': contentType,
  });
  const { grpcStatus, text } = await onStream(session, call, framed(message));
  expect(grpcStatus, text).toBeTypeOf('number');
  return decodeURIComponent(text.slice(0, text.indexOf('}')));
}

// A watch would not end.
// @proves bounds-54 bounds-55 bounds-67 bounds-156
test.each(allMethods.filter(([rpc]) => rpc !== WATCH))(
  '%s reads the largest message that its rules allow',
  async (rpc, { input }) => {
    const message = fromJson(input, OF_GATEWAYS[rpc] ?? makeLongest(rpc, input));
    const [binary, json] = [
      toBinary(input, message),
      Buffer.from(toJsonString(input, message, { registry: contract })),
    ];
    expect(await answerTo(rpc, 'application/grpc+proto', binary)).not.toContain('cannot be read');
    expect(await answerTo(rpc, 'application/grpc+json', json)).not.toContain('cannot be read');
  },
);

// @proves clients-7
test('every method has a request, and every exception is needed', () => {
  expect(Object.keys(REQUESTS).toSorted()).toEqual(methods.map(([rpc]) => rpc).toSorted());
  expect([...used].toSorted()).toEqual(Object.keys(ONLY_IN_CORE).toSorted());
  expect(moments.size).toBeGreaterThanOrEqual(6);
});
