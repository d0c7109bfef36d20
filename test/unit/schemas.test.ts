import { describe, expect, test } from 'vitest';
import {
  captureFault,
  DATA_FIELDS,
  type Fault,
  pageTokenFault,
  TEXT_FIELDS,
  uuidFault,
} from '../../common/rules/field-rules.ts';
import { contactSchemas, cursorSchema, leadCaptureSchema, uuidSchema } from '../../gateway/routes/schemas.ts';
import { expectValid } from '../support/documented.ts';

const [email, phone] = contactSchemas as [(typeof contactSchemas)[number], (typeof contactSchemas)[number]];
const ASTRAL = '😀';
const lengths = (...all: readonly number[]) =>
  all.flatMap((length) => ['x', '1', ASTRAL].map((character) => character.repeat(length)));
const UUID = '0b4c1d6a-9d3e-4a53-8a5f-6f1f0f0d7c11';

/** Texts at every bound and of every kind that a rule distinguishes. */
const TEXTS: readonly string[] = [
  ...lengths(0, 1, 3, 4, 5, 63, 64, 65, 159, 160, 161, 253, 254, 255, 511, 512, 513, 1999, 2000, 2001),
  ...lengths(252, 253).map((local) => `${local}@b`),
  ...Array.from({ length: 0x180 }, (_, code) => String.fromCharCode(code)).flatMap((character) => [
    character,
    `ada${character}@example.org`,
    `ada@example.org${character}`,
    `12345${character}`,
  ]),
  ...['\u2028', '\u2003', '\u3000', '\ufeff', '\u200b', '@'].map((character) => `ada${character}@example.org`),
  ...['@', 'a@', '@b', 'a@b', 'a@b@c', '1-2-3', '٠١٢٣٤', '-_-_-', 'AQ_-', 'AQ=='],
  ...[UUID, UUID.toUpperCase(), UUID.replaceAll('-', ''), `{${UUID}}`, `urn:uuid:${UUID}`, `${UUID}\n`, `${UUID}0`],
  ...[...'0123456789abcdefABCDEFgG'].flatMap((digit) => [
    UUID.replace('-4', `-${digit}`),
    UUID.replace('-8', `-${digit}`),
    UUID.replace(/1$/, digit),
    UUID.replaceAll(/[0-9a-f]/g, digit),
  ]),
];

test('a creation in the API document has each field of a lead', () => {
  expect(Object.keys(leadCaptureSchema.properties)).toEqual(DATA_FIELDS);
});

describe('a schema of the document and the rule of the core accept the same texts', () => {
  test.each<[string, object, (text: string) => Fault]>([
    ...TEXT_FIELDS.map((field): [string, object, (text: string) => Fault] => [
      field,
      leadCaptureSchema.properties[field],
      (text) => captureFault(field, text),
    ]),
    ['id, Idempotency-Key', uuidSchema, uuidFault],
    ['cursor', cursorSchema, pageTokenFault],
  ])('the schema and the rule of the core accept the same texts: %s', (_, schema, fault) => {
    for (const text of TEXTS) expect({ text, allowed: allows(schema, text) }).toEqual({ text, allowed: !fault(text) });
  });

  test('schema and rule agree on email, except for C1 control characters', () => {
    const beyondAscii = /[\x80-\x9f]/g;
    for (const text of TEXTS) {
      const allowed = !captureFault('email', text.replaceAll(beyondAscii, 'x'));
      expect({ text, allowed: allows(email.properties.value, text) }).toEqual({ text, allowed });
    }
  });

  test('schema and rule agree on phone, except for the number of digits', () => {
    for (const text of TEXTS) {
      const fault = captureFault('phone', text);
      const allowed = !fault || fault === 'must contain at least 3 digits';
      expect({ text, allowed: allows(phone.properties.value, text) }).toEqual({ text, allowed });
    }
  });
});

function allows(schema: object, value: unknown): boolean {
  try {
    expectValid('text', schema, value);
    return true;
  } catch {
    return false;
  }
}
