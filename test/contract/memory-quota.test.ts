import { createMemoryQuota } from '../../gateway/quota/memory-quota.ts';
import { quotaContract } from './quota-contract.ts';

quotaContract('memory', { open: async (policy) => createMemoryQuota(policy), redisUrl: () => undefined });
