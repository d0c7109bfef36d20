import { createHook } from 'node:async_hooks';

/* Finds code that waits for the real machine, which answers at times that no seed determines. */

/** Resources that live within the event loop of Node, and those that the machine itself uses. */
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
  // The machine waits for files while nothing else happens.
  ...['FSREQPROMISE', 'FSREQCALLBACK', 'FILEHANDLE', 'FILEHANDLECLOSEREQ'],
  ...['HTTP2SESSION', 'HTTP2STREAM', 'HTTP2SETTINGS', 'HTTP2PING', 'HTTPINCOMINGMESSAGE', 'HTTPCLIENTREQUEST'],
]);

/** Two harmless uses: Node's check of late requests, which is stopped at once, and compression in this thread. */
const HARMLESS = /setupConnectionsTracking|syncBufferWrapper/;

/** The code positions that used the real machine, with the kind of resource. */
export const escapes = new Map<string, number>();

/** Records each code position that uses the real machine. */
export function watchEscapes(): void {
  createHook({
    init(_, type) {
      if (INSIDE.has(type)) return;
      const stack = new Error().stack?.split('\n').slice(2) ?? [];
      if (stack.some((line) => HARMLESS.test(line))) return;
      const lines = stack.filter((line) => !line.includes('node:internal/async_hooks')).slice(0, 8);
      const position = `${type} ${lines
        .map((line) =>
          line
            .trim()
            .replace(/^at /, '')
            .replace(/file:\/\/.*\/(?=\w+\/)/, ''),
        )
        .join(' < ')}`;
      escapes.set(position, (escapes.get(position) ?? 0) + 1);
    },
  }).enable();
}
