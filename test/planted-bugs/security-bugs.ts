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
        file: 'gateway/core-connection.ts',
        find: `{
      get secureContext() {
        return credentials.secureContext;
      },
    }`,
        put: '{ rejectUnauthorized: false }',
      },
    ],
  },
  {
    name: 'a gateway sends its password to a Redis with an invalid certificate',
    suite: TLS,
    caughtBy: 'sends its password to no Redis of another authority, and admits no request',
    patches: [
      {
        file: 'gateway/quota/redis-client.ts',
        find: 'retryStrategy: () => RETRY_MS',
        put: 'retryStrategy: () => RETRY_MS, tls: { rejectUnauthorized: false }',
      },
    ],
    inSoak: true,
  },
  {
    name: 'the log has the headers of requests',
    suite: 'test/security/secrets.test.ts',
    caughtBy: 'of successful and of refused requests: as JSON',
    patches: [
      {
        file: 'gateway/plugins/request-observation.ts',
        find: 'requestId: request.id',
        put: 'requestId: request.id, headers: request.headers',
      },
    ],
    inSoak: true,
  },
  {
    name: 'the log has the bodies of requests',
    suite: 'test/security/secrets.test.ts',
    caughtBy: 'of successful and of refused requests: as JSON',
    patches: [
      {
        file: 'gateway/plugins/request-observation.ts',
        find: 'requestId: request.id',
        put: 'requestId: request.id, body: request.body',
      },
    ],
    inSoak: true,
  },
  {
    name: 'the core accepts a message of any length',
    suite: 'test/security/malformed-frames.test.ts',
    caughtBy: 'a message of the maximum length is accepted, and one that is a byte longer is refused for its length',
    patches: [{ file: 'src/server.ts', find: 'readMaxBytes: MAX_CALL_BYTES', put: '...{}' }],
    inSoak: true,
  },
  {
    name: 'a cursor of another studio is accepted',
    suite: 'test/security/isolation.test.ts',
    caughtBy: 'gets the response of the contract: listing leads with a cursor of another studio',
    patches: [
      {
        file: 'src/domain/token.ts',
        find: 'if (!checksum(scope, head).equals(bytes.subarray(-CHECKSUM_BYTES))) return undefined;',
        put: '',
      },
    ],
    inSoak: true,
  },
  {
    name: 'the log has the leads of an import',
    inSoak: true,
    suite: 'test/security/personal-data.test.ts',
    caughtBy: 'of any method that succeeds',
    patches: [{ file: 'src/rpc/observation.ts', find: 'leads: Number.isSafeInteger', put: 'leads: () => true' }],
  },
  {
    name: 'an error of a call in JSON quotes a value',
    suite: 'test/security/personal-data.test.ts',
    caughtBy: 'of any method that gets text in place of another type',
    patches: [{ file: 'src/rpc/safe-json.ts', find: 'fromJsonString(message, text, LENIENT);', put: '' }],
  },
  {
    name: 'a misspelt setting is ignored',
    suite: 'test/unit/setting-names.test.ts',
    caughtBy: 'the core refuses CORE_TOKENFILE, and names CORE_TOKEN_FILE',
    patches: [
      { file: 'common/settings.ts', find: 'misspeltSettings(variablesOf(table), env)', put: '([] as string[])' },
    ],
    inSoak: true,
  },
  {
    name: 'a blank token counts as none',
    suite: 'test/unit/setting-names.test.ts',
    caughtBy: 'when it is blank: core, CORE_TOKEN',
    patches: [{ file: 'common/settings.ts', find: 'setting.protects', put: 'false' }],
    inSoak: true,
  },
];
