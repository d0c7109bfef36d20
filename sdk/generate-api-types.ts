import { compile } from 'json-schema-to-typescript';
import { openApiDocument } from '../gateway/docs/openapi.ts';

// Generates the SDK's types from the schemas of the gateway's OpenAPI document. `npm run generate` writes them, and
// `npm run check` fails when they are out of date.
const { components } = openApiDocument('https://api.example.com') as { components: { schemas: object } };
const schemas = JSON.stringify({ $defs: components.schemas }).replaceAll('#/components/schemas/', '#/$defs/');
const types = await compile(JSON.parse(schemas), '', {
  bannerComment: '// Generated from the OpenAPI document. Do not edit.\n',
  customName: (_, name) => name,
  // With it, a page of at most 100 leads would be a union of 101 tuples.
  ignoreMinAndMaxItems: true,
  unreachableDefinitions: true,
  style: { singleQuote: true, printWidth: 120 },
});
// Remove the "referenced by" notes: comments of their own, or the last paragraph of a type's comment.
process.stdout.write(
  types
    .replaceAll(/\/\*\*\n \* This interface was referenced by [\s\S]*?\*\/\n/g, '')
    .replaceAll(/\n \*\n \* This interface was referenced by [\s\S]*?(?=\n \*\/)/g, ''),
);
