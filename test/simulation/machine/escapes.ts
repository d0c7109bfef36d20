import { createHook } from 'node:async_hooks';

/* What code asks of the real machine would end at a time that no seed decides. */

/** Resources of Node that live in the event loop's own turn, and what the machine uses itself. */
const INSIDE = new Set([
  ...['TickObject', 'Immediate', 'Microtask', 'PROMISE', 'JSSTREAM', 'SHUTDOWNWRAP', 'WRITEWRAP'],
  ...[
    'bound-anonymous-fn',
    'PendingRequest',
    'STREAM_END_OF_STREAM',
    'content-type-parser:run',
    'HTTPSERVERREQUEST',
    'DNSCHANNEL',
  ],
  // Files, for which the machine waits while nothing else happens.
  ...['FSREQPROMISE', 'FSREQCALLBACK', 'FILEHANDLE', 'FILEHANDLECLOSEREQ'],
  ...['HTTP2SESSION', 'HTTP2STREAM', 'HTTP2SETTINGS', 'HTTP2PING', 'HTTPINCOMINGMESSAGE', 'HTTPCLIENTREQUEST'],
]);

/** The check of late requests, which is stopped when the server listens, and compression in the same thread. */
const HARMLESS = /setupConnectionsTracking|syncBufferWrapper/;

/** The places from which something escaped, with the kind of resource. */
export const escapes = new Map<string, number>();

/** Notes each place where code asks the real machine for something. */
export function watchEscapes(): void {
  createHook({
    init(_, type) {
      if (INSIDE.has(type)) return;
      const stack = new Error().stack?.split('\n').slice(2) ?? [];
      if (stack.some((line) => HARMLESS.test(line))) return;
      const lines = stack.filter((line) => !line.includes('node:internal/async_hooks')).slice(0, 8);
      const place = `${type} ${lines
        .map((line) =>
          line
            .trim()
            .replace(/^at /, '')
            .replace(/file:\/\/.*\/(?=\w+\/)/, ''),
        )
        .join(' < ')}`;
      escapes.set(place, (escapes.get(place) ?? 0) + 1);
    },
  }).enable();
}
