import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { SettingsError } from '../../common/settings.ts';
import { readCoreConfig, readDatabaseUrl } from '../../src/config.ts';

const folder = mkdtempSync(join(tmpdir(), 'lead-intake-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function fileWith(name: string, contents: string): string {
  writeFileSync(join(folder, name), contents);
  return join(folder, name);
}

const cert = fileWith('cert.pem', 'a certificate');
const key = fileWith('key.pem', 'a private key');
const ca = fileWith('ca.pem', 'an authority');
const empty = fileWith('empty', '');

/** A token of the minimum length. */
const TOKEN = 'token'.padEnd(32, '.');

function faultsOf(env: Record<string, string>): readonly string[] {
  try {
    readCoreConfig(env);
  } catch (error) {
    return (error as SettingsError).faults;
  }
  return [];
}

describe("the core's configuration", () => {
  test('has defaults for everything that it needs', () => {
    const { DATABASE_URL, ...config } = readCoreConfig({});

    expect(config).toEqual({
      CORE_HOST: '127.0.0.1',
      CORE_PORT: 50051,
      CORE_CONNECTION_MAX_AGE_MS: 300_000,
      CORE_REFLECTION: false,
      LOG_LEVEL: 'info',
      OTEL_TRACES_SAMPLER: 'parentbased_always_on',
      OTEL_TRACES_SAMPLER_ARG: 1,
      REUSE_PORT: false,
      SHUTDOWN_DRAIN_MS: 1000,
      ignored: [],
      unknown: [],
    });
    expect(DATABASE_URL.reveal()).toBe('sqlite:data/lead-intake.db');
  });

  test('reports all faults together', () => {
    const faults = faultsOf({
      CORE_PORT: 'x',
      CORE_TLS_CERT_FILE: '/nowhere',
      DATABASE_URL: 'postgres://db',
      LOG_LEVEL: 'loud',
      SHUTDOWN_DRAIN_MS: '60001',
    });

    expect(faults.map((fault) => fault.split(' ')[0])).toEqual([
      'CORE_PORT',
      'CORE_TLS_CERT_FILE',
      'DATABASE_URL',
      'LOG_LEVEL',
      'SHUTDOWN_DRAIN_MS',
    ]);
  });
});

describe('a core that others can reach', () => {
  const reachable = ['0.0.0.0', '::', '192.0.2.1', 'core.example.org'];

  test.each(reachable)('does not start on %s without a means to authenticate callers', (CORE_HOST) => {
    expect(faultsOf({ CORE_HOST })).toEqual([
      `CORE_HOST is ${CORE_HOST}, which others can reach: set CORE_CALLERS_FILE, CORE_TOKEN or CORE_TLS_CLIENT_CA_FILE`,
    ]);
  });

  test.each(reachable)('starts on %s with a token, or with mutual TLS', (CORE_HOST) => {
    expect(faultsOf({ CORE_HOST, CORE_TOKEN: TOKEN })).toEqual([]);
    expect(faultsOf({ CORE_HOST, CORE_TOKEN_FILE: fileWith('token', `${TOKEN}\n`) })).toEqual([]);
    expect(
      faultsOf({ CORE_HOST, CORE_TLS_CERT_FILE: cert, CORE_TLS_KEY_FILE: key, CORE_TLS_CLIENT_CA_FILE: ca }),
    ).toEqual([]);
  });

  test('does not start with TLS alone, which authenticates the core but not its callers', () => {
    expect(faultsOf({ CORE_HOST: '0.0.0.0', CORE_TLS_CERT_FILE: cert, CORE_TLS_KEY_FILE: key })).toHaveLength(1);
  });

  test('does not start with an empty token', () => {
    expect(faultsOf({ CORE_HOST: '0.0.0.0', CORE_TOKEN: '' })).not.toEqual([]);
    expect(faultsOf({ CORE_HOST: '0.0.0.0', CORE_TOKEN_FILE: empty })).not.toEqual([]);
  });

  test.each(['127.0.0.1', '127.8.9.10', '::1', 'localhost'])(
    'starts without either on %s, which others cannot reach',
    (CORE_HOST) => {
      expect(faultsOf({ CORE_HOST })).toEqual([]);
    },
  );
});

describe('TLS', () => {
  test.each([
    { CORE_TLS_CERT_FILE: cert },
    { CORE_TLS_KEY_FILE: key },
    { CORE_TLS_CLIENT_CA_FILE: ca },
    { CORE_TLS_CERT_FILE: cert, CORE_TLS_CLIENT_CA_FILE: ca },
    { CORE_TLS_KEY_FILE: key, CORE_TLS_CLIENT_CA_FILE: ca },
  ])('that is incomplete is a fault: %o', (env) => {
    expect(faultsOf(env)).not.toEqual([]);
  });

  test.each([
    { CORE_TLS_CERT_FILE: empty, CORE_TLS_KEY_FILE: empty },
    { CORE_TLS_CERT_FILE: cert, CORE_TLS_KEY_FILE: key, CORE_TLS_CLIENT_CA_FILE: empty },
  ])('with an empty file is a fault and does not disable TLS: %o', (env) => {
    expect(faultsOf({ CORE_TOKEN: TOKEN, ...env })).not.toEqual([]);
  });
});

describe("the core's token", () => {
  test.each([TOKEN, 'with blanks '.repeat(3).trim(), `Tok3n!~${TOKEN}`, 'x'.repeat(500)])('may be %s', (CORE_TOKEN) => {
    expect(faultsOf({ CORE_TOKEN })).toEqual([]);
  });

  test.each(['abc\nhunter2', ' hunter2', 'hunter2 ', 'hunter2\u20ac', 'hunter2\u0001', 'hunter2\t'])(
    'that cannot be sent in a header is a fault, without the token in the message: %j',
    (CORE_TOKEN) => {
      expect(faultsOf({ CORE_TOKEN })).toEqual([expect.stringMatching(/^CORE_TOKEN must be /)]);
      expect(faultsOf({ CORE_TOKEN }).join()).not.toContain('hunter2');
    },
  );

  test.each(['hunter2', `hunter2${'x'.repeat(24)}`])(
    'that is too short is a fault, without the token in the message: %s',
    (CORE_TOKEN) => {
      const expected = ['CORE_TOKEN must have at least 32 characters: openssl rand -hex 32 makes one'];
      expect(faultsOf({ CORE_TOKEN })).toEqual(expected);
      expect(faultsOf({ CORE_TOKEN_FILE: fileWith('short', `${CORE_TOKEN}\n`) })).toEqual(expected);
      expect(faultsOf({ CORE_TOKEN: CORE_TOKEN.padEnd(32, 'x') })).toEqual([]);
    },
  );
});

describe('the address of the database', () => {
  test.each(['sqlite:leads.db', 'sqlite:/var/lib/leads.db'])('may be %s', (DATABASE_URL) => {
    expect(readDatabaseUrl({ DATABASE_URL }).reveal()).toBe(DATABASE_URL);
  });

  test('may be in a file', () => {
    const file = fileWith('database-url', 'sqlite:leads.db\n');

    expect(readDatabaseUrl({ DATABASE_URL_FILE: file }).reveal()).toBe('sqlite:leads.db');
  });

  test.each([
    'mongodb://user:p/w@host',
    'mongodb://user:hunter2@[',
    'mongodb://host/?hunter2=1&unknown',
    'mongodb+srv://user:hunter2@host.example:27017/x',
    'mongodb://',
  ])('that the driver rejects is a fault: %s', (DATABASE_URL) => {
    expect(() => readDatabaseUrl({ DATABASE_URL })).toThrow(/DATABASE_URL is refused by the driver: /);
  });

  test.each(['sqlite:', 'leads.db', 'postgres://db', 'SQLITE:leads.db'])('may not be %s', (DATABASE_URL) => {
    expect(() => readDatabaseUrl({ DATABASE_URL })).toThrow(/DATABASE_URL must be/);
  });

  test.each(['sqlite::memory:', 'sqlite:/x.db?mode=ro', 'sqlite:file::memory:', 'sqlite:file:x.db'])(
    'must name a file that keeps what is stored: %s',
    (DATABASE_URL) => {
      expect(() => readDatabaseUrl({ DATABASE_URL })).toThrow(/DATABASE_URL must name a file/);
    },
  );
});
