import { hash } from 'node:crypto';
import { Ajv, type ErrorObject } from 'ajv';
import { CONSUMER_NAME_PATTERN, CRM_ID_PATTERN, MAX_CONSUMERS } from '../common/rules/field-rules.ts';
import { describeLocation, parseStrictJson } from '../common/strict-json.ts';
import { CALLER_ROLES, type CallerRole } from './domain/caller.ts';

export interface CallerToken {
  /** 64 hexadecimal digits. */
  readonly sha256: string;
  /** The day of its creation. */
  readonly created?: string;
}

/** The subject of a certificate: values by attribute, such as `{ "CN": "crm", "O": "Example" }`. */
export type CertificateSubject = Readonly<Record<string, string | readonly string[]>>;

export interface CallerEntry {
  readonly may: readonly CallerRole[];
  /** The ids of the studios it may access; absent: all. */
  readonly studios?: readonly string[];
  /** The names of its consumers of the change feed; only with the role `feed`. */
  readonly consumers?: readonly string[];
  /** Oldest first. */
  readonly tokens?: readonly CallerToken[];
  readonly certificateSubject?: CertificateSubject;
}

export type CallerEntries = Readonly<Record<string, CallerEntry>>;

/** The maximum number of callers. Each name is a label value of a metric. */
export const MAX_NAMED_CALLERS = 500;

/** The maximum number of tokens of a caller. During a rotation it has the old one and the new one. */
export const MAX_TOKENS = 2;

const NAME = '^[a-z0-9][a-z0-9._-]{0,62}$';

const setSchema = (items: object) => ({ type: 'array', minItems: 1, uniqueItems: true, items });

const SCHEMA = {
  type: 'object',
  required: ['callers'],
  additionalProperties: false,
  properties: {
    callers: {
      type: 'object',
      maxProperties: MAX_NAMED_CALLERS,
      propertyNames: { pattern: NAME },
      additionalProperties: {
        type: 'object',
        required: ['may'],
        additionalProperties: false,
        properties: {
          may: setSchema({ enum: CALLER_ROLES }),
          studios: setSchema({ type: 'string', pattern: CRM_ID_PATTERN }),
          consumers: { ...setSchema({ type: 'string', pattern: CONSUMER_NAME_PATTERN }), maxItems: MAX_CONSUMERS },
          tokens: {
            type: 'array',
            maxItems: MAX_TOKENS,
            items: {
              type: 'object',
              required: ['sha256'],
              additionalProperties: false,
              properties: { sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' }, created: { type: 'string' } },
            },
          },
          certificateSubject: {
            type: 'object',
            minProperties: 1,
            additionalProperties: {
              anyOf: [
                { type: 'string', minLength: 1 },
                { type: 'array', minItems: 2, items: { type: 'string', minLength: 1 } },
              ],
            },
          },
        },
      },
    },
  },
};

const isCallersFile = new Ajv({ allErrors: true, allowUnionTypes: true }).compile<{ callers: CallerEntries }>(SCHEMA);

/** Parses a callers file. @throws Error whose message completes the sentence "The file …" and lists all faults */
export function parseCallers(text: string): CallerEntries {
  const parsed = parseStrictJson(text);
  if (!isCallersFile(parsed)) {
    const faults = new Set((isCallersFile.errors ?? []).map(callerFault));
    throw new Error(`is not a callers file: ${[...faults].join('; ')}`);
  }
  const names = new Map<string, string>();
  for (const [name, caller] of Object.entries(parsed.callers)) {
    const needsConsumers = caller.may.includes('feed') && !caller.may.includes('crm');
    if (needsConsumers && !caller.consumers)
      throw new Error(`must list consumers for ${name}, which has the role feed`);
    if (caller.consumers && !caller.may.includes('feed'))
      throw new Error(`lists consumers for ${name}, which lacks the role feed`);
    for (const credential of listCredentials(caller)) {
      const other = names.get(credential);
      if (other !== undefined) throw new Error(`has the same token or certificate twice: for ${other} and for ${name}`);
      names.set(credential, name);
    }
  }
  return parsed.callers;
}

/** Returns the stored form of a token: its SHA-256, in hexadecimal digits. */
export const tokenHash = (token: string): string => hash('sha256', token, 'hex');

/** Returns the first digits of a token's hash: they identify one of a caller's tokens without revealing it. */
export const tokenDigits = (sha256: string): string => sha256.slice(0, 8);

/** Returns the lookup keys of a caller's credentials: the hashes of its tokens, and its canonical certificate subject. */
const listCredentials = ({ tokens = [], certificateSubject }: CallerEntry): string[] => [
  ...tokens.map(({ sha256 }) => sha256),
  ...(certificateSubject ? [canonicalSubject(certificateSubject)] : []),
];

/** Returns a text for a subject that does not depend on the order of its attributes. */
export const canonicalSubject = (subject: CertificateSubject): string =>
  JSON.stringify(Object.entries(subject).sort(([a], [b]) => (a < b ? -1 : 1)));

/** Describes a fault without quoting values: a token given instead of its hash must not reach the log. */
function callerFault({ instancePath, keyword, message, params, propertyName }: ErrorObject): string {
  const where = describeLocation(instancePath.replace(/^\/callers/, ''), 'a caller') || 'the file';
  if (keyword === 'propertyNames' || propertyName !== undefined) {
    return 'names have 1 to 63 of a to z, 0 to 9, dots, underscores and hyphens, and begin with a letter or digit';
  }
  if (keyword === 'enum') return `${where} must be one of ${params.allowedValues.join(', ')}`;
  return `${where} ${message}`;
}
