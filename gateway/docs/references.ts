interface WithComponents {
  readonly components: Readonly<Record<string, Readonly<Record<string, object>>>>;
}

/**
 * Replaces each use of a component of an OpenAPI document, which is the same object, by a reference to it.
 */
export function withReferences<Document extends WithComponents>(document: Document): object {
  const references = new Map<unknown, string>();
  for (const [kind, parts] of Object.entries(document.components)) {
    for (const [name, part] of Object.entries(parts)) references.set(part, `#/components/${kind}/${name}`);
  }
  const replace = (value: unknown): unknown =>
    references.has(value) ? { $ref: references.get(value) } : mapChildren(value, replace);
  const replaceIn = (parts: unknown): unknown => mapChildren(parts, (part) => mapChildren(part, replace));
  return {
    ...(mapChildren(document, replace) as object),
    components: mapChildren(document.components, replaceIn),
  };
}

/** Copies a value with each direct child replaced. */
function mapChildren(value: unknown, change: (child: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map(change);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, change(child)]));
}
