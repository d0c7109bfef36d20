import { createContextKey } from '@connectrpc/connect';

/** Aborted when the call's connection is drained; open-ended calls then end, and the caller opens another connection. */
export const connectionDraining = createContextKey<AbortSignal>(new AbortController().signal, {
  description: 'aborted when the connection is drained',
});
