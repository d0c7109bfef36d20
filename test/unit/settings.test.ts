import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../common/secret.ts';
import {
  bearerToken,
  type Environment,
  file,
  httpUrl,
  integer,
  isLoopback,
  oneOf,
  port,
  readSettings,
  SettingsError,
  text,
} from '../../common/settings.ts';
import { sharedFolder } from '../tools/processes.ts';

const folder = sharedFolder();

function fileWith(contents: string): string {
  const path = join(folder(), `${process.hrtime.bigint()}`);
  writeFileSync(path, contents);
  return path;
}

/** A token of the minimum length. */
const TOKEN = 'secret'.padEnd(32, '.');

const parsers = { CORE_HOST: text, CORE_PORT: port, CORE_TOKEN: bearerToken, LOG_LEVEL: oneOf('warn', 'info') };

function findFaults(env: Environment): readonly string[] {
  try {
    readSettings(parsers, env);
  } catch (error) {
    if (error instanceof SettingsError) return error.faults;
    throw error;
  }
  return [];
}

describe('settings', () => {
  test('settings that are unset or empty have their defaults, or no value', () => {
    for (const env of [{}, { CORE_HOST: '', CORE_PORT: '', LOG_LEVEL: '' }]) {
      expect(readSettings(parsers, env)).toEqual({ CORE_HOST: '127.0.0.1', CORE_PORT: 50_051, LOG_LEVEL: 'info' });
    }
  });

  test('all faults of settings are reported together, without a secret', () => {
    const env = { CORE_PORT: '70000', LOG_LEVEL: 'slow', CORE_TOKEN: 'hunter2', CORE_TOKEN_FILE: '/nowhere' };

    expect(findFaults(env)).toEqual([
      'CORE_PORT must be a whole number from 0 to 65535',
      'CORE_TOKEN is set, and CORE_TOKEN_FILE too: set one of them',
      'LOG_LEVEL must be one of warn, info',
    ]);
    expect(() => readSettings(parsers, env)).toThrow(
      /3 faults:\n {2}- CORE_PORT .*\n {2}- CORE_TOKEN .*\n {2}- LOG_LEVEL .*$/,
    );
  });
});

describe('a setting in a file', () => {
  test('a setting in a file has the contents of the file without the final line end', () => {
    for (const contents of [TOKEN, `${TOKEN}\r\n`, ` ${TOKEN} \n\n`]) {
      expect(readSettings(parsers, { CORE_TOKEN: '', CORE_TOKEN_FILE: fileWith(contents) }).CORE_TOKEN?.reveal()).toBe(
        TOKEN,
      );
    }
  });

  test("a setting's file must be readable, and the fault names the file", () => {
    const missing = join(folder(), 'missing');

    expect(findFaults({ CORE_TOKEN_FILE: missing })).toEqual([
      `CORE_TOKEN names a file that cannot be read: ${missing} (ENOENT)`,
    ]);
    expect(findFaults({ CORE_TOKEN_FILE: folder() })).toEqual([
      `CORE_TOKEN names a file that cannot be read: ${folder()} (EISDIR)`,
    ]);
  });

  test('an empty file is never an empty secret', () => {
    for (const contents of ['', ' \r\n']) {
      const env = { CORE_TOKEN_FILE: fileWith(contents) };
      // The setting is at fault or unset, so no service uses the empty text as its secret.
      if (findFaults(env).length === 0) expect(readSettings(parsers, env).CORE_TOKEN).toBeUndefined();
    }
  });
});

test('printing a secret, or settings that contain it, does not reveal it', () => {
  const hidden = new Secret('hunter2');
  const settings = readSettings(parsers, { CORE_TOKEN: TOKEN });
  const printed = [
    ...[true, false].map((customInspect) => inspect(hidden, { showHidden: true, depth: null, customInspect })),
    inspect({ a: [hidden], b: new Map([[hidden, hidden]]) }, { depth: null }),
    format('%s %o %O %j %d', hidden, hidden, hidden, hidden, hidden),
    JSON.stringify({ hidden, list: [hidden] }),
    `${hidden}`,
    [hidden, hidden].join(),
    JSON.stringify([Object.entries(hidden), Object.getOwnPropertyNames(hidden)]),
    inspect([{ ...hidden }, structuredClone(hidden)]),
    inspect(new Error(`failed with ${hidden}`, { cause: hidden })),
    inspect(settings, { depth: null }),
    JSON.stringify(settings),
  ];
  expect(hidden.reveal()).toBe('hunter2');
  expect(printed.filter((text) => text.includes('hunter2') || text.includes(TOKEN))).toEqual([]);
});

describe('parsers', () => {
  test('integer accepts decimal digits within its bounds', () => {
    for (const value of ['1', '10', '007']) expect(integer(1, 10)(value)).toBe(Number(value));
    for (const value of ['0', '11', '-1', '+1', '1.0', '1e1', '0x5', ' 5', '5\n', '٥', '', 'NaN', '9'.repeat(400)]) {
      expect(() => integer(1, 10)(value), value).toThrow('must be a whole number from 1 to 10');
    }
  });

  test('httpUrl accepts an address without credentials, query and fragment', () => {
    expect(httpUrl('HTTPS://EXAMPLE.org:443/api//')).toBe('https://example.org/api');
    expect(httpUrl('http://[::1]:8080')).toBe('http://[::1]:8080');
    for (const value of ['example.org', '//a', 'ftp://a', 'javascript:alert(1)', 'http://', 'http://user@a']) {
      expect(() => httpUrl(value), value).toThrow(/must be an http/);
    }
    for (const value of ['http://a/?a=b', 'http://a/#a', 'http://a/?', 'http://a/#']) {
      expect(() => httpUrl(value), value).toThrow(/must be an http/);
    }
  });

  test('file returns the unchanged contents and does not print them', () => {
    const path = fileWith(' a\n');
    expect(file(path).path).toBe(path);
    expect(file(path).contents.reveal()).toBe(' a\n');
    expect(inspect(file(path))).not.toContain(' a\n');
    expect(() => file(join(folder(), 'missing'))).toThrow(/cannot be read/);
  });

  test('isLoopback is true exactly for addresses that others cannot reach', () => {
    const [loopback, others] = [
      ['localhost', '127.0.0.1', '127.1.2.3', '::1'],
      ['0.0.0.0', '::', '', '10.0.0.1', '127.0.0.1.example.org', '128.0.0.1', 'localhost.example.org', '::2'],
    ];
    expect(loopback.filter((host) => !isLoopback(host))).toEqual([]);
    expect(others.filter(isLoopback)).toEqual([]);
  });
});
