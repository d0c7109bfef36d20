import { execFileSync } from 'node:child_process';
import { ROOT } from '../../../test/tools/processes.ts';

interface OpenApi {
  readonly servers: readonly [{ readonly url: string }];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, { readonly description: string }>>;
  };
}

interface Operation {
  readonly 'x-codeSamples': readonly { readonly lang: string; readonly source: string }[];
}

interface Schema {
  readonly properties?: Readonly<Record<string, object>>;
  readonly enum?: readonly string[];
}

/** The OpenAPI document of this release's gateway. */
const document = JSON.parse(
  execFileSync(process.execPath, ['gateway/print-openapi.ts'], { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 26 }),
) as OpenApi;

/** The names of all components of the document. */
export const COMPONENTS: readonly string[] = Object.values(document.components).flatMap(Object.keys);

const { schemas } = document.components;
const listProperties = (name: string): string[] => Object.keys(schemas[name]?.properties ?? {}).toSorted();
const listValues = (name: string): string[] => [...(schemas[name]?.enum ?? [])].toSorted();

/** The sorted field names and values that the OpenAPI document requires of a client's types. */
export const DOCUMENTED_TYPES = {
  LeadCapture: listProperties('LeadCapture'),
  EmailContact: listProperties('EmailContact'),
  PhoneContact: listProperties('PhoneContact'),
  Lead: listProperties('Lead'),
  LeadList: listProperties('LeadList'),
  ProblemDetails: listProperties('ProblemDetails'),
  LeadStage: listValues('LeadStage'),
  ProblemCode: listValues('ProblemCode'),
};

/** The codes of failed creations, after which it is unknown whether the lead was written. */
export const FAILURES: readonly string[] = ['Failed', 'Unavailable'].flatMap(
  (name) => document.components.responses[name]?.description.match(/(?<=\[`)\w+/g) ?? [],
);

/** The sample programs of the API reference for one official client, by operation. */
export interface CodeSamples {
  readonly create: string;
  readonly read: (id: string) => string;
  readonly list: string;
}

/** Returns the samples in a language, with the address of a running service. */
export function codeSamplesIn(lang: string, url: string): CodeSamples {
  const { post, get } = document.paths['/v1/integrations/leads'] ?? {};
  const { get: read } = document.paths['/v1/integrations/leads/{id}'] ?? {};
  const [created = '', listed = '', found = ''] = [post, get, read].map((operation) => {
    const { source = '' } = operation?.['x-codeSamples'].find((sample) => sample.lang === lang) ?? {};
    return source.replace(document.servers[0].url, url);
  });
  return { create: created, read: (id) => found.replace(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/, id), list: listed };
}
