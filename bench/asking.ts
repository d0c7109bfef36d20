import { openConnection } from './connection.ts';

export interface Reply {
  readonly status: number;
  readonly text: string;
}

/** A keep-alive connection with one request at a time. */
export interface Asking {
  /** Resolves with the response; rejects when the connection ends or has ended. */
  ask(request: Buffer): Promise<Reply>;
  close(): void;
}

/** Connects to an address; rejects when the connection is refused. */
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
