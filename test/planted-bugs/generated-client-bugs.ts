import type { PlantedBug } from './planted-bug.ts';

const SCHEMAS = 'gateway/schemas.ts';
const SUITE = 'test/generated-clients/generated-clients.test.ts';

const works = (generator: string) =>
  `creates, repeats, reads and lists leads, and gets the reason of each refusal: ${generator}`;

/** Faults of the OpenAPI document that show in clients generated from it. */
export const GENERATED_CLIENT_BUGS: readonly PlantedBug[] = [
  {
    name: 'ids have the format uuid, so that generated Python clients apply their pattern to an object',
    suite: SUITE,
    caughtBy: works('openapi-generator-python'),
    patches: [
      {
        file: SCHEMAS,
        find: "{ type: 'string', pattern: UUID }",
        put: "{ type: 'string', format: 'uuid', pattern: UUID }",
      },
    ],
    inSoak: true,
  },
  {
    name: 'the pattern of email addresses has control characters above ASCII, which PHP clients match inside letters',
    suite: SUITE,
    caughtBy: works('openapi-generator-php'),
    patches: [{ file: SCHEMAS, text: 'x7f]+$', put: 'x7f-\\\\x9f]+$' }],
    inSoak: true,
  },
  {
    name: 'errors of each status have an inline schema, which generated clients name by a number',
    suite: SUITE,
    caughtBy: 'has only types that the document names: openapi-generator-go',
    patches: [
      {
        file: 'gateway/docs/answers.ts',
        find: 'schema: problemDetailsSchema',
        put: "schema: { allOf: [problemDetailsSchema, { type: 'object', properties: { code: { enum: codes } } }] }",
      },
    ],
    inSoak: true,
  },
];
