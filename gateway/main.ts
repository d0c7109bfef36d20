// Alone and first: the other modules take a second to load, and the first process of a container loses a signal for which
// it has no handler.
import '../common/stop-request.ts';

await import('./run.ts');
