import { OLDER_LEAD } from '../../gateway/docs/examples.ts';
import { document, PUBLIC_URL } from './documented.ts';

/** The sample programs of the API reference for one official client, by operation. */
export interface CodeSamples {
  readonly create: string;
  readonly read: (id: string) => string;
  readonly list: string;
}

/** Returns the samples in a language, with the address of a running service put in. */
export function codeSamplesIn(lang: string, url: string): CodeSamples {
  const { post, get } = document.paths['/v1/integrations/leads'] ?? {};
  const { get: read } = document.paths['/v1/integrations/leads/{id}'] ?? {};
  const [created = '', listed = '', found = ''] = [post, get, read].map((operation) => {
    const { source = '' } = operation?.['x-codeSamples'].find((sample) => sample.lang === lang) ?? {};
    return source.replace(PUBLIC_URL, url);
  });
  return { create: created, read: (id) => found.replace(OLDER_LEAD.id, id), list: listed };
}
