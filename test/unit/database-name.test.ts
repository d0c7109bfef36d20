import { describe, expect, test } from 'vitest';
import { databaseNameIn, mongoUrlFault } from '../../src/store/mongo/database-name.ts';

const HOSTS = ['a,b:27018,c', 'u:p%2Fw@h', '[::1]:27017', '%2Ftmp%2Fx.sock'];

/** Options with each character that could be mistaken for the start of a path. */
const OPTIONS = ['', '?appName=a', '?tls=true&tlsCAFile=/etc/ssl/ca.pem', '?appName=a%2Fb', '?appName=http://x/y?z'];

/** Addresses of both schemes, each with all options. */
const ADDRESSES = OPTIONS.flatMap((options) => [
  ...HOSTS.map((host) => [`mongodb://${host}`, options] as const),
  ['mongodb+srv://leads.example.org', options] as const,
]);

// @proves crashes-36 mongodb-8
describe('the database of an address', () => {
  test.each(ADDRESSES)('the database is the one the address names, or lead-intake: %s/NAME%s', (server, options) => {
    for (const path of ['', '/', '/test', '/te%73t', '/a%25b', '/%C3%A4', `/${'ä'.repeat(31)}x`]) {
      const name = decodeURIComponent(path.slice(1)) || 'lead-intake';
      expect(databaseNameIn(`${server}${path}${options}`)).toBe(name);
      expect(mongoUrlFault(`${server}${path}${options}`)).toBeUndefined();
    }
  });

  const impossible = [
    ...[...'/\\. "$*<>:|?\0'].map((character) => `my${encodeURIComponent(character)}db`),
    ...['admin', 'config', 'local', 'Admin'],
    'x'.repeat(64),
    'ä'.repeat(32),
    ...['my.db', 'a/b', '/leads', 'leads/', '%'],
  ];

  test.each(impossible)('an address with an impossible database name is refused without repeating it: %s', (name) => {
    for (const options of OPTIONS) {
      const fault = mongoUrlFault(`mongodb://crm:secret@h/${name}${options}`);
      expect(fault).toMatch(/^(?:names|is refused by) /);
      expect(fault).not.toContain('secret');
      if (name.length > 2) expect(fault).not.toContain(name);
    }
  });
});
