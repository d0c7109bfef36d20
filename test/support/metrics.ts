/** Metric values by series, `name{label="value"}`. */
export type Samples = ReadonlyMap<string, number>;

/** Reads the metrics at an address, as Prometheus does. */
export async function scrape(url: string | undefined): Promise<Samples> {
  if (url === undefined) throw new Error('metrics are not enabled');
  const answer = await fetch(url);
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${answer.status}: ${text}`);
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const [, series = '', value] = /^(\S+?(?:\{.*\})?) (\S+)$/.exec(line) ?? [];
      return [series, Number(value)];
    }),
  );
}

/** Returns the change of each series between two readings. Omits unchanged series. */
export function growth(before: Samples, after: Samples): Record<string, number> {
  const grown = [...after].map(([series, value]) => [series, value - (before.get(series) ?? 0)] as const);
  return Object.fromEntries(grown.filter(([, by]) => by !== 0));
}
