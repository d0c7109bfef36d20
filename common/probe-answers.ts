/** A healthy gateway's answers to probes. They differ from those of any other server at its address. */
export const ALIVE = { status: 'alive' };
export const READY = { status: 'ready' };
