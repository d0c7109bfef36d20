import cluster from 'node:cluster';

const controller = new AbortController();

/** Aborted by the first request to stop: SIGTERM, SIGINT, or the exit of the parent. It is registered when this is loaded. */
export const stopRequest: AbortSignal = controller.signal;

// The handlers stay registered, so that a second signal does not kill the process during its clean stop.
process.on('SIGTERM', () => controller.abort());
// Ctrl-C reaches all processes of a terminal; workers wait for the supervisor's SIGTERM.
process.on('SIGINT', () => cluster.isWorker || controller.abort());
process.on('disconnect', () => controller.abort());
// A supervisor replaces its workers on SIGHUP; a single process stops cleanly.
process.on('SIGHUP', () => cluster.isWorker || Object.keys(cluster.workers ?? {}).length > 0 || controller.abort());
