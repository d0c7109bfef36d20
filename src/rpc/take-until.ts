/** Yields values until the signal aborts. Does not wait for a value that is then still pending. */
export async function* takeUntil<Value>(signal: AbortSignal, values: AsyncIterable<Value>): AsyncGenerator<Value> {
  const iterator = values[Symbol.asyncIterator]();
  // One listener for all values, because one per value would accumulate on the signal.
  let stop = () => {};
  const onAbort = () => stop();
  signal.addEventListener('abort', onAbort);
  try {
    while (!signal.aborted) {
      const next = await new Promise<IteratorResult<Value>>((resolve, reject) => {
        stop = () => resolve({ done: true, value: undefined });
        iterator.next().then(resolve, reject);
      });
      if (next.done) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
