/** A weight as in RFC 9110, section 12.4.2. */
const WEIGHT = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/i;

/**
 * Whether an answer may travel zipped, and not rather as it is, by `Accept-Encoding` (RFC 9110, section 12.5.3). Members that
 * are no coding with at most a weight count for nothing.
 */
export function acceptsGzip(acceptEncoding: string | undefined): boolean {
  const weights = new Map<string, number>();
  for (const member of acceptEncoding?.split(',') ?? []) {
    const [coding = '', weight = 'q=1', ...more] = member.split(';').map((part) => part.trim());
    const [, value] = WEIGHT.exec(weight) ?? [];
    if (coding !== '' && value !== undefined && more.length === 0) weights.set(coding.toLowerCase(), Number(value));
  }
  const any = weights.get('*') ?? 0;
  const gzip = weights.get('gzip') ?? weights.get('x-gzip') ?? any;
  // As it is, is always accepted, but preferred only by who says so.
  const identity = weights.get('identity') ?? 0;
  return gzip > 0 && gzip >= identity;
}
