import type { PlantedBug } from './planted-bug.ts';

const SQLITE = 'test/contract/sqlite-store.test.ts';
const MONGO = 'test/contract/mongo-store.test.ts';
const CHECKED = 'src/store/checked.ts';

const UNREADABLE_LEAD = "a lead whose stage is 'qualified': only requests for it fail, and its claims stay";

const CONCURRENT_PUTS =
  'of 30 members and 30 sources put concurrently through 1 store(s), as many are written as the bounds allow';

/** Faults of handling records that this release cannot read. */
export const UNREADABLE_BUGS: readonly PlantedBug[] = [
  {
    name: 'an unknown stage is accepted',
    suite: SQLITE,
    caughtBy: UNREADABLE_LEAD,
    patches: [{ file: CHECKED, find: "if (!isOneOf(LEAD_STAGES, read.stage)) return 'stage';", put: '' }],
  },
  {
    name: 'a page ends at consecutive unreadable leads',
    suite: SQLITE,
    caughtBy: 'many unreadable leads hide no readable ones and do not fill pages',
    patches: [{ file: 'src/store/pages.ts', find: 'reads < MAX_READS || $MORE', put: 'reads < 1 || $MORE' }],
  },
  {
    name: 'a studio with an unknown status is active',
    suite: SQLITE,
    caughtBy: "a studio whose status is 'closed': it is suspended until it is put again",
    patches: [
      {
        file: CHECKED,
        find: "status: 'suspended'",
        put: "status: 'active'",
      },
    ],
  },
  {
    name: 'a former region that cannot be read is forgotten',
    suite: SQLITE,
    caughtBy: "a region whose claim_renewal is 'soon': it counts as none, and its studio stays readable and can be put",
    patches: [
      {
        file: 'src/store/release-1-1.ts',
        find: 'Array.isArray(formerRules) ? formerRules.map($REGION) : [null]',
        put: 'Array.isArray(formerRules) ? formerRules.map($REGION) : []',
      },
    ],
    inSoak: true,
  },
  {
    name: 'an unreadable key frees its slot',
    suite: SQLITE,
    caughtBy: "a key whose name is '': it has no credential, is listed, keeps its slot, and can be revoked",
    patches: [
      {
        file: 'src/store/sqlite/api-keys.ts',
        text: 'AND expires_at <= ?',
        put: "AND (name = '' OR expires_at <= ?)",
      },
    ],
    inSoak: true,
  },
  {
    name: 'a studio may have one member and one source above the bound',
    suite: SQLITE,
    caughtBy: CONCURRENT_PUTS,
    patches: [
      {
        file: 'src/store/sqlite/directory.ts',
        find: '(counting.get(studioId)?.count as number) >= max',
        put: '(counting.get(studioId)?.count as number) > max',
      },
    ],
    inSoak: true,
  },
  {
    name: 'an unknown word is sent as undefined',
    suite: 'test/unit/convert.test.ts',
    caughtBy: 'the stage of a lead',
    patches: [
      {
        file: 'src/rpc/convert.ts',
        find: 'if (wire === undefined) throw $ERROR;',
        put: 'if (wire === null) throw $ERROR;',
      },
    ],
  },
];

/** The same on MongoDB, where reads of concurrent callers are batched. */
export const UNREADABLE_MONGO_BUGS: readonly PlantedBug[] = [
  {
    name: 'an unreadable lead fails its whole batch of reads',
    suite: MONGO,
    caughtBy: UNREADABLE_LEAD,
    patches: [
      {
        file: 'src/store/mongo/leads.ts',
        find: '[nameOf(document._id), document]',
        put: '[nameOf(document._id), (readableOrThrow(presentLeadOf(document)), document)]',
      },
    ],
  },
  {
    name: 'a studio with an unknown status cannot be put',
    suite: MONGO,
    caughtBy: "a studio whose status is 'closed': it is suspended until it is put again",
    patches: [
      { file: 'src/store/mongo/directory.ts', find: 'status: found.status ?? null', put: 'status: before.status' },
    ],
    inSoak: true,
  },
  {
    name: 'the bound of members and sources is checked before the write',
    suite: MONGO,
    caughtBy: CONCURRENT_PUTS,
    patches: [
      {
        file: 'src/store/mongo/directory.ts',
        find: "return { outcome: 'put', where, update: $UPDATE, events: $EVENTS };",
        put: "return { outcome: 'put', where: {}, update: $UPDATE, events: $EVENTS };",
      },
    ],
  },
  {
    name: 'a studio without room for an event cannot be suspended',
    suite: MONGO,
    caughtBy: 'can be suspended, with an event that replaces the earlier ones',
    patches: [
      {
        file: 'src/store/mongo/apply-once.ts',
        find: 'if (record || !isReason) throw error;',
        put: 'if (record || !isReason || isTooLarge) throw error;',
      },
    ],
  },
  {
    name: 'reads of leads fetch their history',
    suite: 'test/contract/mongo-plans.test.ts',
    caughtBy: 'only reads of audit events fetch the history',
    patches: [
      {
        file: 'src/store/mongo/documents.ts',
        find: 'projection: { history: 0, appliedRequests: 0 }',
        put: 'projection: {}',
      },
    ],
    inSoak: true,
  },
  {
    name: 'an unreadable key does not count towards the bound',
    suite: MONGO,
    caughtBy: 'a key whose name is undefined: it has no credential, is listed, keeps its slot, and can be revoked',
    patches: [
      {
        file: 'src/store/mongo/api-keys.ts',
        find: 'return key instanceof UnreadableRecord ? !isPast(holder.expiresAt, now) : isLive(key, now);',
        put: 'return !(key instanceof UnreadableRecord) && isLive(key, now);',
      },
    ],
  },
  {
    name: 'an unreadable key keeps its slot for ever',
    suite: MONGO,
    caughtBy: 'a key whose name is undefined: it frees its slot once its expiry has passed, if that can be read',
    patches: [
      {
        file: 'src/store/mongo/api-keys.ts',
        find: 'key instanceof UnreadableRecord ? !isPast(holder.expiresAt, now) : isLive(key, now)',
        put: 'key instanceof UnreadableRecord || isLive(key, now)',
      },
    ],
  },
];
