import { expect, test } from 'vitest';
import { parseEndpoints } from '../../relay/endpoints-file.ts';
import { parseCallers, tokenHash } from '../../src/callers-file.ts';

/** An address, a secret and a token, each of which may be in the wrong place. */
const CANARIES = [
  'https://crm.example/hooks/Canary?key=1',
  'whsec_CanaryQ9r8GKYqrTwjUPD8ILPZIo2LaLwS=',
  'lic_Canary23456789abcdefghijkLMNOPQRSTUVwxyz',
];

const FILES = {
  endpoints: {
    parse: parseEndpoints,
    good: {
      endpoints: {
        crm: { url: 'https://a.example', secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLwSw'], kinds: ['created'] },
      },
    },
  },
  callers: {
    parse: parseCallers,
    good: {
      callers: {
        crm: {
          may: ['feed'],
          consumers: ['crm'],
          tokens: [{ sha256: tokenHash('a') }],
          certificateSubject: { CN: 'a' },
        },
      },
    },
  },
};

/** Stands for a second property of the same name, which only the text of a file can have. */
const TWIN = 'twin';

/** Yields variants of a value in which `other` replaces one value or one name, or is added. */
function* misplaced(value: unknown, other: string): Generator<unknown> {
  yield other;
  if (Array.isArray(value)) {
    yield [...value, other];
    for (const [index, each] of value.entries())
      for (const variant of misplaced(each, other)) yield value.with(index, variant);
  } else if (typeof value === 'object' && value !== null) {
    yield { ...value, [other]: other };
    yield { ...value, [other]: 1, [TWIN]: 1 };
    for (const [name, each] of Object.entries(value)) {
      const { [name as never]: _, ...others } = value;
      yield { ...others, [other]: each };
      yield { ...others, [other]: {} };
      for (const variant of misplaced(each, other)) yield { ...value, [name]: variant };
    }
  }
}

// @proves relay-10
test.each(Object.entries(FILES))(
  'no fault of the %s file quotes an address, a secret or a token, wherever it is',
  (_, file) => {
    let faults = 0;
    for (const canary of CANARIES) {
      for (const variant of misplaced(file.good, canary)) {
        try {
          file.parse(JSON.stringify(variant).replace(TWIN, canary));
        } catch (error) {
          faults += 1;
          expect((error as Error).message).not.toMatch(/canary/i);
        }
      }
    }
    expect(faults).toBeGreaterThan(40);
  },
);
