import { payloadFields } from './support/webhook-payloads.ts';

/** Prints `docs/reference/webhook-payload.md`: `npm run generate` writes it, `npm run check` compares it. */

console.log(`# Payload of a webhook

The fields of the body of a request to an [endpoint of webhooks](../how-to/webhooks.md). [webhook-payload.schema.json](webhook-payload.schema.json) has
them as a JSON schema, from which \`npm run generate\` makes this page.

- **Later releases add fields and kinds.** Ignore an unknown field, and treat an unknown kind as a change of the lead. The schema accepts both.
- **A field without a value is absent,** never \`null\`.
- **Times** are in UTC, with milliseconds. Integers of 64 bits are strings, because JSON parsers round such numbers.

| Field | Meaning |
|---|---|
${payloadFields()
  .filter(({ schema }) => schema.description)
  .map(({ path, schema }) => `| \`${path}\` | ${schema.description} |`)
  .join('\n')}`);
