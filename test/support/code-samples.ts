import { OLDER_LEAD } from '../../gateway/docs/examples.ts';
import { document, PUBLIC_URL } from './documented.ts';

/** The programs with which the reference shows an official client, by what they do. */
export interface CodeSamples {
  readonly create: string;
  readonly read: (id: string) => string;
  readonly list: string;
}

/** Those of a language, for a service at an address. */
export function codeSamplesIn(lang: string, url: string): CodeSamples {
  const { post, get } = document.paths['/v1/integrations/leads'] ?? {};
  const { get: read } = document.paths['/v1/integrations/leads/{id}'] ?? {};
  const [created = '', listed = '', found = ''] = [post, get, read].map((operation) => {
    const { source = '' } = operation?.['x-codeSamples'].find((sample) => sample.lang === lang) ?? {};
    return source.replace(PUBLIC_URL, url);
  });
  return { create: created, read: (id) => found.replace(OLDER_LEAD.id, id), list: listed };
}
