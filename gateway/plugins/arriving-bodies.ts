import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Problem } from '../problems.ts';

/**
 * Refuses requests with a valid head whose body is malformed or late. The head has been acted on: the request has an id,
 * and is or will be counted. So it is answered in the order of checks, with its headers, like one with any other fault.
 */
export class ArrivingBodies {
  /** The replies to requests with a body. */
  readonly #replies = new WeakMap<IncomingMessage, FastifyReply>();
  readonly #faults = new WeakMap<IncomingMessage, Problem>();

  watch(app: FastifyInstance): void {
    app.addHook('onRequest', (request, reply, done) => {
      const { 'content-length': length, 'transfer-encoding': coding } = request.raw.headers;
      if (length !== undefined || coding !== undefined) this.#replies.set(request.raw, reply);
      done();
    });
    app.addHook('preParsing', (request, _reply, payload, done) => {
      done(this.#takeFault(request.raw) ?? null, payload);
    });
    // An operation that ignores the body may have begun.
    app.addHook('onSend', (request, _reply, payload, done) => {
      const fault = request.state.problemCode === undefined && this.#takeFault(request.raw);
      if (fault) done(fault);
      else done(null, payload);
    });
  }

  /** Returns whether the request gets its response here, after which its connection closes. */
  refuse(request: IncomingMessage, problem: Problem): boolean {
    const reply = this.#replies.get(request);
    if (!reply || reply.raw.headersSent) return false;
    reply.header('connection', 'close');
    // What reads the body listens for its errors.
    if (request.listenerCount('error') > 0) request.emit('error', problem);
    else this.#faults.set(request, problem);
    return true;
  }

  #takeFault(request: IncomingMessage): Problem | undefined {
    const fault = this.#faults.get(request);
    if (fault) this.#faults.delete(request);
    return fault;
  }
}
