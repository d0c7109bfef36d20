import fc from 'fast-check';
import { expect, test } from 'vitest';
import { printable, printableJson, printableLines } from '../../common/printable.ts';

test.each([
  ['an escape sequence', '\u001b[2J', '\\u001b[2J'],
  ['its form in one character', '\u009b2J', '\\u009b2J'],
  ['carriage return and backspace', 'a\rb\bc', 'a\\u000db\\u0008c'],
  ['line ends', 'a\nb\u0085c\u2028d\u2029e', 'a\\u000ab\\u0085c\\u2028d\\u2029e'],
  ['invisible characters', 'a\0b\tc\u007f', 'a\\u0000b\\u0009c\\u007f'],
  ['direction marks', '\u202ea\u2066b\u200fc\u061cd', '\\u202ea\\u2066b\\u200fc\\u061cd'],
])('escapes %s for a terminal', (_, text, shown) => {
  expect(printable(text)).toBe(shown);
});

test('printing does not change ordinary text', () => {
  for (const text of ['Zoë Müller-Ωmega', '日本語 العربية עברית', '👩‍👩‍👧 é́', 'C:\\new "x"'])
    expect(printable(text)).toBe(text);
});

test('printing in lines keeps the line feeds of a text', () => {
  expect(printableLines('a\nb\rc')).toBe('a\nb\\u000dc');
});

test('JSON for a terminal has the same value, and no control characters except line feeds', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: fc.nat(0x2fff).map((code) => String.fromCodePoint(code)) }), (value) => {
      const json = printableJson(value);
      expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(value)));
      expect(json.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u);
    }),
  );
});
