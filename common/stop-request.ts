const controller = new AbortController();

/** Aborted by the first request to stop: SIGTERM, SIGINT, SIGHUP, or the exit of the parent. Loading this module registers the handlers. */
export const stopRequest: AbortSignal = controller.signal;

// The handlers stay registered, so a second signal does not kill the process during its clean stop.
for (const event of ['SIGTERM', 'SIGINT', 'SIGHUP', 'disconnect']) process.on(event, () => controller.abort());
