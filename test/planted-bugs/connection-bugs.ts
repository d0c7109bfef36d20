import type { PlantedBug } from './planted-bug.ts';

const RENEWED = 'test/integration/renewed-certificates.test.ts';
const OLD_CONNECTIONS = 'test/integration/max-connection-age.test.ts';

/** Faults of draining connections and of reloading certificates. */
export const CONNECTION_BUGS: readonly PlantedBug[] = [
  {
    name: 'an old connection with one long-lived call is not drained until another call',
    suite: OLD_CONNECTIONS,
    caughtBy: 'long-lived calls are ended by the core, also without other calls, over HTTP/2',
    patches: [
      {
        file: 'src/http2/connection.ts',
        find: 'if (this.calls.size > 0) this.endByAge(2);',
        put: '',
      },
    ],
  },
  {
    name: 'a health watch keeps an old connection open',
    suite: OLD_CONNECTIONS,
    caughtBy: 'long-lived calls are ended by the core, also without other calls, over HTTP/1.1',
    patches: [
      {
        file: 'src/rpc/health-service.ts',
        find: 'AbortSignal.any([signal, ending, values.get(connectionDraining)])',
        put: 'AbortSignal.any([signal, ending])',
      },
    ],
    inSoak: true,
  },
  {
    name: 'the final GOAWAY of a draining connection is not sent',
    suite: OLD_CONNECTIONS,
    caughtBy:
      'is ended by GOAWAY with its next call, which gets its response; later streams are not processed, and the GOAWAY says so',
    patches: [
      {
        file: 'src/http2/connection.ts',
        find: 'if (!session.destroyed) session.goaway(constants.NGHTTP2_NO_ERROR);',
        put: '',
      },
    ],
    inSoak: true,
  },
  {
    name: 'an exchange keeps an old connection open',
    suite: OLD_CONNECTIONS,
    caughtBy: 'an exchange ends without an error, with all results; the next one uses another connection',
    patches: [
      {
        file: 'src/rpc/items.ts',
        find: 'AbortSignal.any([ending, signal, values.get(connectionDraining)])',
        put: 'AbortSignal.any([ending, signal])',
      },
    ],
  },
  {
    name: 'a gateway does not retry a call refused unprocessed',
    suite: OLD_CONNECTIONS,
    caughtBy: 'a gateway retries what a core refuses unprocessed on an old connection, and its callers see no error',
    patches: [
      {
        file: 'gateway/core-sessions.ts',
        find: "cause.message.endsWith('NGHTTP2_REFUSED_STREAM')",
        put: 'cause.message === undefined',
      },
    ],
  },
  {
    name: 'a watched file is loaded while it is still changing',
    suite: 'test/unit/watched-files.test.ts',
    caughtBy: 'files written in two steps are loaded once, when they are complete',
    patches: [
      {
        file: 'common/watched-files.ts',
        find: 'if (!isDeepStrictEqual(this.#found, before)) return;',
        put: '',
      },
    ],
  },
  {
    name: 'a certificate that is not yet valid is used',
    suite: RENEWED,
    caughtBy: 'by one that is not yet valid leaves the former in use',
    patches: [{ file: 'common/tls-credentials.ts', find: 'from.getTime() > Date.now()', put: 'from === to' }],
    inSoak: true,
  },
  {
    name: 'a gateway keeps the certificates of its start',
    suite: RENEWED,
    caughtBy:
      'a gateway and a core get new authorities and certificates under load, step by step, and no request fails',
    patches: [
      {
        file: 'gateway/core-connection.ts',
        find: `{
      get secureContext() {
        return credentials.secureContext;
      },
    }`,
        put: '{ secureContext: credentials.secureContext }',
      },
    ],
  },
];
