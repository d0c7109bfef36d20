import type { PlantedBug } from './planted-bug.ts';

const SCHEMAS = 'gateway/schemas.ts';
const SUITE = 'test/generated-clients/generated-clients.test.ts';

const works = (generator: string) =>
  `creates, repeats, reads and lists leads, and gets the reason of each refusal: ${generator}`;

/** Faults of the OpenAPI document that show in the clients which are made of it. */
export const GENERATED_CLIENT_BUGS: readonly PlantedBug[] = [
  {
    name: 'ids have a format beside their pattern, which clients in Python then run on an object',
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
    name: 'the pattern of e-mail addresses names control characters beyond ASCII, which clients in PHP find in letters',
    suite: SUITE,
    caughtBy: works('openapi-generator-php'),
    patches: [{ file: SCHEMAS, text: 'x7f]+$', put: 'x7f-\\\\x9f]+$' }],
    inSoak: true,
  },
  {
    name: 'errors of each status have a schema of their own, which clients call by a number',
    suite: SUITE,
    caughtBy: 'has no types but those that the document names: openapi-generator-go',
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
