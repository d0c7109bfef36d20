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

const table = {
  HOST: { parse: text, fallback: 'localhost' },
  PORT: { parse: port, fallback: '80' },
  TOKEN: { parse: bearerToken, fromFile: true },
  MODE: { parse: oneOf('fast', 'safe'), fallback: 'safe' },
} as const;

function faultsOf(env: Environment): readonly string[] {
  try {
    readSettings(table, env);
  } catch (error) {
    if (error instanceof SettingsError) return error.faults;
    throw error;
  }
  return [];
}

describe('settings', () => {
  test('have their defaults when they are unset or empty, and no value without one', () => {
    for (const env of [{}, { HOST: '', PORT: '', TOKEN: '', TOKEN_FILE: '', MODE: '' }]) {
      expect(readSettings(table, env)).toEqual({ HOST: 'localhost', PORT: 80, MODE: 'safe' });
    }
  });

  test('report all faults together, without a secret', () => {
    const env = { PORT: '70000', MODE: 'slow', TOKEN: 'hunter2', TOKEN_FILE: '/nowhere' };

    expect(faultsOf(env)).toEqual([
      'PORT must be a whole number from 0 to 65535',
      'TOKEN is set, and TOKEN_FILE too: set one of them',
      'MODE must be one of fast, safe',
    ]);
    expect(() => readSettings(table, env)).toThrow(/3 faults:\n {2}- PORT .*\n {2}- TOKEN .*\n {2}- MODE .*$/);
  });
});

describe('a setting in a file', () => {
  test('has the contents of the file, without the final line end', () => {
    for (const contents of [TOKEN, `${TOKEN}\r\n`, ` ${TOKEN} \n\n`]) {
      expect(readSettings(table, { TOKEN: '', TOKEN_FILE: fileWith(contents) }).TOKEN?.reveal()).toBe(TOKEN);
    }
  });

  test('must be readable, and the fault names the file', () => {
    const missing = join(folder(), 'missing');

    expect(faultsOf({ TOKEN_FILE: missing })).toEqual([`TOKEN names a file that cannot be read: ${missing} (ENOENT)`]);
    expect(faultsOf({ TOKEN_FILE: folder() })).toEqual([
      `TOKEN names a file that cannot be read: ${folder()} (EISDIR)`,
    ]);
  });

  test('that is empty is never an empty secret', () => {
    for (const contents of ['', ' \r\n']) {
      const env = { TOKEN_FILE: fileWith(contents) };
      // Either a fault or unset, so that no service uses the empty text as its secret.
      if (faultsOf(env).length === 0) expect(readSettings(table, env).TOKEN).toBeUndefined();
    }
  });
});

test('a secret is not revealed by printing it, or the settings that have it', () => {
  const hidden = new Secret('hunter2');
  const settings = readSettings(table, { TOKEN });
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

  test('file returns the unchanged contents, and does not print them', () => {
    const path = fileWith(' a\n');
    expect(file(path).path).toBe(path);
    expect(file(path).contents.reveal()).toBe(' a\n');
    expect(inspect(file(path))).not.toContain(' a\n');
    expect(() => file(join(folder(), 'missing'))).toThrow(/cannot be read/);
  });

  test('isLoopback is true for addresses that others cannot reach', () => {
    const [loopback, others] = [
      ['localhost', '127.0.0.1', '127.1.2.3', '::1'],
      ['0.0.0.0', '::', '', '10.0.0.1', '127.0.0.1.example.org', '128.0.0.1', 'localhost.example.org', '::2'],
    ];
    expect(loopback.filter((host) => !isLoopback(host))).toEqual([]);
    expect(others.filter(isLoopback)).toEqual([]);
  });
});
