import type { PlantedBug } from './planted-bug.ts';

const TLS = 'test/security/tls.test.ts';

/** Faults that let somebody see what is not theirs. */
export const SECURITY_BUGS: readonly PlantedBug[] = [
  {
    name: 'a gateway tells its token to whoever answers at the address of the core',
    suite: TLS,
    caughtBy: 'of another authority',
    patches: [
      {
        file: 'gateway/core-connection.ts',
        find: '...(CORE_CA_FILE && { ca: CORE_CA_FILE }),',
        put: 'rejectUnauthorized: false,',
      },
    ],
  },
  {
    name: 'a gateway tells its password to whoever answers at the address of Redis',
    suite: TLS,
    caughtBy: 'tells its password to none of another authority, and lets nobody in',
    patches: [
      {
        file: 'gateway/quota/redis-client.ts',
        find: 'retryStrategy: () => RETRY_MS,\n    // A command',
        put: 'retryStrategy: () => RETRY_MS,\n    tls: { rejectUnauthorized: false },\n    // A command',
      },
    ],
    inSoak: true,
  },
  {
    name: 'the log has what a request is sent with',
    suite: 'test/security/secrets.test.ts',
    caughtBy: 'when all goes well, and when callers do what is wrong: for machines',
    patches: [
      {
        file: 'gateway/plugins/request-observation.ts',
        find: 'requestId: request.id,',
        put: 'requestId: request.id, headers: request.headers,',
      },
    ],
    inSoak: true,
  },
  {
    name: 'the log has what a lead is made of',
    suite: 'test/security/secrets.test.ts',
    caughtBy: 'when all goes well, and when callers do what is wrong: for machines',
    patches: [
      {
        file: 'gateway/plugins/request-observation.ts',
        find: 'requestId: request.id,',
        put: 'requestId: request.id, body: request.body,',
      },
    ],
    inSoak: true,
  },
];
