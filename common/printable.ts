/** What a terminal obeys, or lets change how the rest of a line reads, instead of showing it. */
const NOT_SEEN = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/**
 * A text in one line for the eyes: what a terminal would not show is written as JSON escapes it. Whatever others sent goes
 * to a terminal in this form only, or it could clear the screen and write there what it likes.
 */
export function printable(text: string): string {
  return text.replace(NOT_SEEN, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The same for a text whose line ends are ours. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** A value as JSON, indented, which a terminal shows as it is: the same value for programs. */
export function printableJson(value: unknown): string {
  return printableLines(JSON.stringify(value, null, 2));
}
