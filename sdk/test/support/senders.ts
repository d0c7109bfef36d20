import { expect } from 'vitest';
import { ROOT } from '../../../test/tools/processes.ts';
import { readConversations, runSuite, type Verdict } from '../../conformance/suite.ts';

/** Topics about the callers of a library, which a sending program lacks. */
const OF_LIBRARIES = ['mistakes'];

/**
 * Runs conversations of the conformance suite, and repeats the failed ones one after the other. On a busy machine a client may be late;
 * if it fails again when it runs alone, the client is at fault.
 */
export async function runPatiently(
  command: readonly string[],
  options: { readonly only: readonly string[]; readonly drivers?: number },
): Promise<readonly Verdict[]> {
  const verdicts = await runSuite(command, { ...options, folder: ROOT });
  const failed = verdicts.filter(({ verdict }) => verdict === 'failed').map(({ name }) => name);
  const again = failed.length === 0 ? [] : await runSuite(command, { folder: ROOT, only: failed, drivers: 1 });
  return verdicts.map((each) => again.find(({ name }) => name === each.name) ?? each);
}

/**
 * Runs the conformance suite with the driver of a sender, which only creates leads.
 *
 * @param cannot the conversations or topics to skip, each with the reason
 */
export async function expectToBeASender(
  command: readonly string[],
  cannot: Readonly<Record<string, string>> = {},
): Promise<void> {
  const without = [...OF_LIBRARIES, ...Object.keys(cannot)];
  const conversations = readConversations().filter(
    ({ name }) => !without.includes(name) && !without.includes(name.split('/')[0] ?? ''),
  );
  const verdicts = await runPatiently(command, { only: conversations.map(({ name }) => name), drivers: 12 });
  expect(verdicts.filter(({ verdict }) => verdict === 'failed')).toEqual([]);
  const unsupported = verdicts.filter(({ verdict }) => verdict === 'not-supported').map(({ name }) => name);
  const withMore = conversations.filter(({ calls }) =>
    calls.some(({ request }) => request.call !== 'createLead' || request.cancelAfterMs !== undefined),
  );
  expect(unsupported.toSorted()).toEqual(withMore.map(({ name }) => name).toSorted());
}
