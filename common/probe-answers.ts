/** What a gateway answers to probes when all is well, and nothing else that may stand at its address. */
export const ALIVE = { status: 'alive' };
export const READY = { status: 'ready' };
