import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { SettingsError } from '../../common/settings.ts';
import { readGatewayConfig } from '../../gateway/config.ts';
import { readCoreConfig, readDatabaseUrl } from '../../src/config.ts';
import { sharedFolder } from '../tools/processes.ts';

const folder = sharedFolder();

function fileWith(name: string, contents: string): string {
  writeFileSync(join(folder(), name), contents);
  return join(folder(), name);
}

/** A token of the minimum length. */
const TOKEN = 'token'.padEnd(32, '.');

function findFaults(env: Record<string, string>): readonly string[] {
  try {
    readCoreConfig(env);
  } catch (error) {
    return (error as SettingsError).faults;
  }
  return [];
}

describe('a core', () => {
  test('a core needs no setting', () => {
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
    });
    expect(DATABASE_URL.reveal()).toBe('sqlite:data/lead-intake.db');
  });

  test('a core that others can reach does not start without a means to authenticate callers', () => {
    const tls = {
      CORE_TLS_CERT_FILE: fileWith('cert.pem', 'a certificate'),
      CORE_TLS_KEY_FILE: fileWith('key.pem', 'a key'),
    };
    for (const CORE_HOST of ['0.0.0.0', '::', '192.0.2.1', 'core.example.org']) {
      const fault = `CORE_HOST is ${CORE_HOST}, which others can reach: set CORE_CALLERS_FILE, CORE_TOKEN or CORE_TLS_CLIENT_CA_FILE`;
      // TLS alone authenticates the core but not its callers.
      for (const means of [{}, tls]) expect(findFaults({ CORE_HOST, ...means })).toEqual([fault]);
      for (const token of [{ CORE_TOKEN: '' }, { CORE_TOKEN_FILE: fileWith('empty', '') }]) {
        expect(findFaults({ CORE_HOST, ...token })).not.toEqual([]);
      }
      const mutual = { ...tls, CORE_TLS_CLIENT_CA_FILE: fileWith('ca.pem', 'an authority') };
      const inFile = { CORE_TOKEN_FILE: fileWith('token', `${TOKEN}\n`) };
      for (const means of [{ CORE_TOKEN: TOKEN }, inFile, mutual])
        expect(findFaults({ CORE_HOST, ...means })).toEqual([]);
    }
    for (const CORE_HOST of ['127.0.0.1', '127.8.9.10', '::1', 'localhost'])
      expect(findFaults({ CORE_HOST })).toEqual([]);
  });

  test('a core does not start with incomplete TLS settings or an empty TLS file', () => {
    const [cert, key, ca, empty] = ['cert', 'key', 'ca', ''].map((name) => fileWith(`of-${name}`, name));
    for (const [CORE_TLS_CERT_FILE, CORE_TLS_KEY_FILE, CORE_TLS_CLIENT_CA_FILE] of [
      [cert],
      [undefined, key],
      [undefined, undefined, ca],
      [cert, undefined, ca],
      [empty, empty],
      [cert, key, empty],
    ]) {
      const env = { CORE_TOKEN: TOKEN, CORE_TLS_CERT_FILE, CORE_TLS_KEY_FILE, CORE_TLS_CLIENT_CA_FILE };
      expect(findFaults(JSON.parse(JSON.stringify(env)))).not.toEqual([]);
    }
  });

  test('CORE_TOKEN has at least 32 characters that a header allows, and no fault repeats it', () => {
    for (const CORE_TOKEN of [TOKEN, 'with blanks '.repeat(3).trim(), 'x'.repeat(500)]) {
      expect(findFaults({ CORE_TOKEN })).toEqual([]);
    }
    for (const CORE_TOKEN of ['abc\nhunter2', ' hunter2', 'hunter2\u20ac', 'hunter2\u0001', 'hunter2\t']) {
      expect(findFaults({ CORE_TOKEN })).toEqual([expect.stringMatching(/^CORE_TOKEN must be (?!.*hunter2)/)]);
    }
    const short = 'hunter2'.padEnd(31, 'x');
    const fault = 'CORE_TOKEN must have at least 32 characters: openssl rand -hex 32 makes one';
    expect(findFaults({ CORE_TOKEN: short })).toEqual([fault]);
    expect(findFaults({ CORE_TOKEN_FILE: fileWith('short', `${short}\n`) })).toEqual([fault]);
  });
});

describe('the address of the database', () => {
  test('the database address is in DATABASE_URL, or in the file that DATABASE_URL_FILE names', () => {
    expect(readDatabaseUrl({ DATABASE_URL: 'sqlite:/var/lib/leads.db' }).reveal()).toBe('sqlite:/var/lib/leads.db');
    const DATABASE_URL_FILE = fileWith('database-url', 'sqlite:leads.db\n');
    expect(readDatabaseUrl({ DATABASE_URL_FILE }).reveal()).toBe('sqlite:leads.db');
  });

  test.each([
    ['mongodb://user:p/w@host', /is refused by the driver: /],
    ['mongodb+srv://user:hunter2@host.example:27017/x', /is refused by the driver: /],
    ['mongodb://user:%hunter2@db', /is refused by the driver: /],
    ['mongodb://user:a@hunter2@db', /is refused by the driver: /],
    ['leads.db', /must be/],
    ['SQLITE:leads.db', /must be/],
    ['sqlite::memory:', /must name a file/],
    ['sqlite:/x.db?mode=ro', /must name a file/],
    ['sqlite:file:x.db', /must name a file/],
    ['sqlite:~/leads.db', /has ~ or \$ in its path/],
    ['sqlite:$HOME/leads.db', /has ~ or \$ in its path/],
    ['sqlite:/srv/leads.db ', /has white space around the path/],
    ['sqlite: /srv/leads.db', /has white space around the path/],
  ])('refuses the database address %s without repeating its password', (DATABASE_URL, fault) => {
    expect(() => readDatabaseUrl({ DATABASE_URL })).toThrow(fault);
    expect(() => readDatabaseUrl({ DATABASE_URL })).not.toThrow(/hunter2/);
  });
});

test('gateways that share a port need Redis, because each would otherwise count alone', () => {
  expect(() => readGatewayConfig({ REUSE_PORT: 'yes' })).toThrow(/REUSE_PORT needs REDIS_URL/);
  expect(readGatewayConfig({ REUSE_PORT: 'yes', REDIS_URL: 'redis://localhost' }).REUSE_PORT).toBe(true);
});
