import { createContextKey } from '@connectrpc/connect';

/** Aborted when the caller is to go over to another connection: a call that lasts until somebody ends it ends then. */
export const connectionDraining = createContextKey<AbortSignal>(new AbortController().signal, {
  description: 'aborted when the connection is to be left',
});
