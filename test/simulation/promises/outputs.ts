import { PHONE_NUMBERS } from '../contacts.ts';
import type { Simulation } from '../simulation.ts';

/** Searches the output of the processes for secrets and personal data. */
export function outputViolations({ world, keyBySecret, personal }: Simulation): string[] {
  const printed = world.outputs().join('\n');
  const found = [
    ...[...keyBySecret.keys()].map((secret) => ['a secret', secret] as const),
    ['the token of the core', world.coreToken] as const,
    ['personal data', personal] as const,
    ...PHONE_NUMBERS.map((value) => ['a phone number', value] as const),
  ].filter(([, text]) => printed.includes(text));
  return found.map(([what, text]) => `${what} is printed: ${lineWith(printed, text)}`);
}

const lineWith = (printed: string, text: string): string =>
  printed.split('\n').find((line) => line.includes(text)) ?? text;
