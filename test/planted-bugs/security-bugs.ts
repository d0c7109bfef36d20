import type { PlantedBug } from './planted-bug.ts';

const TLS = 'test/security/tls.test.ts';

/** Faults that disclose data or secrets. */
export const SECURITY_BUGS: readonly PlantedBug[] = [
  {
    name: 'a gateway sends its token to a core with an invalid certificate',
    suite: TLS,
    caughtBy: 'of another authority',
    patches: [
      {
        file: 'common/core-connection.ts',
        find: `{
      lookup: lookUpCore,
      get secureContext() {
        return credentials.secureContext;
      },
    }`,
        put: '{ lookup: lookUpCore, rejectUnauthorized: false }',
      },
    ],
  },
  {
    name: 'the id of a request may have a secret',
    suite: 'test/security/secrets.test.ts',
    caughtBy: 'of successful and of refused requests',
    patches: [{ file: 'common/rules/public-api.ts', find: '!hasSecretForm(text)', put: 'true' }],
  },
  {
    name: 'a core does not read a changed token',
    suite: 'test/e2e/callers.test.ts',
    caughtBy: 'the token that core and gateway share is changed, at the gateway first, and no request fails',
    patches: [
      { file: 'src/rpc/callers.ts', find: 'this.#shared.set(hash, known(ANY_CALLER))', put: 'this.#newest = hash' },
    ],
  },
  {
    name: 'a gateway takes the refusal of one of its tokens for that of its requests',
    suite: 'test/integration/replaced-token.test.ts',
    caughtBy: 'all first calls of a gateway to a core with the former token succeed, and each is executed once',
    patches: [
      {
        file: 'gateway/core/exchange-calls.ts',
        find: 'error && token.findReplacement(authorization, error) === undefined',
        put: 'error',
      },
    ],
  },
];
