/** Text that a person or a caller typed never reaches a log, a span, a metric or an error. */
import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  createRegistry,
  type DescField,
  type DescMessage,
  type DescMethod,
  fromJson,
  type JsonObject,
  type JsonValue,
  ScalarType,
  toJson,
} from '@bufbuild/protobuf';
import { ConnectError, type Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { describe, expect, onTestFinished, test } from 'vitest';
import { hashKeySecret, newKeySecret } from '../../common/rules/key-secret.ts';
import { file_google_rpc_error_details } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { ConsumerStart } from '../../proto/gen/leadintake/v1/consumer_pb.ts';
import { StudioStatus } from '../../proto/gen/leadintake/v1/directory_pb.ts';
import { type Lead, LeadSchema, LeadView } from '../../proto/gen/leadintake/v1/lead_intake_pb.ts';
import { toContactKeys } from '../../src/domain/contact.ts';
import { newId } from '../../src/domain/new-id.ts';
import { ALL_SERVICES } from '../../src/rpc/routes.ts';
import { openStore } from '../../src/store/open-store.ts';
import { correctLead } from '../contract/store-actions.ts';
import {
  aLead,
  aLeadSource,
  aMember,
  anApiKey,
  aStudio,
  BY,
  DAY_MS,
  keysFor,
  plus,
  STUDIO_ID,
} from '../support/builders.ts';
import { CLI, executed } from '../support/command-line.ts';
import { arrangeStudio, type CoreClients, connectToCore } from '../support/core-clients.ts';
import { type OtlpReceiver, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { ID_BYTES } from '../support/raw-sqlite.ts';
import { Canaries } from '../tools/canaries.ts';
import { forAllTests } from '../tools/for-all-tests.ts';
import { ROOT, type RunningProcess, readAddress, sharedFolder, start, temporaryFolder } from '../tools/processes.ts';
import { framed, onStream } from './http2-wire.ts';

const TOKEN = 'the-token-of-the-tests-of-personal-data';

/** Every method of the core, from the generated descriptors. */
const METHODS: readonly DescMethod[] = ALL_SERVICES.flatMap(({ methods }) => methods);

const describeRpc = ({ parent, name }: DescMethod): string => `${parent.name}/${name}`;

interface Core {
  readonly core: RunningProcess;
  readonly url: string;
  readonly crm: CoreClients;
  readonly receiver: OtlpReceiver;
}

const folder = sharedFolder();

/** Starts a core that logs, traces and counts as much as it can. The caller must stop it. */
async function startCore(): Promise<Core> {
  const receiver = await startOtlpReceiver();
  const core = start('src/main.ts', {
    env: {
      CORE_TOKEN: TOKEN,
      LOG_LEVEL: 'trace',
      CORE_REFLECTION: 'yes',
      CORE_METRICS_ADDRESS: '127.0.0.1:0',
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_BSP_SCHEDULE_DELAY: '100',
      DATABASE_URL: `sqlite:${join(folder(), 'leads.db')}`,
    },
  });
  const url = await readAddress(core);
  return { core, url, crm: connectToCore(url, TOKEN), receiver };
}

/** Returns everything that the core has shown its operator, once the last call is logged and traced. */
async function shownBy({ core, url, receiver }: Core): Promise<string> {
  const requestId = `last-${randomUUID()}`;
  const session = new Http2SessionManager(url);
  const transport = createGrpcTransport({ baseUrl: url, sessionManager: session });
  const [method] = METHODS.filter(({ name }) => name === 'ListStudios');
  const headers = { authorization: `Bearer ${TOKEN}`, 'x-request-id': requestId };
  await transport.unary(method as never, undefined, undefined, headers, {});
  session.abort();
  await core.printed(new RegExp(requestId));
  await expect.poll(() => receiver.text()).toContain(requestId);
  const [metrics = ''] = /http:\/\/[0-9.:]+\/metrics/.exec(core.output()) ?? [];
  return [core.output(), receiver.text(), await (await fetch(metrics)).text()].join('\n');
}

/** Returns a text that could be mistaken for an id of the CRM. */
const anIdLikeMark = () => `canary_${randomBytes(8).toString('hex')}`;

/** Returns a text that is no id. */
const aMark = () => `Canary Ünlü "${randomBytes(8).toString('hex')}"`;

/** Values of fields, by full name (`Member.id`) or by name; undefined omits the field. */
type Values = Readonly<Record<string, JsonValue | undefined>>;

/** Returns a message with every field, as JSON; of each set of alternatives it has the one at `alternative`, modulo. */
function filled(
  message: DescMessage,
  values: Values,
  makeText: (field: DescField) => JsonValue,
  alternative: number,
): JsonObject {
  const fields = message.fields.filter(
    ({ oneof, ...field }) => !oneof || oneof.fields[alternative % oneof.fields.length]?.number === field.number,
  );
  return Object.fromEntries(
    fields.flatMap((field) => {
      const named = [`${message.name}.${field.name}`, field.name].find((name) => name in values);
      const value = named === undefined ? one(field) : values[named];
      if (value === undefined) return [];
      const isList = named === undefined && field.fieldKind === 'list';
      return [[field.jsonName, isList ? [value] : value]];
    }),
  );

  function one(field: DescField): JsonValue {
    if (field.message?.typeName === 'google.protobuf.Timestamp') return new Date(Date.now() + 3_600_000).toISOString();
    if (field.message?.typeName === 'google.protobuf.Duration') return '0.1s';
    if (field.message?.typeName === 'google.protobuf.FieldMask') return String(makeText(field));
    if (field.message) return filled(field.message, values, makeText, alternative);
    if (field.enum) return field.enum.values[1]?.number ?? 0;
    if (field.fieldKind === 'map') throw new Error('no request has a map: say what to put into one');
    if (field.scalar === ScalarType.STRING) return makeText(field);
    if (field.scalar === ScalarType.BYTES) return Buffer.from(String(makeText(field))).toString('base64');
    return field.scalar === ScalarType.BOOL ? true : 5;
  }
}

/** Returns the requests of a method, one for each alternative of any message in it. */
function makeRequests(method: DescMethod, values: Values, textOf: (field: DescField) => JsonValue): JsonObject[] {
  const all = [0, 1, 2, 3, 4, 5].map((alternative) => filled(method.input, values, textOf, alternative));
  const seen = new Set<string>();
  const toShape = (value: JsonValue): string => JSON.stringify(value, (_, each) => (isObject(each) ? each : 0));
  return all.filter((request) => !seen.has(toShape(request)) && seen.add(toShape(request)));
}

const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null;

/** Whether a request of a method can contain free text. */
const hasText = ({ input }: DescMethod): boolean =>
  /"canary/.test(JSON.stringify(makeRequests({ input } as DescMethod, {}, () => 'canary')));

/** A refusal as text, with everything that its caller sees; or the first message of a response. */
interface Answer {
  readonly error?: string;
  readonly response?: JsonValue;
}

/** The types of the details in errors. */
const ERRORS = { registry: createRegistry(file_google_rpc_error_details) };

/** Calls any method, and reads one message of a stream. */
async function callOn(transport: Transport, method: DescMethod, request: JsonObject): Promise<Answer> {
  const header = { authorization: `Bearer ${TOKEN}` };
  const ending = new AbortController();
  try {
    const input = fromJson(method.input, request);
    if (method.methodKind === 'unary') {
      const { message } = await transport.unary(method as never, undefined, undefined, header, input as never);
      return { response: toJson(method.output, message, ERRORS) as JsonValue };
    }
    const sent = (async function* () {
      yield input;
    })();
    const { message } = await transport.stream(method as never, ending.signal, 10_000, header, sent as never);
    for await (const each of message) return { response: toJson(method.output, each, ERRORS) as JsonValue };
    return { response: {} };
  } catch (error) {
    return { error: textOfError(error as ConnectError) };
  } finally {
    ending.abort();
  }
}

function textOfError(error: ConnectError): string {
  if (!(error instanceof ConnectError)) throw error;
  const details = error.details.map((detail) => ('value' in detail && detail.value) as Uint8Array);
  return [error.message, ...details.map((each) => Buffer.from(each).toString()), ...[...error.metadata].flat()].join(
    '\n',
  );
}

/** Returns the error of the item in a response of a stream of results, if it has one. */
const errorOfItem = ({ response }: Answer): JsonValue | undefined => {
  const results = isObject(response) ? response.results : undefined;
  return Array.isArray(results) ? results.map((each) => isObject(each) && each.error).find(Boolean) : undefined;
};

const isRefused = (answer: Answer): boolean => answer.error !== undefined || errorOfItem(answer) !== undefined;

/** Returns a transport for each protocol, with sessions that end with the test. */
function transportsTo({ url }: Core): Transport[] {
  const sessionManager = new Http2SessionManager(url);
  onTestFinished(() => sessionManager.abort());
  const options = { baseUrl: url, sessionManager };
  return [
    createGrpcTransport(options),
    createConnectTransport({ ...options, httpVersion: '2', useBinaryFormat: false }),
  ];
}

/** Creates a studio with a lead; returns valid values for all fields that name something or have a format. */
async function validValues({ crm }: Core): Promise<Values> {
  const { studioId, memberId, sourceId, apiKeyId, secret } = await arrangeStudio(crm, { regionCode: 'DE' });
  const contact = { value: { case: 'email', value: `${randomUUID()}@example.org` } } as const;
  await crm.consumers.createConsumer({ consumer: { name: 'crm', allStudios: true }, start: ConsumerStart.NOW });
  const { lead } = await crm.leads.createLead({ studioId, idempotencyKey: newId(), displayName: 'Ada', contact });
  await crm.directory.putStudio({ studio: { id: 'trial', status: StudioStatus.ACTIVE, isTest: true } });
  const erased = `studio-${randomUUID()}`;
  await crm.directory.putStudio({ studio: { id: erased, status: StudioStatus.ACTIVE } });
  const secretSha256 = Buffer.from(hashKeySecret(secret)).toString('base64');
  return {
    studio_id: studioId,
    'Studio.id': studioId,
    'Studio.is_test': false,
    'EmptyStudioRequest.studio_id': 'trial',
    'EraseStudioRequest.studio_id': erased,
    'EraseStudioRequest.confirm_studio_id': erased,
    region_code: 'DE',
    retention_days: 30,
    member_id: memberId,
    'Member.id': memberId,
    source_id: sourceId,
    lead_source_id: sourceId,
    'LeadSource.id': sourceId,
    api_key_id: apiKeyId,
    lead_id: lead?.id ?? '',
    'Lead.id': lead?.id ?? '',
    idempotency_key: newId(),
    secret_sha256: secretSha256,
    request_id: randomUUID(),
    traceparent: '',
    batch_id: randomUUID(),
    page_token: '',
    resume_token: '',
    update_mask: undefined,
    expected_update_time: undefined,
    create_time: '2024-05-04T10:00:00Z',
    update_time: '2024-05-04T10:00:00Z',
    'ExportAuditEventsRequest.start_time': '2024-05-04T10:00:00Z',
    'ExportAuditEventsRequest.end_time': '2024-05-05T10:00:00Z',
    'LeadFilter.create_time': { startTime: '2024-05-04T10:00:00Z' },
    'LeadFilter.update_time': { startTime: '2024-05-04T10:00:00Z' },
    source_ids: [sourceId],
    api_key_ids: [apiKeyId],
    phone: `+49 30 ${Number.parseInt(randomBytes(4).toString('hex'), 16)}`,
    email: `${anIdLikeMark()}@example.org`,
    consumer: '',
    'CreateConsumerRequest.consumer': { name: 'relay', allStudios: true },
    'RemoveConsumerRequest.consumer': 'reporting',
    'ResendLeadsRequest.all_studios': false,
    'ResendLeadsRequest.update_time': undefined,
    'SetAsideLeadChangesRequest.consumer': 'crm',
    'TakeBackLeadChangesRequest.consumer': 'crm',
    'ListSetAsideLeadChangesRequest.consumer': 'crm',
    lead_ids: [lead?.id ?? ''],
    all: undefined,
    reason: `CANARY_${randomBytes(8).toString('hex').toUpperCase()}`,
    heartbeat: '1s',
    'HealthCheckRequest.service': '',
  };
}

/** Adds the unique texts of a request to the canaries. */
function addTexts(canaries: Canaries, name: string, value: JsonValue): void {
  if (isObject(value)) for (const [key, each] of Object.entries(value)) addTexts(canaries, `${name} ${key}`, each);
  else if (typeof value === 'string' && /canary|\+49/i.test(value)) canaries.add(name, value);
}

// @proves secrets-5
describe('the output of a core', () => {
  const core = forAllTests(startCore, async ({ core: running, crm, receiver }) => {
    crm.close();
    await running.kill();
    await receiver.stop();
  });

  test('the output of a core has no text from a request that succeeds', async () => {
    const canaries = new Canaries();
    for (const transport of transportsTo(core)) {
      for (const method of METHODS) {
        for (const [index] of makeRequests(method, {}, () => '').entries()) {
          const values = await validValues(core);
          const request = makeRequests(method, values, anIdLikeMark)[index] ?? {};
          addTexts(canaries, describeRpc(method), request);
          const answer = await callOn(transport, method, request);
          expect([describeRpc(method), request, isRefused(answer) && answer]).toEqual([
            describeRpc(method),
            request,
            false,
          ]);
        }
      }
    }

    expect(canaries.in(await shownBy(core))).toEqual([]);
  });

  test('neither a refusal nor the output of a core has text from the refused request', async () => {
    const canaries = new Canaries();
    for (const transport of transportsTo(core)) {
      for (const method of METHODS.filter(hasText)) {
        for (const request of makeRequests(method, {}, aMark)) {
          addTexts(canaries, describeRpc(method), request);
          const answer = await callOn(transport, method, request);
          // The reflection protocol repeats each request in its response.
          const shown = method.parent.name === 'ServerReflection' ? (answer.error ?? '') : JSON.stringify(answer);
          expect([describeRpc(method), request, canaries.in(shown)]).toEqual([describeRpc(method), request, []]);
          if (method.parent.typeName.startsWith('leadintake.'))
            expect([describeRpc(method), request, isRefused(answer)]).toEqual([describeRpc(method), request, true]);
        }
      }
    }

    expect(canaries.in(await shownBy(core))).toEqual([]);
  });

  // @proves connect-6
  test('no output of a core has text that a request has instead of another type', async () => {
    const canaries = new Canaries();
    const session = connect(core.url);
    onTestFinished(() => session.destroy());
    let tried = 0;
    for (const method of METHODS) {
      const values = await validValues(core);
      for (const request of makeRequests(method, values, anIdLikeMark)) {
        for (const [path, changed] of withText(request)) {
          const mark = aMark();
          canaries.add(`${describeRpc(method)} ${path}`, mark);
          const isStream = method.methodKind !== 'unary';
          const body = Buffer.from(JSON.stringify(changed(mark)));
          const { text } = await onStream(
            session,
            {
              ':method': 'POST',
              ':path': `/${method.parent.typeName}/${method.name}`,
              'content-type': isStream ? 'application/connect+json' : 'application/json',
              'connect-timeout-ms': '1000',
              authorization: `Bearer ${TOKEN}`,
            },
            isStream ? framed(body) : body,
          );
          expect([describeRpc(method), path, canaries.in(Buffer.from(text, 'latin1').toString())]).toEqual([
            describeRpc(method),
            path,
            [],
          ]);
          tried += 1;
        }
      }
    }

    expect(tried).toBeGreaterThan(70);
    expect(canaries.in(await shownBy(core))).toEqual([]);
  });

  // @proves leads-32
  test('neither a refusal nor the output has text of the enquiry that the refusal keeps', async () => {
    const { studioId } = await arrangeStudio(core.crm);
    const { leads } = core.crm;
    const canaries = new Canaries();
    const address = `${anIdLikeMark()}@example.org`;
    const ask = (displayName: string, note: string, value = address) =>
      leads.createLead({
        ...{ studioId, idempotencyKey: newId(), displayName, note },
        contact: { value: { case: 'email', value } },
      });
    const { lead } = await ask('Ada', 'first');
    const of = { studioId, leadId: lead?.id ?? '' };
    const typed = canaries.add('contact', address.toUpperCase());
    const refusal = await ask(canaries.add('name', aMark()), canaries.add('note', aMark()), typed).catch(
      (error) => error,
    );

    expect(canaries.in(textOfError(refusal))).toEqual([]);
    const { lead: kept } = await leads.getLead({ ...of, view: LeadView.FULL });
    expect(canaries.in(JSON.stringify(toJson(LeadSchema, kept as Lead)))).toHaveLength(3);
    await leads.pullLeadChanges({});
    await Array.fromAsync(leads.exportLeads({ studioId }));
    await leads.eraseLead(of);
    const shown = await shownBy(core);
    expect(canaries.in(shown)).toEqual([]);
    // The output does contain what it may.
    for (const text of [shown, core.receiver.text()]) expect(text).toContain(studioId);
  });
});

/** Yields the path of each value that is no text, with a function that returns the request with a text there. */
function* withText(value: JsonValue, path = ''): Generator<[string, (text: string) => JsonValue]> {
  if (typeof value === 'string' && !/^(?:\d{4}-|\d[\d.]*s$)/.test(value)) return;
  if (path !== '') yield [path, (text) => text];
  if (!isObject(value)) return;
  for (const [key, each] of Object.entries(value)) {
    for (const [inner, changed] of withText(each as JsonValue, `${path}.${key}`)) {
      yield [
        inner,
        (text) =>
          Array.isArray(value)
            ? value.map((item, index) => (`${index}` === key ? changed(text) : item))
            : { ...value, [key]: changed(text) },
      ];
    }
  }
}

/** A run of a command, which may print personal data if that is its purpose. */
interface CommandRun {
  readonly args: readonly string[];
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** A command that runs it and ends it. */
  readonly within?: readonly string[];
  /** Whether the command may print leads on its standard output. */
  readonly printsLeads?: boolean;
}

interface Arranged {
  readonly person: { readonly email: string; readonly phone: string; readonly name: string; readonly note: string };
  readonly studio: string;
  readonly lead: string;
  readonly closed: string;
  readonly key: string;
  readonly secret: string;
  readonly source: string;
  /** Writes a new file and returns its path. */
  file(content: string, name?: string): string;
}

/** Runs of every command, successful and failing. */
function commandRuns({ person, studio, lead, closed, key, secret, source, file }: Arranged) {
  const contact = JSON.stringify({ type: 'email', value: person.email });
  const noContact = JSON.stringify({ type: 'email', value: person.note, name: person.name });
  const ofStudio = [studio];
  const manager = ['--member', 'owner'];
  const csv = (...lines: readonly string[]) => file(lines.join('\n'), 'leads.csv');
  const printsLeads = true;
  const runs: Readonly<Record<string, readonly CommandRun[]>> = {
    'studios put': [{ args: [studio] }],
    'studios try-retention': [{ args: [studio, '30'] }, { args: [person.name, person.email] }],
    'studios empty': [{ args: [studio] }],
    'studios erase': [{ args: [studio] }, { args: [studio, '--confirm', person.name] }],
    'studios get': [{ args: [studio] }],
    'studios list': [{ args: [] }],
    'members put': [{ args: [studio, 'other', '--role', 'staff'] }],
    'members remove': [{ args: [studio, 'other'] }],
    'sources put': [{ args: [studio, '--name', 'Form'] }],
    'sources list': [{ args: [studio] }],
    'sources remove': [{ args: [studio, source] }],
    'keys create': [{ args: [studio, ...manager, '--name', 'Website'] }],
    'keys list': [{ args: [studio] }],
    'keys ending': [{ args: ['--days', '366'] }],
    'keys replace': [{ args: [studio, key, ...manager] }],
    'keys revoke': [{ args: [studio, key] }],
    'keys quota': [{ args: [studio, key, '5'] }],
    'keys find': [
      { args: [], input: `${secret} ${person.name} ${person.email}` },
      { args: [file(`${person.name} ${person.email}`)] },
    ],
    'leads list': [{ args: [...ofStudio, '--json'], printsLeads }, { args: [person.name] }],
    'leads get': [{ args: [...ofStudio, lead], printsLeads }],
    'leads count': [{ args: ofStudio }, { args: [person.name] }],
    'leads events': [{ args: [...ofStudio, lead] }, { args: [...ofStudio, person.email] }],
    'leads import': [
      { args: [studio, csv('displayName,email,note', `${person.name},${person.email},"${person.note}"`)] },
      { args: [studio, csv('displayName,email,stage', `${person.name},x${person.email},"${person.note}"`)] },
      {
        args: [
          studio,
          csv('displayName,phone,createTime', `${person.name.repeat(99)},"${person.phone}","${person.note}"`),
        ],
      },
      { args: [studio, csv('idempotencyKey,id,displayName,email', `${person.email},1,${person.name},x`)] },
      { args: [studio, csv('displayName,email,note', `${person.name},${person.phone},"${person.note}`)] },
    ],
    'leads export': [{ args: [], printsLeads }],
    'leads stage': [{ args: [studio, lead, 'contacted'], printsLeads }, { args: [studio, closed, 'new'] }],
    'leads find': [
      { args: [studio], input: contact, printsLeads },
      { args: [studio], input: noContact },
    ],
    'leads export-contact': [
      { args: [studio], input: contact, printsLeads },
      { args: [studio], input: noContact },
    ],
    'changes watch': [{ args: [], within: ['timeout', '--signal', 'INT', '3'] }],
    'changes resend': [{ args: [studio] }],
    restored: [{ args: [] }],
    'consumers create': [
      { args: ['relay', '--all-studios', '--start', 'all-leads'] },
      { args: [person.email, '--all-studios', '--start', 'now'] },
    ],
    'consumers list': [{ args: [] }],
    'consumers set-aside': [
      { args: ['relay', studio, lead, '--reason', 'HTTP_500'] },
      { args: ['relay', studio, lead, '--reason', person.name] },
      { args: [person.email, studio, person.phone, '--reason', 'HTTP_500'] },
    ],
    'consumers list-set-aside': [{ args: ['relay'] }, { args: [person.email] }],
    'consumers take-back': [{ args: ['relay'] }, { args: ['relay', studio, person.email] }],
    'consumers remove': [{ args: ['relay'] }, { args: [person.email] }],
    'audit show': [{ args: [studio, '--lead', lead] }, { args: [studio, '--lead', person.email] }],
    'audit export': [{ args: [] }, { args: ['--resume-token', person.email] }],
    requests: [
      { args: [studio] },
      { args: [studio, '--failed', '--request-id', 'one'] },
      { args: [person.name, '--key', person.email, '--request-id', person.note] },
    ],
    'callers token': [{ args: [] }],
    demo: [{ args: [] }],
    doctor: [{ args: [] }, { args: ['core', '--records'] }],
    verify: [{ args: ['--base-url', 'http://127.0.0.1:1'], env: { LEAD_INTAKE_KEY: secret } }],
    backup: [{ args: [file('', 'backup')] }],
    vacuum: [{ args: [] }],
    // These come last, because they leave nothing.
    'leads erase': [{ args: [studio, lead] }, { args: ['--closed-before', new Date().toISOString(), '--yes'] }],
    'leads erase-contact': [
      { args: [studio], input: contact },
      { args: [studio], input: noContact },
    ],
    'erasures export': [{ args: [] }],
    'erasures apply': [
      { args: [], input: JSON.stringify({ studioId: person.name, leadId: person.email, eraseTime: person.note }) },
      { args: [file(`${person.email}\n${person.note}`)] },
    ],
  };
  return Object.entries(runs).map(([command, each]) => ({
    command,
    runs: each.map((run) => ({ ...run, args: [...command.split(' '), ...run.args] })),
  }));
}

// @proves secrets-5
describe('the output of commands', () => {
  test('commands print no personal data unless they are meant to print leads', async () => {
    const canaries = new Canaries();
    const mark = randomBytes(6).toString('hex');
    const person = {
      email: canaries.add('email address', `canary.${mark}@example.org`),
      phone: canaries.add('phone number', `+49 30 ${Number.parseInt(mark.slice(0, 8), 16)}`),
      name: canaries.add('name', `Canary Ünlü-${mark}`),
      note: canaries.add('note', `Sings ${mark} at noon`),
    };
    const contact = { type: 'email', value: person.email } as const;
    for (const key of toContactKeys(contact, aStudio()).contactKeys) canaries.add('hash of a contact', key);
    const folder = temporaryFolder();
    const file = (content: string, name = 'file') => {
      const path = join(folder, `${randomUUID()}-${name}`);
      if (content !== '') writeFileSync(path, content);
      return path;
    };
    const env = { DATABASE_URL: `sqlite:${join(folder, 'leads.db')}` };
    const store = await openStore(env.DATABASE_URL);
    const by = { memberId: null, now: new Date() };
    await store.putStudio(aStudio(), by);
    await store.putMember(aMember({ id: 'owner' }), BY);
    const source = aLeadSource();
    await store.putLeadSource(source, BY);
    const secret = canaries.addKey(newKeySecret());
    const key = anApiKey({ expiresAt: plus(by.now, DAY_MS), secretSha256: hashKeySecret(secret) });
    await store.createApiKey(key, by.now);
    const about = { displayName: person.name, note: person.note, createdAt: plus(by.now, -DAY_MS) };
    const [closed, lead, byPhone, unreadable] = [
      aLead({ ...about, contact, stage: 'lost' }),
      aLead({ ...about, contact }),
      aLead({ ...about, contact: { type: 'phone', value: person.phone } }),
      aLead(about),
    ];
    for (const each of [closed, lead, byPhone, unreadable]) await store.createLead(each, keysFor(each));
    const typed = { type: 'email', value: canaries.add('contact as typed', person.email.toUpperCase()) } as const;
    const again = aLead({ contact: typed, displayName: `${person.name} again`, note: `${person.note} again` });
    await store.createLead(again, keysFor(again), { keepsEnquiry: true });
    await correctLead(store, byPhone, { note: 'Corrected.' }, { now: by.now });
    await store.close();
    const database = new DatabaseSync(join(folder, 'leads.db'), { timeout: 100_000 });
    database.prepare(`UPDATE leads SET stage = ? WHERE id = ${ID_BYTES}`).run('qualified', unreadable.id);
    database.close();
    const ids = { studio: STUDIO_ID, lead: lead.id, closed: closed.id, key: key.id, secret, source: source.id };
    const commands = commandRuns({ person, ...ids, file });

    // The page has all commands: see test/docs.test.ts.
    const [table = ''] = readFileSync(join(ROOT, 'docs/reference/command-line.md'), 'utf8').split(/^## /m);
    const cells = [...table.matchAll(/^\| (`[^|]+`) \|/gm)].map(([, cell = '']) => cell);
    const names = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name));
    expect(commands.map(({ command }) => command).toSorted()).toEqual(names.toSorted());

    for (const { args, input, env: more, within = [], printsLeads = false } of commands.flatMap(({ runs }) => runs)) {
      const [command = '', ...rest] = [...within, CLI, ...args];
      const { stdout, stderr } = await executed(command, rest, {
        env: { ...env, ...more },
        ...(input !== undefined && { input }),
      }).catch((error) => error);
      expect([args, canaries.in(stderr), stderr]).toEqual([args, [], stderr]);
      if (printsLeads) expect([args, canaries.in(stdout)]).toEqual([args, expect.arrayContaining(['name'])]);
      else expect([args, canaries.in(stdout)]).toEqual([args, []]);
    }
  });
});
