import { describe, expect, test } from 'vitest';
import {
  type CallerEntries,
  canonicalSubject,
  MAX_NAMED_CALLERS,
  parseCallers,
  tokenHash,
} from '../../src/callers-file.ts';
import { times } from '../support/builders.ts';

const aToken = (seed = 'a') => ({ sha256: tokenHash(seed) });
const writeFileWith = (callers: unknown) => JSON.stringify({ callers });
const findFault = (text: string) => {
  try {
    parseCallers(text);
  } catch (error) {
    return (error as Error).message;
  }
  return undefined;
};

test('a callers file lists callers and their permissions', () => {
  const callers: CallerEntries = {
    website: { may: ['gateway'], tokens: [{ ...aToken(), created: '2026-11-23' }, aToken('b')] },
    'crm-1.berlin': {
      may: ['crm', 'operator'],
      studios: ['studio_1'],
      certificateSubject: { CN: 'crm', OU: ['a', 'b'] },
    },
    relay: { may: ['feed', 'read'], consumers: ['relay', 'reporting'] },
    unused: { may: ['read'] },
  };
  expect(parseCallers(writeFileWith(callers))).toEqual(callers);
  expect(parseCallers(writeFileWith({}))).toEqual({});
});

describe('an invalid callers file is reported in full, without its contents', () => {
  test.each<[fault: RegExp, text: string]>([
    [/^is not JSON$/, 'website: secret'],
    [/the file must be object/, '[]'],
    [/the file must NOT have additional properties/, '{"callers":{},"caller":{}}'],
    [/website must NOT have additional properties/, writeFileWith({ website: { may: ['read'], token: 'secret' } })],
    [/website\/may must NOT have fewer than 1 items/, writeFileWith({ website: { may: [] } })],
    [
      /website\/may\/1 must be one of gateway, read, feed, crm, operator/,
      writeFileWith({ website: { may: ['read', 'secret'] } }),
    ],
    [/website\/studios\/0 must match pattern/, writeFileWith({ website: { may: ['read'], studios: ['a secret'] } })],
    [
      /website\/tokens\/0\/sha256 must match pattern/,
      writeFileWith({ website: { may: ['read'], tokens: [{ sha256: 'secret' }] } }),
    ],
    [
      /website\/consumers\/0 must match pattern/,
      writeFileWith({ website: { may: ['feed'], consumers: ['a secret'] } }),
    ],
    [/must list consumers for website, which has the role feed/, writeFileWith({ website: { may: ['feed'] } })],
    [
      /lists consumers for website, which lacks the role feed/,
      writeFileWith({ website: { may: ['crm'], consumers: ['relay'] } }),
    ],
    [/^has website twice/, '{"callers":{"website":{"may":["read"]},"\\u0077ebsite" : {"may":["crm"]}}}'],
    [/^has may twice/, '{"callers":{"website":{"may":["read"],"may":["crm"]}}}'],
    [
      /^has CN twice/,
      '{"callers":{"website":{"may":["read"],"certificateSubject":{"CN":"a \\" } b","OU":"{","CN":"secret"}}}}',
    ],
    [/names have 1 to 63 of a to z/, writeFileWith({ 'a Secret': { may: ['read'] } })],
    [
      /for a and for b$/,
      writeFileWith({ a: { may: ['read'], tokens: [aToken()] }, b: { may: ['read'], tokens: [aToken()] } }),
    ],
    [
      /for a and for b$/,
      writeFileWith({
        a: { may: ['read'], certificateSubject: { CN: 'x', O: 'y' } },
        b: { may: ['read'], certificateSubject: { O: 'y', CN: 'x' } },
      }),
    ],
    [
      /the file must NOT have more than 500 properties|callers must NOT have more than 500 properties/,
      writeFileWith(Object.fromEntries(times(MAX_NAMED_CALLERS + 1, (number) => [`c${number}`, { may: ['read'] }]))),
    ],
  ])('an invalid callers file is refused without its contents: %s', (fault, text) => {
    expect(findFault(text)).toMatch(fault);
    expect(findFault(text)).not.toMatch(/secret/i);
  });

  test('all faults of a callers file are reported', () => {
    const faults = findFault(writeFileWith({ a: { may: [] }, b: { may: ['read'], tokens: [{}] } }));
    expect(faults).toMatch(/a\/may .*; b\/tokens\/0 must have required property 'sha256'/);
  });

  test('a caller named like a property of objects is not special', () => {
    expect(findFault('{"callers":{"__proto__":{"may":["operator"]}}}')).toMatch(/names have/);
    expect(parseCallers(writeFileWith({ constructor: { may: ['read'] } }))).toEqual({ constructor: { may: ['read'] } });
  });
});

test('certificate subjects are equal in any order of attributes, and differ in anything else', () => {
  expect(canonicalSubject({ CN: 'a', O: 'b' })).toBe(canonicalSubject({ O: 'b', CN: 'a' }));
  const others = [
    { CN: 'a' },
    { CN: 'a', O: 'c' },
    { CN: 'a', O: ['b', 'b'] },
    { CN: 'aO', b: '' },
    { CN: 'b', O: 'a' },
  ];
  for (const other of others) expect(canonicalSubject(other)).not.toBe(canonicalSubject({ CN: 'a', O: 'b' }));
});
