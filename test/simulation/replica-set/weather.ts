import type { Document } from 'mongodb';

/** The faults that affect commands of clients. */
export class Weather {
  /** The probability that a write or its reply is lost, wholly or in part; for other commands a third of it. */
  losses = 0;
  /** The probability that a command takes up to three seconds, as on a slow disk. */
  slowness = 0;
  /** Replies to the next commands of these names, which are not executed. */
  readonly replies: { readonly name: string; readonly reply: Document }[] = [];

  /** Chooses what a command loses; `share` of its reply arrives before the connection breaks. */
  findLoss(name: string): 'request' | 'silence' | { readonly share: number } | undefined {
    const isWrite = name === 'insert' || name === 'update';
    if (this.losses === 0 || Math.random() >= this.losses / (isWrite ? 1 : 3)) return undefined;
    const fate = Math.random();
    if (fate < 0.25) return 'request';
    if (fate < 0.35) return 'silence';
    return { share: fate < 0.6 ? 0 : Math.random() };
  }

  findDelay(name: string): number {
    const isSlow = this.slowness > 0 && name !== 'listIndexes' && Math.random() < this.slowness;
    return isSlow ? Math.random() * 3000 : 0;
  }

  takeReply(name: string): Document | undefined {
    const index = this.replies.findIndex((each) => each.name === name);
    return index < 0 ? undefined : this.replies.splice(index, 1)[0]?.reply;
  }

  /** Chooses whether other commands run between two statements. */
  yields(): boolean {
    return Math.random() < 0.1;
  }
}
