import { createContextKey } from '@connectrpc/connect';

/** Aborted when the call's connection is drained; open-ended calls then end. */
export const connectionDraining = createContextKey<AbortSignal>(new AbortController().signal, {
  description: 'aborted when the connection is drained',
});
