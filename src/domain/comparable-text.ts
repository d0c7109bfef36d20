/**
 * Lower-cases each code point by itself, whatever its neighbours. A code point whose lower case has several (İ) becomes
 * the first of them.
 */
export function lowerCase(text: string): string {
  return Array.from(text, (character) => String.fromCodePoint(character.toLowerCase().codePointAt(0) as number)).join(
    '',
  );
}

/** Returns a text with the decimal digits of every script in ASCII. */
export const withAsciiDigits = (text: string): string => text.replace(/\p{Nd}/gu, asciiDigit);

/** Unicode encodes the decimal digits of every script as runs of ten, each from zero to nine. */
function asciiDigit(digit: string): string {
  const codePoint = digit.codePointAt(0) as number;
  let start = codePoint;
  while (/\p{Nd}/u.test(String.fromCodePoint(start - 1))) start -= 1;
  return String((codePoint - start) % 10);
}
