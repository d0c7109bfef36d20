import { openConnection } from './connection.ts';

/** What came back. */
export interface Reply {
  readonly status: number;
  readonly text: string;
}

/** A keep-alive connection on which one asks and waits for the answer. */
export interface Asking {
  /** Rejects when the connection ends instead, or has ended. */
  ask(request: Buffer): Promise<Reply>;
  close(): void;
}

/** Connects to an address; rejects when nobody listens there. */
export async function openAsking(url: string): Promise<Asking> {
  let pending: PromiseWithResolvers<Reply> | undefined;
  let ended: Error | undefined;
  const connection = await openConnection(new URL(url), {
    onAnswer: (status, body) => pending?.resolve({ status, text: body.toString() }),
    onEnd(reason) {
      ended = new Error(reason);
      pending?.reject(ended);
    },
  });
  return {
    async ask(request) {
      if (ended) throw ended;
      pending = Promise.withResolvers();
      connection.send(request);
      return pending.promise;
    },
    close: () => connection.close(),
  };
}
