import { Server } from 'node:http';
import { createRequire } from 'node:module';

/**
 * Preloaded into a gateway's process: prints each code of the framework and each event of Node's server that refuses a
 * request before a route.
 */
const codes = createRequire(import.meta.resolve('fastify'))('./lib/errors.js') as Record<string, object>;
const print = (...words: unknown[]) => process.stderr.write(`by ${words.filter(Boolean).join(' ')}\n`);

for (const [code, FrameworkError] of Object.entries(codes)) {
  if (!code.startsWith('FST_')) continue;
  codes[code] = new Proxy(FrameworkError, {
    construct(target, args) {
      print(code);
      return Reflect.construct(target as new () => Error, args) as Error;
    },
  });
}

const EVENTS = ['clientError', 'checkContinue', 'checkExpectation', 'connect', 'upgrade', 'dropRequest', 'timeout'];
const { emit } = Server.prototype;
Server.prototype.emit = function (this: Server, event: string, ...args: unknown[]) {
  if (EVENTS.includes(event)) print(event, (args[0] as { code?: string }).code);
  return emit.call(this, event, ...args);
} as typeof emit;
