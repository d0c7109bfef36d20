import type { PlantedBug } from './planted-bug.ts';

const BACKUP = 'src/store/sqlite/database-file.ts';

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
    name: 'doctor --records does not read leads',
    inSoak: true,
    suite: 'test/contract/sqlite-store.test.ts',
    caughtBy: 'names each record that cannot be read, and nothing of what is in it',
    patches: [
      {
        file: 'src/usecases/every-record.ts',
        find: 'yield* counted((after) => store.walkLeads(id, after, PAGE));',
        put: '',
      },
    ],
  },
  {
    name: 'doctor --records reads a broken file as if it were sound',
    suite: 'test/e2e/doctor.test.ts',
    caughtBy: 'finds pages of a file that no table has',
    patches: [{ file: 'src/store/sqlite/sqlite-store.ts', find: "broken !== 'ok'", put: 'false' }],
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
