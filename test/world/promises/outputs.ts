import { PHONE_NUMBERS } from '../contacts.ts';
import type { Life } from '../life.ts';

/** Searches the output of the processes for secrets and personal data. */
export function brokenOfOutputs({ world, keyBySecret, personal }: Life): string[] {
  const printed = world.outputs().join('\n');
  const found = [
    ...[...keyBySecret.keys()].map((secret) => ['a secret', secret] as const),
    ['the token of the core', world.coreToken] as const,
    ['something of a person', personal] as const,
    ...PHONE_NUMBERS.map((value) => ['a phone number', value] as const),
  ].filter(([, text]) => printed.includes(text));
  return found.map(([what, text]) => `${what} is printed: ${lineWith(printed, text)}`);
}

const lineWith = (printed: string, text: string): string =>
  printed.split('\n').find((line) => line.includes(text)) ?? text;
