import type { PlantedBug } from './planted-bug.ts';

const BACKUP = 'src/store/sqlite/database-file.ts';
const INSPECTION = 'src/store/sqlite/inspect.ts';

const DAMAGE = 'test/contract/sqlite-damage.test.ts';

const FAULTS = 'test/e2e/command-faults.test.ts';
const SECRET_LOST = 'a secret that cannot be written works no more, and that is said';

/** Faults that operators see: terminals, backups, metrics and load shedding. */
export const OPERATOR_BUGS: readonly PlantedBug[] = [
  {
    name: 'an import by a command does not say who has run it',
    inSoak: true,
    suite: 'test/integration/audit.test.ts',
    caughtBy:
      'every command that writes leaves an event with the user, the machine and the id of the run, or has a reason',
    patches: [
      {
        file: 'operator/import-leads.ts',
        find: '{ studioId, leads: batch.map(({ lead }) => lead), ...BY_HAND }',
        put: '{ studioId, leads: batch.map(({ lead }) => lead) }',
      },
    ],
  },
  {
    name: 'doctor prints responses of the core unescaped',
    suite: 'test/security/terminal.test.ts',
    caughtBy: 'escapes the response of a hostile core to doctor',
    patches: [{ file: 'operator/commands/deployment-commands.ts', find: 'printable(says)', put: 'says' }],
  },
  {
    name: 'an open lead that does not hold its contact is not found in a database',
    inSoak: true,
    suite: DAMAGE,
    caughtBy: 'DELETE FROM contact_claims WHERE lead_number = 3',
    patches: [{ file: 'src/store/damage.ts', find: 'read && isClaimed === false', put: 'false' }],
  },
  {
    name: 'what is left of erased leads is not found in a database',
    inSoak: true,
    suite: DAMAGE,
    caughtBy: "UPDATE leads SET display_name = 'Ada' WHERE number = 7",
    patches: [{ file: INSPECTION, find: 'row[at.isPersonal] === 1', put: 'false' }],
  },
  {
    name: 'on MongoDB, what looks wrong to an inspection is told without a second look',
    inSoak: true,
    suite: 'test/contract/mongo-damage.test.ts',
    caughtBy: 'looks wrong only if it does so twice',
    patches: [
      {
        file: 'src/store/mongo/inspect.ts',
        find: 'again.some((other) => isDeepStrictEqual(each, other))',
        put: 'again !== null',
      },
    ],
  },
  {
    name: 'of a table no more than a page is inspected',
    suite: DAMAGE,
    caughtBy: 'is found behind more rows than are read at a time',
    patches: [{ file: INSPECTION, find: 'rows.length === PAGE', put: 'false' }],
  },
  {
    name: 'a backup overwrites a file that was made meanwhile',
    inSoak: true,
    suite: 'test/e2e/backup.test.ts',
    caughtBy: 'a file that is made while a backup is written is not overwritten',
    patches: [{ file: BACKUP, find: 'renameToNew(partial, file)', put: 'rename(partial, file)' }],
  },
  {
    name: 'a key whose secret is lost stays valid',
    suite: FAULTS,
    caughtBy: SECRET_LOST,
    patches: [
      {
        file: 'operator/commands/key-commands.ts',
        find: 'await revokeApiKey(deps, { studioId, memberId: null, keyId: key.id, ...BY_HAND });',
        put: '',
      },
    ],
  },
];
