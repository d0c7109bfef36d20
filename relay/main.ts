// Alone and first, as in the other processes: signals are heard while the other modules are loaded.
import '../common/stop-request.ts';

await import('./run.ts');
