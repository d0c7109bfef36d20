/** Characters that control a terminal, or change how the rest of a line is displayed. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/**
 * A text in one printable line: unprintable characters are escaped as in JSON. Text from others is only printed to a
 * terminal in this form; otherwise it could clear the screen and forge output.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** `printable` for a text whose line ends come from this program. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** A value as indented JSON that is safe to print, and parses to the same value. */
export function printableJson(value: unknown): string {
  return printableLines(JSON.stringify(value, null, 2));
}
