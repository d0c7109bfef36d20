import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { ROOT } from '../tools/processes.ts';

/** A schema in webhook-payload.schema.json. */
interface PayloadSchema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, PayloadSchema>>;
  readonly items?: PayloadSchema;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, PayloadSchema>>;
  readonly anyOf?: readonly { readonly enum?: readonly string[] }[];
}

const PAYLOAD_SCHEMA: PayloadSchema = JSON.parse(
  readFileSync(join(ROOT, 'docs/reference/webhook-payload.schema.json'), 'utf8'),
);

/** A field of payloads: its path, such as `data.kinds`, and its schema. */
interface PayloadField {
  readonly path: string;
  readonly schema: PayloadSchema;
}

/** Returns all fields of payloads, in the order of the schema. */
export function payloadFields(schema: PayloadSchema = PAYLOAD_SCHEMA, prefix = ''): PayloadField[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const { $ref, items } = property;
    const resolved = $ref ? (PAYLOAD_SCHEMA.$defs?.[$ref.replace('#/$defs/', '')] ?? property) : property;
    return [
      { path: `${prefix}${name}`, schema: resolved },
      ...payloadFields(items ?? resolved, `${prefix}${name}${items ? '[]' : ''}.`),
    ];
  });
}

/** Returns a schema that accepts only listed fields and values. Receivers must accept others, too. */
const strict = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(strict);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { anyOf, ...others } = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, strict(value)]));
  const [known] = Array.isArray(anyOf) ? anyOf : [];
  const isObject = others.type === 'object' && 'properties' in others;
  return { ...others, ...known, ...(isObject && { additionalProperties: false }) };
};

const ajv = new Ajv2020({ allErrors: true, strict: true, strictRequired: false, strictTypes: false });
addFormats.default(ajv);
const validates = ajv.compile(strict(PAYLOAD_SCHEMA) as object);

/** Returns the differences of a payload from the schema. */
export function payloadFaults(body: string): string[] {
  validates(JSON.parse(body));
  return (validates.errors ?? []).map(({ instancePath, message, params }) =>
    [instancePath, message, JSON.stringify(params)].join(' '),
  );
}
