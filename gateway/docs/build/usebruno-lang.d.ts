/** Types for the parts of @usebruno/lang that are used; the package has none. */
declare module '@usebruno/lang' {
  type Named = Readonly<{ name: string; value: string; enabled: boolean }>;

  interface BruRequest {
    readonly meta: Readonly<{ name: string; type: 'http'; seq: string }>;
    readonly http: Readonly<Record<'method' | 'url' | 'body' | 'auth', string>>;
    readonly params?: readonly (Named & { readonly type: 'path' | 'query' })[];
    readonly headers?: readonly Named[];
    readonly body?: { readonly json: string };
    readonly vars?: { readonly res?: readonly (Named & { readonly local: boolean })[] };
    readonly assertions?: readonly Named[];
    readonly docs?: string;
  }

  type BruCollection = { readonly auth: { readonly mode: 'bearer'; readonly bearer: { readonly token: string } } };
  type BruEnvironment = { readonly variables: readonly (Named & { readonly secret: boolean })[] };

  function jsonToBruV2(request: BruRequest): string;
  function bruToJsonV2(text: string): BruRequest;
  function jsonToCollectionBru(collection: BruCollection): string;
  function collectionBruToJson(text: string): BruCollection;
  function envJsonToBruV2(environment: BruEnvironment): string;
  function bruToEnvJsonV2(text: string): BruEnvironment;
}
