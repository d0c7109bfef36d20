import type { PlantedBug } from './planted-bug.ts';

const TLS = 'test/security/tls.test.ts';

/** Faults that disclose data or secrets. */
export const SECURITY_BUGS: readonly PlantedBug[] = [
  {
    name: 'a gateway sends its token to a core with an invalid certificate',
    suite: TLS,
    caughtBy: 'a gateway sends nothing to a core of another authority',
    patches: [
      {
        file: 'common/core-connection.ts',
        find: `{
      lookup: lookUpCore,
      get secureContext() {
        return credentials.loaded.secureContext;
      },
    }`,
        put: '{ lookup: lookUpCore, rejectUnauthorized: false }',
      },
    ],
  },
  {
    name: 'a request id may contain a secret',
    suite: 'test/security/secrets.test.ts',
    caughtBy: 'logs and errors of successful and refused requests have no secret and no personal data',
    patches: [{ file: 'common/rules/public-api.ts', find: '!hasSecretForm(text)', put: 'true' }],
  },
  {
    name: 'a core does not read a changed token',
    suite: 'test/e2e/callers.test.ts',
    caughtBy: 'no request fails while the shared token is changed, first at the gateway',
    patches: [
      {
        file: 'src/rpc/callers.ts',
        find: '!this.#known.has(hash) && !this.#shared.has(hash)',
        put: 'this.#shared.size === 0',
      },
    ],
  },
  {
    name: 'a gateway takes the refusal of its token for a refusal of its requests',
    suite: 'test/integration/replaced-token.test.ts',
    caughtBy: 'all first calls of a gateway to a core with the former token succeed, each executed once',
    patches: [
      {
        file: 'gateway/core/exchange-calls.ts',
        find: 'error && token.findReplacement(authorization, error) === undefined',
        put: 'error',
      },
    ],
  },
];
