import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { format, inspect } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
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

const folder = mkdtempSync(join(tmpdir(), 'lead-intake-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function fileWith(contents: string): string {
  const path = join(folder, `${process.hrtime.bigint()}`);
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
  test('have their defaults when nothing is set, and no value without one', () => {
    expect(readSettings(table, {})).toEqual({ HOST: 'localhost', PORT: 80, MODE: 'safe' });
  });

  test('are read from the environment', () => {
    const settings = readSettings(table, { HOST: 'h', PORT: '1', TOKEN, MODE: 'fast', OTHER: 'x' });

    expect({ ...settings, TOKEN: settings.TOKEN?.reveal() }).toEqual({ HOST: 'h', PORT: 1, TOKEN, MODE: 'fast' });
  });

  test('that are empty are unset', () => {
    expect(readSettings(table, { HOST: '', PORT: '', TOKEN: '', TOKEN_FILE: '', MODE: '' })).toEqual(
      readSettings(table, {}),
    );
  });

  test('report all faults together', () => {
    const env = { PORT: '70000', MODE: 'slow', TOKEN: 't', TOKEN_FILE: '/nowhere' };

    expect(faultsOf(env)).toEqual([
      'PORT must be a whole number from 0 to 65535',
      'TOKEN is set, and TOKEN_FILE too: set one of them',
      'MODE must be one of fast, safe',
    ]);
    expect(() => readSettings(table, env)).toThrow(/3 faults:\n {2}- PORT .*\n {2}- TOKEN .*\n {2}- MODE .*$/);
  });

  test('are checked by a rule between them, which reports all faults together', () => {
    const faults = ['A needs B', 'C needs D'];
    const rule = ({ HOST, PORT }: { HOST: string; PORT: number }) => (HOST === 'h' && PORT === 1 ? faults : []);

    expect(() => readSettings(table, { HOST: 'h', PORT: '1' }, rule)).toThrow(
      expect.objectContaining({ name: 'SettingsError', faults }),
    );
    expect(() => readSettings(table, { HOST: 'h', PORT: '2' }, rule)).not.toThrow();
  });
});

describe('a setting in a file', () => {
  test('has the contents of the file, without the final line end', () => {
    for (const contents of [TOKEN, `${TOKEN}\n`, `${TOKEN}\r\n`, ` ${TOKEN} \n\n`]) {
      expect(readSettings(table, { TOKEN_FILE: fileWith(contents) }).TOKEN?.reveal()).toBe(TOKEN);
    }
  });

  test('replaces an empty one in the environment', () => {
    expect(readSettings(table, { TOKEN: '', TOKEN_FILE: fileWith(TOKEN) }).TOKEN?.reveal()).toBe(TOKEN);
  });

  test('cannot be combined with one in the environment', () => {
    expect(faultsOf({ TOKEN: 'a', TOKEN_FILE: fileWith('a') })).toEqual([
      'TOKEN is set, and TOKEN_FILE too: set one of them',
    ]);
  });

  test('must be readable, and the fault names the file', () => {
    const missing = join(folder, 'missing');

    expect(faultsOf({ TOKEN_FILE: missing })).toEqual([`TOKEN names a file that cannot be read: ${missing} (ENOENT)`]);
    expect(faultsOf({ TOKEN_FILE: folder })).toEqual([`TOKEN names a file that cannot be read: ${folder} (EISDIR)`]);
  });

  test('that is empty is never an empty secret', () => {
    for (const contents of ['', '\n', ' \r\n']) {
      const env = { TOKEN_FILE: fileWith(contents) };
      // Either a fault or unset, so that no service uses the empty text as its secret.
      if (faultsOf(env).length === 0) expect(readSettings(table, env).TOKEN).toBeUndefined();
    }
  });

  test('is read only where the table allows it', () => {
    expect(faultsOf({ HOST_FILE: fileWith('elsewhere') })).toEqual([
      'HOST_FILE is not a setting: rename it to HOST, or remove it',
    ]);
  });
});

describe('secrets', () => {
  const hidden = new Secret('hunter2');
  const prints: [string, () => string][] = [
    ['inspect', () => inspect(hidden)],
    ['inspect with everything shown', () => inspect(hidden, { showHidden: true, depth: null, customInspect: true })],
    [
      'inspect without its own printing',
      () => inspect(hidden, { showHidden: true, depth: null, customInspect: false }),
    ],
    ['inspect inside of something', () => inspect({ a: [hidden], b: new Map([[hidden, hidden]]) }, { depth: null })],
    ['format', () => format('%s %o %O %j %d', hidden, hidden, hidden, hidden, hidden)],
    ['JSON', () => JSON.stringify({ hidden, list: [hidden] })],
    ['a template', () => `${hidden}`],
    ['adding to a text', () => `a${String(hidden)}`],
    ['String', () => String(hidden)],
    ['a list', () => [hidden, hidden].join()],
    ['its properties', () => JSON.stringify([Object.entries(hidden), Object.getOwnPropertyNames(hidden)])],
    ['a copy', () => inspect([{ ...hidden }, structuredClone(hidden)])],
    ['an error', () => inspect(new Error(`failed with ${hidden}`, { cause: hidden }))],
  ];

  test.each(prints)('are not revealed by %s', (_, print) => expect(print()).not.toContain('hunter2'));

  test('are not revealed by the settings that contain them', () => {
    const settings = readSettings(table, { TOKEN });

    expect(settings.TOKEN?.reveal()).toBe(TOKEN);
    expect(inspect(settings, { depth: null }) + JSON.stringify(settings)).not.toContain(TOKEN);
  });

  test('are not revealed by a fault', () => {
    expect(faultsOf({ TOKEN: 'hunter2', TOKEN_FILE: '/nowhere' }).join()).not.toContain('hunter2');
  });
});

describe('parsers', () => {
  test.each(['1', '10', '007', '5'])('integer accepts %s', (value) =>
    expect(integer(1, 10)(value)).toBe(Number(value)),
  );

  test.each([
    '0',
    '11',
    '-1',
    '+1',
    '1.0',
    '1e1',
    '0x5',
    ' 5',
    '5 ',
    '5\n',
    '٥',
    '',
    'five',
    'NaN',
    'Infinity',
    '9'.repeat(400),
  ])('integer refuses %j', (value) =>
    expect(() => integer(1, 10)(value)).toThrow('must be a whole number from 1 to 10'),
  );

  test.each(['fast', 'safe'])('oneOf accepts %s', (value) => expect(oneOf('fast', 'safe')(value)).toBe(value));
  test.each(['Fast', 'fast ', '', 'toString'])('oneOf refuses %j', (value) => {
    expect(() => oneOf('fast', 'safe')(value)).toThrow('must be one of fast, safe');
  });

  test.each([
    ['http://example.org', 'http://example.org'],
    ['https://example.org/', 'https://example.org'],
    ['HTTPS://EXAMPLE.org:443/api//', 'https://example.org/api'],
    ['http://[::1]:8080', 'http://[::1]:8080'],
  ])('httpUrl accepts %s', (value, url) => expect(httpUrl(value)).toBe(url));

  test.each([
    'example.org',
    '//example.org',
    'ftp://example.org',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'http://',
    'http://user@example.org',
    'http://user:password@example.org',
    'http://example.org/?a=b',
    'http://example.org/#a',
    'http://example.org/?',
    'http://example.org/#',
  ])('httpUrl refuses %s', (value) => expect(() => httpUrl(value)).toThrow(/must be an http/));

  test('file returns the unchanged contents, and does not print them', () => {
    const path = fileWith(' a\n');
    expect(file(path).path).toBe(path);
    expect(file(path).contents.reveal()).toBe(' a\n');
    expect(inspect(file(path))).not.toContain(' a\n');
    expect(() => file(join(folder, 'missing'))).toThrow(/cannot be read/);
  });

  test.each(['localhost', '127.0.0.1', '127.1.2.3', '::1'])('isLoopback is true for %s', (host) => {
    expect(isLoopback(host)).toBe(true);
  });

  test.each([
    '0.0.0.0',
    '::',
    '',
    '10.0.0.1',
    '127.0.0.1.example.org',
    '128.0.0.1',
    'localhost.example.org',
    '::2',
    'core',
  ])('isLoopback is false for %j', (host) => expect(isLoopback(host)).toBe(false));
});
