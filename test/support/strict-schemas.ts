import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A definition of the OpenAPI document of Kubernetes. */
interface Definition {
  readonly properties?: Readonly<Record<string, object>>;
  readonly 'x-kubernetes-group-version-kind'?: readonly { group: string; version: string; kind: string }[];
}

/** Types for which the API accepts more than the document says. */
const SPECIAL: Readonly<Record<string, object>> = {
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': { type: ['integer', 'string'] },
  'io.k8s.apimachinery.pkg.api.resource.Quantity': { type: ['number', 'string'] },
};

/**
 * Writes a schema for each kind into a folder for kubeconform, from the OpenAPI document of Kubernetes. The schemas are
 * strict: an object may have only listed properties.
 *
 * @returns the pattern of the files for kubeconform
 */
export function strictSchemas(document: string, folder: string, kinds: readonly string[]): string {
  const { definitions } = JSON.parse(readFileSync(document, 'utf8')) as { definitions: Record<string, Definition> };
  const strict = Object.fromEntries(
    Object.entries(definitions).map(([name, definition]) => [
      name,
      SPECIAL[name] ?? { ...definition, ...(definition.properties && { additionalProperties: false }) },
    ]),
  );
  for (const [name, { 'x-kubernetes-group-version-kind': ids = [] }] of Object.entries(definitions)) {
    for (const { group, version, kind } of ids.length === 1 ? ids : []) {
      if (!kinds.includes(kind)) continue;
      const [suffix] = group.split('.');
      const file = [kind.toLowerCase(), ...(suffix ? [suffix] : []), version].join('-');
      const schema = { $ref: `#/definitions/${name}`, definitions: reachable(strict, name) };
      writeFileSync(join(folder, `${file}.json`), JSON.stringify(schema));
    }
  }
  return join(folder, '{{.ResourceKind}}{{.KindSuffix}}.json');
}

/** Returns a definition and all definitions that it refers to. */
function reachable(definitions: Readonly<Record<string, object>>, start: string): Record<string, object> {
  const found: Record<string, object> = {};
  const waiting = [start];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (name in found) continue;
    const definition = definitions[name] ?? {};
    found[name] = definition;
    for (const [, next = ''] of JSON.stringify(definition).matchAll(/"#\/definitions\/([^"]+)"/g)) waiting.push(next);
  }
  return found;
}
