/** The part of a document that this is about. */
interface WithComponents {
  readonly components: Readonly<Record<string, Readonly<Record<string, object>>>>;
}

/**
 * Writes each part that an OpenAPI document names among its components once: wherever else the same object stands, it
 * becomes a reference to it.
 */
export function withReferences<Document extends WithComponents>(document: Document): object {
  const references = new Map<unknown, string>();
  for (const [kind, parts] of Object.entries(document.components)) {
    for (const [name, part] of Object.entries(parts)) references.set(part, `#/components/${kind}/${name}`);
  }
  const write = (value: unknown): unknown =>
    references.has(value) ? { $ref: references.get(value) } : inside(value, write);
  const writeParts = (parts: unknown): unknown => inside(parts, (part) => inside(part, write));
  return { ...(inside(document, write) as object), components: inside(document.components, writeParts) };
}

/** A copy of a value with everything directly in it changed. */
function inside(value: unknown, change: (child: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map(change);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, change(child)]));
}
