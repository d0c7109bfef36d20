import type { PlantedBug } from './planted-bug.ts';

const RENEWED = 'test/integration/renewed-certificates.test.ts';
const OLD_CONNECTIONS = 'test/integration/max-connection-age.test.ts';

/** Faults of draining connections and of reloading certificates. */
export const CONNECTION_BUGS: readonly PlantedBug[] = [
  {
    name: 'a gateway does not retry a call refused unprocessed',
    suite: OLD_CONNECTIONS,
    caughtBy: 'a gateway retries what a core refuses unprocessed on an old connection, and its callers see no error',
    patches: [
      {
        file: 'common/core-connection.ts',
        find: "cause.message.endsWith('NGHTTP2_REFUSED_STREAM')",
        put: 'cause.message === undefined',
      },
    ],
  },
  {
    name: 'a gateway keeps the certificates of its start',
    suite: RENEWED,
    caughtBy:
      'a gateway and a core get new authorities and certificates under load, step by step, and no request fails',
    patches: [
      {
        file: 'common/core-connection.ts',
        find: `{
      lookup: lookUpCore,
      get secureContext() {
        return credentials.secureContext;
      },
    }`,
        put: '{ lookup: lookUpCore, secureContext: credentials.secureContext }',
      },
    ],
  },
];
