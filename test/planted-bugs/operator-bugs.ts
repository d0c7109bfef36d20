import type { PlantedBug } from './planted-bug.ts';

const FAULTS = 'test/e2e/command-faults.test.ts';
const SECRET_LOST = 'a secret that cannot be written works no more, and that is said';

/** Faults that operators see: terminals, backups, metrics and load shedding. */
export const OPERATOR_BUGS: readonly PlantedBug[] = [
  {
    name: 'doctor prints responses of the core unescaped',
    suite: 'test/security/terminal.test.ts',
    caughtBy: 'escapes the response of a hostile core to doctor',
    patches: [{ file: 'operator/commands/deployment-commands.ts', find: 'printable(says)', put: 'says' }],
  },
  {
    name: 'doctor --records reads a broken file as if it were sound',
    suite: 'test/e2e/doctor.test.ts',
    caughtBy: 'finds pages of a file that no table has',
    patches: [{ file: 'src/store/sqlite/sqlite-store.ts', find: "broken !== 'ok'", put: 'false' }],
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
