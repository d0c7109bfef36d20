import { cpSync, globSync, mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { beforeAll, describe, expect, test } from 'vitest';
import { anAuthority, writeCertificate } from '../../test/tools/certificates.ts';
import { describeWithTools } from '../../test/tools/commands.ts';
import { ROOT, sharedFolder } from '../../test/tools/processes.ts';
import { makeAnswer } from '../conformance/answers.ts';
import shared from '../conformance/shared.json' with { type: 'json' };
import { readConversations, runSuite } from '../conformance/suite.ts';
import { FIELDS_NOT_OF_DATA, PROBLEM_CODES, SETTLING_CODES } from '../outcomes.ts';
import { REPEATED } from '../repeated.ts';
import { PHP_BUGS } from './planted-bugs/php-bugs.ts';
import { plantInCopy } from './planted-bugs/plant-in-copy.ts';
import { PYTHON_ASYNCIO_BUGS, PYTHON_BUGS } from './planted-bugs/python-bugs.ts';
import { type ClientBug, TYPESCRIPT_BUGS } from './planted-bugs/typescript-bugs.ts';
import { compiledClient, RUNTIME } from './support/javascript-runtimes.ts';
import { DOCUMENTED_TYPES, FAILURES } from './support/openapi.ts';
import { PYTHON_TOOL, pythonForTests } from './support/python.ts';
import { runPatiently } from './support/senders.ts';

/** A client that the suite runs against. */
interface Client {
  readonly language: string;
  /** Installs the driver's dependencies, and returns its command line, relative to the root of the project. */
  command(): Promise<readonly string[]>;
  /** Commands that succeed on a machine that has the language. */
  readonly needs: readonly string[];
  /** The topics, or the names of conversations, to run. Default: all. */
  readonly only?: readonly string[];
  /** The number of concurrent drivers. Default: the suite's. */
  readonly drivers?: number;
  /** Conversations to skip, each with the reason. */
  readonly except?: Readonly<Record<string, string>>;
  readonly bugs: readonly ClientBug[];
}

const CLIENTS: readonly Client[] = [
  {
    language: 'TypeScript',
    command: async () => [process.execPath, 'sdk/conformance/drivers/typescript.ts'],
    needs: [],
    bugs: TYPESCRIPT_BUGS,
  },
  {
    language: 'PHP',
    // Decoding a response without a limit would need more memory.
    command: async () => ['php', '-d', 'memory_limit=64M', 'sdk/php/conformance-driver.php'],
    needs: [`php -r 'curl_init();'`],
    bugs: PHP_BUGS,
  },
  {
    language: 'Python',
    command: () => pythonDriver(),
    needs: [PYTHON_TOOL],
    bugs: PYTHON_BUGS,
  },
  {
    language: 'Python, with asyncio',
    command: () => pythonDriver('--asyncio'),
    needs: [PYTHON_TOOL],
    bugs: PYTHON_ASYNCIO_BUGS,
  },
];

const scratch = sharedFolder();

/** The topics in which JavaScript runtimes differ most: connections, certificates, redirects, cancelling. A soak runs all. */
const TOPICS_OF_RUNTIMES = ['cancelling', 'checking', 'creating', 'mistakes', 'proxies', 'written'];

const LAST_CHUNK = 'it takes a response without its last chunk as whole; the JSON is';
const NO_REASONS = 'it does not tell why there is no connection, so the outcome is unknown';

/** Other runtimes of the TypeScript client. They run it as published, without types. */
const RUNTIMES: readonly Client[] = [
  aRuntime('Node 20.3', 'node20', { except: { 'lost-replies/chunks-cut-before-the-last': LAST_CHUNK } }),
  // The releases between the oldest Node and the pinned one.
  ...(process.env.SOAK ? [aRuntime('Node 22', 'node22', {}), aRuntime('Node 24', 'node24', {})] : []),
  aRuntime('Bun', 'bun', {
    except: { 'written/no-when-the-handshake-is-cut': 'it does not tell that from a connection that breaks later' },
  }),
  aRuntime('Deno', 'deno', {
    options: ['run', '--allow-all', '--no-prompt'],
    except: {
      'answers/on-a-kept-connection': 'it resends by itself, with the same key, what a kept-alive connection has lost',
    },
  }),
  aRuntime('workerd', 'workerd', {
    command: (folder) => [process.execPath, join(folder, 'conformance/drivers/workerd.js'), RUNTIME.workerd, folder],
    except: {
      'clocks/set-forward': 'faketime cannot set its clock',
      'clocks/set-back': 'faketime cannot set its clock',
      'checking/no-connection': NO_REASONS,
      'written/no-when-the-connection-is-refused': NO_REASONS,
      'written/no-when-the-certificate-is-not-trusted': NO_REASONS,
      'written/no-when-the-name-is-unknown': NO_REASONS,
      'written/no-when-the-handshake-fails': NO_REASONS,
      'written/no-when-the-handshake-is-cut': NO_REASONS,
    },
  }),
];

/** The compiled client, shared by all runtimes. */
let compiled: Promise<string> | undefined;

function aRuntime(
  name: string,
  runtime: keyof typeof RUNTIME,
  {
    options = [],
    command = (folder) => [RUNTIME[runtime], ...options, join(folder, 'conformance/drivers/typescript.js')],
    ...more
  }: Pick<Client, 'except'> & {
    readonly options?: readonly string[];
    readonly command?: (folder: string) => readonly string[];
  },
): Client {
  return {
    language: `TypeScript on ${name}`,
    command: async () => {
      compiled ??= compiledClient(scratch());
      return command(await compiled);
    },
    needs: [`test -x ${RUNTIME[runtime]}`],
    ...(!process.env.SOAK && { only: TOPICS_OF_RUNTIMES }),
    drivers: 4,
    bugs: [],
    ...more,
  };
}

/** Returns the command of the Python driver. It trusts one authority, because loading the machine's takes longer than a conversation. */
async function pythonDriver(...options: readonly string[]): Promise<readonly string[]> {
  const { cert } = writeCertificate(scratch(), 'authority', await anAuthority('The only one'));
  const python = join(await pythonForTests(), 'python');
  return ['env', `SSL_CERT_FILE=${cert}`, python, 'sdk/python/conformance_driver.py', ...options];
}

for (const { language, command: commandOf, needs, bugs, only, except = {}, ...options } of [...CLIENTS, ...RUNTIMES]) {
  describeWithTools(needs, `the client in ${language}`, () => {
    let command: readonly string[];
    beforeAll(async () => {
      command = await commandOf();
    });

    // @proves leads-16 node-26 node-27 node-28 clients-8 clients-9 clients-10 clients-12
    test(`the client in ${language} passes the conversations chosen for it`, async () => {
      const isChosen = (name: string) => only?.some((topic) => name.startsWith(`${topic}/`)) ?? true;
      const all = readConversations().map(({ name }) => name);
      const chosen = all.filter((name) => isChosen(name) && except[name] === undefined);
      expect(all).toEqual(expect.arrayContaining(Object.keys(except)));
      const verdicts = await runPatiently(command, { ...options, only: chosen });
      expect(verdicts.filter(({ verdict }) => verdict === 'failed')).toEqual([]);
      expect(verdicts).toHaveLength(chosen.length);
      for (const { verdict, name, reasons } of verdicts) {
        if (verdict === 'not-supported') console.warn(`NOT SUPPORTED in ${language}: ${name}: ${reasons}`);
        if (verdict === 'not-run') reportNotRun(name, reasons);
      }
    });

    // @proves leads-16 others-8 others-11
    test.concurrent.for(bugs)('the suite catches that $name', async ({ patches, caughtBy, says }, context) => {
      const folder = mkdtempSync(join(scratch(), 'faulty-'));
      cpSync(join(ROOT, 'sdk'), join(folder, 'sdk'), { recursive: true });
      for (const patch of patches) plantInCopy(folder, patch);

      const [verdict] = await runSuite(command, { folder, only: [caughtBy] });

      if (verdict?.verdict === 'not-run') {
        reportNotRun(caughtBy, verdict.reasons);
        context.skip();
      }
      expect(verdict).toMatchObject({ verdict: 'failed' });
      expect(verdict?.reasons.join('\n')).toContain(says);
    });
  });
}

describe('a driver', () => {
  const verdictOn = async (script: string) => {
    const [verdict] = await runSuite(['sh', '-c', script], { only: ['creating/created'] });
    return verdict;
  };

  test.each([
    [
      'reports an unknown request',
      `read request; echo '{"id":7}'; cat`,
      'the driver has reported {"id":7} to request 1',
    ],
    ['ends', 'read request; exec no-such-program', 'the driver ended with 127; on stderr: '],
  ])('a driver that %s fails its conversation, with the reason', async (_, script, reason) => {
    const verdict = await verdictOn(script);
    expect(verdict).toMatchObject({ verdict: 'failed', reasons: [expect.stringContaining(reason)] });
  });
});

describe('the conversations', () => {
  const folder = join(ROOT, 'sdk/conformance');
  const read = (path: string) => JSON.parse(readFileSync(join(folder, path), 'utf8'));

  test.each(globSync('conversations/*.json', { cwd: folder }))('%s is valid against the schema', (file) => {
    const ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true, strictRequired: false });
    addFormats.default(ajv);
    const validate = ajv.compile(read('conversation.schema.json'));
    expect(validate(read(file)), ajv.errorsText(validate.errors)).toBe(true);
  });

  test('conversations have unique names and use only known answers', () => {
    const conversations = readConversations();
    expect(new Set(conversations.map(({ name }) => name)).size).toBe(conversations.length);
    const used = conversations.flatMap(({ calls }) => calls.flatMap(({ attempts }) => attempts));
    expect(() => used.map((attempt) => makeAnswer(attempt))).not.toThrow();
    expect(conversations.length).toBeGreaterThan(80);
  });

  test('conversations have a lead with every documented field, and one with each text changed', () => {
    expect(Object.keys(shared.answers.created.json.lead).toSorted()).toEqual(DOCUMENTED_TYPES.Lead);
    const name = 'proxies/the-lead-of-another-request';
    const { calls = [] } = readConversations().find((conversation) => conversation.name === name) ?? {};
    const others = calls.flatMap(({ request, attempts }) => {
      const sent = Object(request.capture ?? shared.capture);
      const leads = attempts.map((attempt) => Object(Object(makeAnswer(attempt)?.body).lead));
      return leads.flatMap((lead) => Object.keys(lead).filter((field) => lead[field] !== (sent[field] ?? null)));
    });
    expect(others).toEqual(expect.arrayContaining(REPEATED));
  });

  // The service sends these refusals before it looks up the idempotency key. A creation never gets `integration_lead_not_found`.
  const unsettling = PROBLEM_CODES.filter(
    (code) => ![...FAILURES, ...SETTLING_CODES, 'integration_lead_not_found'].includes(code),
  );
  test.each([
    'written/unknown-stays-unknown-after-other-refusals',
    'written/unknown-stays-unknown-when-nothing-has-arrived',
  ])('every pre-lookup refusal occurs in %s', (name) => {
    const { calls = [] } = readConversations().find((conversation) => conversation.name === name) ?? {};
    const last = calls.map(({ attempts }) => makeAnswer(attempts.at(-1) ?? {})?.body as { readonly code?: string });
    expect(last.map(({ code }) => code)).toEqual(expect.arrayContaining(unsettling));
  });

  test('the conversations cover a fault in each field that is not lead data, and the pages name it', () => {
    const name = 'written/unknown-stays-unknown-after-faults-that-are-not-of-the-data';
    const { calls = [] } = readConversations().find((conversation) => conversation.name === name) ?? {};
    const fields = calls.map(({ attempts }) => Object.keys(Object(makeAnswer(attempts.at(-1) ?? {})?.body).fields));
    expect(fields).toEqual(expect.arrayContaining(FIELDS_NOT_OF_DATA.map((field) => [field])));
    for (const page of ['sdk/conformance/README.md', 'gateway/docs/pages/retries.md']) {
      const text = readFileSync(join(ROOT, page), 'utf8');
      expect({ page, missing: FIELDS_NOT_OF_DATA.filter((field) => !text.includes(`\`${field}\``)) }).toEqual({
        page,
        missing: [],
      });
    }
  });
});

/** Warns about a conversation that this machine cannot run; throws in CI. */
function reportNotRun(name: string, reasons: readonly string[]): void {
  if (process.env.CI === 'true') throw new Error(`${name} is not run: ${reasons}`);
  console.warn(`NOT RUN: ${name}: ${reasons}`);
}
