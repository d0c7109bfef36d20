/** The outbox cannot do what it is asked, the way its table stands: the message says why. Nothing was changed. */
export class OutboxError extends Error {
  override readonly name = 'OutboxError';
}
