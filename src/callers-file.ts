import { hash } from 'node:crypto';
import { Ajv, type ErrorObject } from 'ajv';
import { CRM_ID_PATTERN } from '../common/rules/field-rules.ts';
import { CALLER_ROLES, type CallerRole } from './domain/caller.ts';

/** A token of a caller, as the file has it. */
export interface CallerToken {
  /** 64 hexadecimal digits. */
  readonly sha256: string;
  /** The day it was made. */
  readonly created?: string;
}

/** What a certificate says of whom it was issued to: values by attribute, as `{ "CN": "crm", "O": "Example" }`. */
export type CertificateSubject = Readonly<Record<string, string | readonly string[]>>;

/** A caller, as the file has it. */
export interface CallerEntry {
  readonly may: readonly CallerRole[];
  /** The ids of its studios; left out: all. */
  readonly studios?: readonly string[];
  /** The older one first. */
  readonly tokens?: readonly CallerToken[];
  readonly certificateSubject?: CertificateSubject;
}

/** Callers by name. */
export type CallerEntries = Readonly<Record<string, CallerEntry>>;

/** How many callers there may be: each is a label's value of a metric. */
export const MAX_NAMED_CALLERS = 500;

/** How many tokens a caller may have: the one it is to present, and the one it presents until then. */
export const MAX_TOKENS = 2;

const NAME = '^[a-z0-9][a-z0-9._-]{0,62}$';

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
          may: { type: 'array', minItems: 1, uniqueItems: true, items: { enum: CALLER_ROLES } },
          studios: {
            type: 'array',
            minItems: 1,
            uniqueItems: true,
            items: { type: 'string', pattern: CRM_ID_PATTERN },
          },
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

/**
 * Reads what a file of callers says.
 *
 * @throws Error whose message ends the sentence "The file …", with every fault
 */
export function parseCallers(text: string): CallerEntries {
  const parsed = fromJson(text);
  if (!isCallersFile(parsed)) {
    const faults = new Set((isCallersFile.errors ?? []).map(sentenceOf));
    throw new Error(`is no file of callers: ${[...faults].join('; ')}`);
  }
  const names = new Map<string, string>();
  for (const [name, caller] of Object.entries(parsed.callers)) {
    for (const credential of credentialsOf(caller)) {
      const other = names.get(credential);
      if (other !== undefined) throw new Error(`names one token or certificate twice: for ${other} and for ${name}`);
      names.set(credential, name);
    }
  }
  return parsed.callers;
}

/** What is kept of a token: its SHA-256, in hexadecimal digits. */
export const tokenHash = (token: string): string => hash('sha256', token, 'hex');

/** How a token's hash begins: tells a caller's two apart, and says nothing of the token. */
export const tokenDigits = (sha256: string): string => sha256.slice(0, 8);

/** What a caller is known by: hashes of tokens, and the form of a subject. */
export const credentialsOf = ({ tokens = [], certificateSubject }: CallerEntry): string[] => [
  ...tokens.map(({ sha256 }) => sha256),
  ...(certificateSubject ? [subjectForm(certificateSubject)] : []),
];

/** The same text for all that say the same of a subject, and for nothing else. */
export const subjectForm = (subject: CertificateSubject): string =>
  JSON.stringify(Object.entries(subject).sort(([a], [b]) => (a < b ? -1 : 1)));

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // What the parser says quotes the file.
    throw new Error('is not JSON');
  }
}

/** Never with a value: who has put a token where its hash belongs would find that in the log. */
function sentenceOf({ instancePath, keyword, message, params, propertyName }: ErrorObject): string {
  const where = instancePath.replace(/^\/callers\/?/, '') || 'the file';
  if (keyword === 'propertyNames' || propertyName !== undefined) {
    return 'names have 1 to 63 of a to z, 0 to 9, dots, underscores and hyphens, and begin with a letter or digit';
  }
  if (keyword === 'enum') return `${where} must be one of ${params.allowedValues.join(', ')}`;
  return `${where} ${message}`;
}
