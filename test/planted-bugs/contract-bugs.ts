import type { PlantedBug } from './planted-bug.ts';

const RULES = 'test/integration/request-rules.test.ts';
const agrees = (rpc: string) => `${rpc}: the rules in the contract and the core agree on its request`;

/** Faults by which the core differs from the rules in the RPC contract. */
export const CONTRACT_BUGS: readonly PlantedBug[] = [
  {
    name: 'a display name may be one code point longer than the contract allows',
    suite: RULES,
    caughtBy: agrees('LeadIntakeService/CreateLead'),
    patches: [
      {
        file: 'common/rules/field-rules.ts',
        find: 'displayName: { min: 1, max: 160 }',
        put: 'displayName: { min: 1, max: 161 }',
      },
    ],
  },
  {
    name: 'a quota of 1 is refused',
    suite: RULES,
    caughtBy: agrees('DirectoryService/PutApiKeyQuota'),
    patches: [{ file: 'src/domain/quota-limit.ts', find: '(value as number) >= 1', put: '(value as number) > 1' }],
    inSoak: true,
  },
  {
    name: 'only ASCII white space is refused in an email address',
    suite: RULES,
    caughtBy: agrees('LeadIntakeService/EraseContact'),
    patches: [
      {
        file: 'common/rules/field-rules.ts',
        find: '/^[^\\s\\p{Cc}]*$/u',
        put: '/^[^ \\t\\p{Cc}]*$/u',
      },
    ],
    inSoak: true,
  },
];
