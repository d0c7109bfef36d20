/** Types for the parts of @usebruno/lang that are used; the package has none. */
declare module '@usebruno/lang' {
  interface Named {
    readonly name: string;
    readonly value: string;
    readonly enabled: boolean;
  }

  interface BruRequest {
    readonly meta: { readonly name: string; readonly type: 'http'; readonly seq: string };
    readonly http: {
      readonly method: string;
      readonly url: string;
      readonly body: 'json' | 'none';
      readonly auth: 'inherit';
    };
    readonly params?: readonly (Named & { readonly type: 'path' | 'query' })[];
    readonly headers?: readonly Named[];
    readonly body?: { readonly json: string };
    readonly vars?: { readonly res?: readonly (Named & { readonly local: boolean })[] };
    readonly assertions?: readonly Named[];
    readonly docs?: string;
  }

  interface BruCollection {
    readonly auth: { readonly mode: 'bearer'; readonly bearer: { readonly token: string } };
  }

  interface BruEnvironment {
    readonly variables: readonly (Named & { readonly secret: boolean })[];
  }

  function jsonToBruV2(request: BruRequest): string;
  function bruToJsonV2(text: string): BruRequest;
  function jsonToCollectionBru(collection: BruCollection): string;
  function collectionBruToJson(text: string): BruCollection;
  function envJsonToBruV2(environment: BruEnvironment): string;
  function bruToEnvJsonV2(text: string): BruEnvironment;
}
