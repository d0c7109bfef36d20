import { type ClientSession, type ClusterTime, type MongoClient, MongoServerError, type Timestamp } from 'mongodb';

/**
 * TimeProofMismatch, ClusterTimeFailsRateLimiter and KeyNotFound: the times are of another cluster, such as before a
 * restored backup.
 */
const FOREIGN_TIMES: readonly unknown[] = [204, 205, 211];

/**
 * Causally consistent sessions, one for each command. Reads of a majority alone may go back to an earlier state after an
 * election: what the new primary knows to be on a majority lags behind what the former one acknowledged. Therefore each
 * command names the latest time that any reply had, and the server waits until it has got that far.
 *
 * One session must not be shared by concurrent writes: the server numbers the retryable writes of a session, and refuses
 * a number that arrives late. A server that sends no times, such as FerretDB, gets the same commands as without.
 */
export class CausalSessions {
  readonly #client: MongoClient;
  #operationTime: Timestamp | undefined;
  #clusterTime: ClusterTime | undefined;

  constructor(client: MongoClient) {
    this.#client = client;
  }

  /** Runs a command in a session; its reply is known to every command that begins later. */
  async run<Result>(command: (session: ClientSession) => Promise<Result>): Promise<Result> {
    const session = this.#client.startSession({ causalConsistency: true });
    if (this.#clusterTime) session.advanceClusterTime(this.#clusterTime);
    if (this.#operationTime) session.advanceOperationTime(this.#operationTime);
    try {
      const result = await command(session);
      this.#remember(session);
      return result;
    } catch (error) {
      const isForeign = error instanceof MongoServerError && FOREIGN_TIMES.includes(error.code);
      this.#remember(isForeign ? {} : session);
      throw error;
    } finally {
      // Sends nothing.
      session.endSession().catch(() => {});
    }
  }

  #remember({ operationTime, clusterTime }: Pick<ClientSession, 'operationTime' | 'clusterTime'>): void {
    const [operation, cluster] = [this.#operationTime, this.#clusterTime];
    if (!operation || !operationTime || operationTime.greaterThan(operation)) this.#operationTime = operationTime;
    if (!cluster || !clusterTime || clusterTime.clusterTime.greaterThan(cluster.clusterTime))
      this.#clusterTime = clusterTime;
  }
}
