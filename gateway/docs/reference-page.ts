import { layout, relativeFrom } from './layout.ts';

const PATH = '/docs';

/** Returns the page that renders the OpenAPI document and can send its requests. */
export function referencePage(): string {
  const link = relativeFrom(PATH);
  return layout({
    path: PATH,
    title: 'Reference',
    body: `\
<noscript><p class="page">The reference needs JavaScript; the other pages and the
<a href="${link('/v1/openapi.json')}">OpenAPI document</a> do not.</p></noscript>
<main id="reference"></main>
<script src="${link('/docs/assets/scalar.js')}"></script>
<script type="module" src="${link('/docs/assets/reference.js')}"></script>`,
  });
}
