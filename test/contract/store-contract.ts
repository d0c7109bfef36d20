import { afterEach, beforeEach, describe } from 'vitest';
import { apiKeyContract } from './api-key-contract.ts';
import { auditContract } from './audit-contract.ts';
import { changeLeadStageContract, updateLeadContract } from './change-lead-contract.ts';
import { consumerContract } from './consumer-contract.ts';
import { createLeadContract } from './create-lead-contract.ts';
import { directoryContract } from './directory-contract.ts';
import { durabilityContract } from './durability-contract.ts';
import { enquiryContract } from './enquiry-contract.ts';
import { leadErasureContract } from './lead-erasure-contract.ts';
import { oddRecordsContract } from './odd-records-contract.ts';
import type { Damage, OpenedStore } from './opened-store.ts';
import { filterContract, findLeadsContract, listLeadsContract } from './read-leads-contract.ts';
import { repeatedChangesContract } from './repeated-changes-contract.ts';
import { requestLogContract } from './request-log-contract.ts';
import { restoreContract } from './restore-contract.ts';
import { retentionContract } from './retention-contract.ts';
import { testStudioContract } from './test-studio-contract.ts';
import { uniquenessContract } from './uniqueness-contract.ts';
import { everyRecordContract, unreadableRecordsContract } from './unreadable-records-contract.ts';

/**
 * Which part of the contract runs: `whole`; `adapter`: without tests of code that all adapters share; `readable`: also without
 * unreadable records, for simulated databases.
 */
export type Extent = 'whole' | 'adapter' | 'readable';

/**
 * Tests everything that `src/store/store.ts` promises, for one adapter. Each test gets an empty store.
 *
 * @param damages values that the database can hold and the store never writes
 */
export function storeContract(
  adapter: string,
  damages: readonly Damage[],
  open: () => Promise<OpenedStore>,
  extent: Extent,
): void {
  const isWhole = extent === 'whole';
  describe(`store contract: ${adapter}`, () => {
    let current: OpenedStore;
    const opened = () => current;

    beforeEach(async () => {
      current = await open();
    });
    afterEach(() => current.dispose());

    createLeadContract(opened);
    enquiryContract(damages, opened);
    changeLeadStageContract(opened);
    updateLeadContract(opened);
    findLeadsContract(opened);
    listLeadsContract(opened);
    filterContract(opened, isWhole);
    leadErasureContract(opened);
    consumerContract(damages, opened);
    testStudioContract(opened);
    restoreContract(damages, opened);
    retentionContract(damages, opened, isWhole);
    uniquenessContract(damages, opened);
    apiKeyContract(opened);
    directoryContract(opened);
    repeatedChangesContract(opened);
    auditContract(opened);
    requestLogContract(damages, opened);
    durabilityContract(opened);
    if (extent === 'readable') return;
    unreadableRecordsContract(damages, opened);
    everyRecordContract(damages, opened);
    oddRecordsContract(damages, opened, isWhole);
  });
}
