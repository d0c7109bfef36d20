import { Ajv, type ErrorObject } from 'ajv';
import { CONSUMER_NAME_PATTERN, MAX_CONSUMERS } from '../common/rules/field-rules.ts';
import { Secret } from '../common/secret.ts';
import { describeLocation, parseStrictJson } from '../common/strict-json.ts';

/** The kinds of change that an endpoint may select. It always gets erasures. */
export const KINDS = ['created', 'stage_changed', 'updated', 'resent', 'enquired'] as const;
type Kind = (typeof KINDS)[number];

export interface EndpointSettings {
  /** The path or query may be as secret as a password. */
  readonly url: Secret;
  /** Each secret adds a signature. */
  readonly secrets: readonly Secret[];
  readonly payload: 'thin' | 'full';
  /** Absent: all kinds. */
  readonly kinds?: readonly Kind[];
  /** Whether the endpoint may have a private address. */
  readonly allowPrivate: boolean;
}

/** The endpoints, by the name of their consumer of the change feed. */
export type Endpoints = ReadonlyMap<string, EndpointSettings>;

/** `whsec_`, then 24 to 64 bytes in base64, as in Standard Webhooks. */
const SECRET =
  '^whsec_(?:(?:[A-Za-z0-9+/]{4}){8,20}(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)?|[A-Za-z0-9+/]{86}==)$';

const SCHEMA = {
  type: 'object',
  required: ['endpoints'],
  additionalProperties: false,
  properties: {
    endpoints: {
      type: 'object',
      maxProperties: MAX_CONSUMERS,
      propertyNames: { pattern: CONSUMER_NAME_PATTERN },
      additionalProperties: {
        type: 'object',
        required: ['url', 'secrets'],
        additionalProperties: false,
        properties: {
          url: { type: 'string' },
          secrets: { type: 'array', minItems: 1, maxItems: 3, items: { type: 'string', pattern: SECRET } },
          payload: { enum: ['thin', 'full'] },
          kinds: { type: 'array', minItems: 1, uniqueItems: true, items: { enum: KINDS } },
          allowPrivate: { type: 'boolean' },
        },
      },
    },
  },
};

interface Entry {
  readonly url: string;
  readonly secrets: readonly string[];
  readonly payload?: EndpointSettings['payload'];
  readonly kinds?: readonly Kind[];
  readonly allowPrivate?: boolean;
}

const isEndpointsFile = new Ajv({ allErrors: true, verbose: true }).compile<{
  endpoints: Readonly<Record<string, Entry>>;
}>(SCHEMA);

/**
 * Parses an endpoints file.
 *
 * @throws Error whose message completes a sentence "The file …" and lists all faults, without a secret or an address
 */
export function parseEndpoints(text: string): Endpoints {
  const parsed = parseStrictJson(text);
  const faults = isEndpointsFile(parsed)
    ? Object.entries(parsed.endpoints).flatMap(([name, { url }]) => urlFault(url, name) ?? [])
    : [...new Set((isEndpointsFile.errors ?? []).map(endpointFault))];
  if (!isEndpointsFile(parsed) || faults.length > 0) throw new Error(`is not an endpoints file: ${faults.join('; ')}`);
  return new Map(
    Object.entries(parsed.endpoints).map(([name, { url, secrets, ...others }]) => [
      name,
      {
        payload: 'thin',
        allowPrivate: false,
        ...others,
        url: new Secret(url),
        secrets: secrets.map((secret) => new Secret(secret)),
      },
    ]),
  );
}

/** Returns whether two endpoints have the same settings, secrets included. */
export function isSame(...both: readonly [EndpointSettings, EndpointSettings]): boolean {
  const reveal = (secret: Secret) => secret.reveal();
  const [one, other] = both.map((each) => JSON.stringify([each, [each.url, ...each.secrets].map(reveal)]));
  return one === other;
}

function urlFault(text: string, name: string): string | undefined {
  const url = URL.parse(text);
  return url?.protocol === 'https:' && url.username === '' && url.password === '' && url.hash === ''
    ? undefined
    : `${name}/url must be an https:// address without credentials and fragment`;
}

/** Describes a fault without quoting values, which are secret. */
function endpointFault({ instancePath, keyword, message, params, propertyName, parentSchema }: ErrorObject): string {
  const where = describeLocation(instancePath.replace(/^\/endpoints/, ''), 'an endpoint') || 'the file';
  if (keyword === 'propertyNames' || propertyName !== undefined) {
    return 'an endpoint has the name of its consumer: 1 to 63 of a to z, 0 to 9 and hyphens, beginning with a letter';
  }
  if (keyword === 'additionalProperties')
    return `${where} has another field than ${Object.keys(parentSchema?.properties).join(', ')}`;
  if (keyword === 'maxProperties') return `there are more than ${params.limit} endpoints`;
  if (keyword === 'enum') return `${where} must be one of ${params.allowedValues.join(', ')}`;
  if (keyword === 'pattern')
    return `${where} must be whsec_ and the base64 of 24 to 64 bytes: openssl rand -base64 32 makes such`;
  return `${where} ${message}`;
}
