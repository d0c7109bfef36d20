import { describe, expect, test } from 'vitest';
import { databaseNameIn, mongoUrlFault } from '../../src/store/mongo/database-name.ts';
import { times } from '../support/builders.ts';

const HOSTS = ['h', 'a,b:27018,c', 'u:p%2Fw@h', '[::1]:27017', '%2Ftmp%2Fx.sock'];

/** Options with each character that could be taken for the start of a path. */
const OPTIONS = ['', '?appName=a', '?tls=true&tlsCAFile=/etc/ssl/ca.pem', '?appName=a%2Fb', '?appName=http://x/y?z'];

/** Every place of options, behind every host, for both schemes. */
const ADDRESSES = OPTIONS.flatMap((options) => [
  ...HOSTS.map((host) => [`mongodb://${host}`, options] as const),
  ['mongodb+srv://leads.example.org', options] as const,
]);

// @proves crashes-36 mongodb-8
describe('the database of an address', () => {
  test.each(ADDRESSES)('without a name is lead-intake: %s%s', (server, options) => {
    for (const path of ['', '/']) {
      expect(databaseNameIn(`${server}${path}${options}`)).toBe('lead-intake');
      expect(mongoUrlFault(`${server}${path}${options}`)).toBeUndefined();
    }
  });

  test.each(ADDRESSES)(
    'is the one that it names, also when that is the default of the driver: %s/NAME%s',
    (server, options) => {
      for (const name of ['leads', 'test', 'te%73t', 'lead-intake', 'a%25b', '%C3%A4', 'x'.repeat(63)]) {
        expect(databaseNameIn(`${server}/${name}${options}`)).toBe(decodeURIComponent(name));
        expect(mongoUrlFault(`${server}/${name}${options}`)).toBeUndefined();
      }
    },
  );

  const impossible = [
    ...[...'/\\. "$*<>:|?\0'].map((character) => `my${encodeURIComponent(character)}db`),
    ...['admin', 'config', 'local', 'Admin'],
    'x'.repeat(64),
    'ä'.repeat(32),
    ...['my.db', 'a/b', '/leads', 'leads/', '%'],
  ];

  test.each(impossible)('that cannot exist is a fault, which does not repeat the address: %s', (name) => {
    for (const options of OPTIONS) {
      const fault = mongoUrlFault(`mongodb://crm:secret@h/${name}${options}`);
      expect(fault).toMatch(/^(?:names|is refused by) /);
      expect(fault).not.toContain('secret');
      if (name.length > 2) expect(fault).not.toContain(name);
    }
  });

  test('has as many bytes as MongoDB allows, not characters', () => {
    expect(mongoUrlFault(`mongodb://h/${times(31, () => 'ä').join('')}x`)).toBeUndefined();
  });
});
