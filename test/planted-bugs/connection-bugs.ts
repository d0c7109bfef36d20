import type { PlantedBug } from './planted-bug.ts';

const RENEWED = 'test/integration/renewed-certificates.test.ts';
const OLD_CONNECTIONS = 'test/integration/max-connection-age.test.ts';

/** Faults of connections that are left, and of certificates that are read again. */
export const CONNECTION_BUGS: readonly PlantedBug[] = [
  {
    name: 'a connection on which one call lasts is never left unless another is made',
    suite: OLD_CONNECTIONS,
    caughtBy: 'long-lived calls are ended by the core, also without other calls, over HTTP/2',
    patches: [
      {
        file: 'src/http2/max-connection-age.ts',
        find: 'if (age.inFlight === 0) return;',
        put: 'return;',
      },
    ],
  },
  {
    name: 'whoever watches the health holds an old connection',
    suite: OLD_CONNECTIONS,
    caughtBy: 'long-lived calls are ended by the core, also without other calls, over HTTP/1.1',
    patches: [
      {
        file: 'src/rpc/health-service.ts',
        find: 'AbortSignal.any([signal, ending, values.get(connectionDraining)])',
        put: 'AbortSignal.any([signal, ending])',
      },
    ],
  },
  {
    name: 'whoever is on its way as a connection is left waits for ever',
    suite: OLD_CONNECTIONS,
    caughtBy:
      'is ended by GOAWAY with its next call, which gets its response; later streams are not processed, and the GOAWAY says so',
    patches: [
      {
        file: 'src/http2/connections.ts',
        find: 'if (!session.destroyed) session.goaway(constants.NGHTTP2_NO_ERROR);',
        put: '',
      },
    ],
  },
  {
    name: 'an exchange stays at its core however old its connection is',
    suite: OLD_CONNECTIONS,
    caughtBy: 'an exchange ends without an error, with all results; the next one uses another connection',
    patches: [
      {
        file: 'src/rpc/items.ts',
        find: 'AbortSignal.any([ending, signal, caller.withdrawn, values.get(connectionDraining)])',
        put: 'AbortSignal.any([ending, signal])',
      },
    ],
  },
  {
    name: 'a gateway takes a call that was refused unseen for one that failed',
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
    name: 'files are taken as one look has found them',
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
    name: 'a certificate that is still to come is shown',
    suite: RENEWED,
    caughtBy: 'by one that is still to come leaves the former in use',
    patches: [{ file: 'common/tls-credentials.ts', find: 'from.getTime() > Date.now()', put: 'from === to' }],
    inSoak: true,
  },
  {
    name: 'a gateway goes on with the certificates that it has started with',
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
