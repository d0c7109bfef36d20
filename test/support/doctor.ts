import { expect } from 'vitest';
import { examine } from '../../operator/doctor/examine.ts';
import { CLI, executed } from './command-line.ts';

/** Returns the findings of `doctor` about one subject, without those that are ok. */
export async function wrongWith(what: string, part: 'core' | 'gateway' | 'relay', env: Record<string, string>) {
  const findings = (await examine([part], env)).filter((finding) => finding.what === what);
  expect(findings.length).toBeGreaterThan(0);
  return findings.filter(({ verdict }) => verdict !== 'ok').map(({ verdict, says }) => `${verdict}: ${says}`);
}

/** Returns the faults that `doctor` finds by reading every record. */
export async function wrongWithRecords(env: Record<string, string>): Promise<string[]> {
  const findings = await examine(['core'], env, () => {});
  return findings.filter(({ what, verdict }) => what === 'records' && verdict === 'fault').map(({ says }) => says);
}

/** Runs `lead-intake doctor`. */
export async function doctor(
  env: Record<string, string>,
  ...options: string[]
): Promise<{ status: number; printed: string }> {
  const { code = 0, stdout } = await executed(CLI, [...options, 'doctor'], { env }).catch((error) => error);
  return { status: code, printed: stdout };
}
