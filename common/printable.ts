/** Characters that control a terminal, or change how the rest of a line is displayed. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/**
 * Returns a text as one printable line, with unprintable characters escaped as in JSON. Text from others is only printed to a terminal in
 * this form. Otherwise it could clear the screen and forge output.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Does what `printable` does, but keeps line breaks, which this program wrote. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** Returns a value as indented JSON that is safe to print, and parses to the same value. */
export function printableJson(value: unknown): string {
  return printableLines(JSON.stringify(value, null, 2));
}
