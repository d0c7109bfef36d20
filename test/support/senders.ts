import { expect } from 'vitest';
import { readConversations, runSuite } from '../../sdk/conformance/suite.ts';
import { ROOT } from './processes.ts';

/**
 * Runs the conformance suite with the driver of a sender: it creates leads, and nothing else.
 *
 * @param cannot the conversations that it cannot hold, each with the reason: all others must pass, and these must not
 */
export async function expectToBeASender(
  command: readonly string[],
  cannot: Readonly<Record<string, string>> = {},
): Promise<void> {
  const verdicts = await runSuite(command, { folder: ROOT });
  const failed = verdicts.filter(({ verdict }) => verdict === 'failed');
  expect(failed.filter(({ name }) => !(name in cannot))).toEqual([]);
  expect(failed.map(({ name }) => name).toSorted()).toEqual(Object.keys(cannot).toSorted());
  const unsupported = verdicts.filter(({ verdict }) => verdict === 'not-supported').map(({ name }) => name);
  const withMore = readConversations().filter(({ calls }) =>
    calls.some(({ request }) => request.call !== 'createLead' || request.cancelAfterMs !== undefined),
  );
  expect(unsupported.toSorted()).toEqual(withMore.map(({ name }) => name).toSorted());
}
