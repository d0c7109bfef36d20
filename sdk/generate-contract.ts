import { compile } from 'json-schema-to-typescript';
import { openApiDocument } from '../gateway/docs/openapi.ts';

// The types of the SDK are the schemas of the OpenAPI document that the gateway serves: `npm run generate` writes them,
// and `npm run check` finds them out of date.
const { components } = openApiDocument('https://api.example.com') as { components: { schemas: object } };
const schemas = JSON.stringify({ $defs: components.schemas }).replaceAll('#/components/schemas/', '#/$defs/');
const types = await compile(JSON.parse(schemas), '', {
  bannerComment: '// Generated from the OpenAPI document. Do not edit.\n',
  customName: (_, name) => name,
  // A page of at most 100 leads would be a union of 101 tuples.
  ignoreMinAndMaxItems: true,
  unreachableDefinitions: true,
  style: { singleQuote: true, printWidth: 120 },
});
// What refers to a type is said in a comment of its own, or at the end of the type's.
process.stdout.write(
  types
    .replaceAll(/\/\*\*\n \* This interface was referenced by [\s\S]*?\*\/\n/g, '')
    .replaceAll(/\n \*\n \* This interface was referenced by [\s\S]*?(?=\n \*\/)/g, ''),
);
