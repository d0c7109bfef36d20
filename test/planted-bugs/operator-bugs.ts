import type { PlantedBug } from './planted-bug.ts';

const BACKUP = 'src/store/sqlite/backup.ts';

const FAULTS = 'test/e2e/command-faults.test.ts';
const SECRET_LOST = 'a secret that cannot be written works no more, and that is said';

/** Faults that operators see: terminals, backups, metrics and load shedding. */
export const OPERATOR_BUGS: readonly PlantedBug[] = [
  {
    name: 'direction marks are printed on a terminal unescaped',
    suite: 'test/unit/printable.test.ts',
    caughtBy: 'escapes direction marks',
    patches: [{ file: 'common/printable.ts', text: '\\p{Bidi_Control}', put: '' }],
  },
  {
    name: 'doctor prints responses of the core unescaped',
    suite: 'test/security/terminal.test.ts',
    caughtBy: 'escapes the response of a hostile core to doctor',
    patches: [{ file: 'operator/cli-output.ts', find: 'printable(says)', put: 'says' }],
  },
  {
    name: 'the log on a terminal is printed unescaped',
    suite: 'test/security/terminal.test.ts',
    caughtBy: 'the log on a terminal is escaped',
    patches: [{ file: 'common/logger.ts', find: 'JSON.parse(line, printableValue)', put: 'JSON.parse(line)' }],
  },
  {
    name: 'a token has no minimum length',
    suite: 'test/unit/config.test.ts',
    caughtBy: 'that is too short is a fault, without the token in the message: hunter2xxxxxxxxxxxxxxxxxxxxxxxx',
    patches: [{ file: 'common/settings.ts', find: 'value.length < MIN_TOKEN_LENGTH', put: 'value.length === 0' }],
  },
  {
    name: 'a key is authenticated before load shedding refuses its request',
    inSoak: true,
    suite: 'test/crash/overload.test.ts',
    caughtBy: 'is refused while the core is suspended, and served again when it resumes',
    patches: [
      {
        file: 'gateway/plugins/admission.ts',
        find: 'if (refusal) await refusal;',
        put: 'refusal?.catch(() => {});',
      },
      {
        file: 'gateway/plugins/admission.ts',
        find: 'await count(request.state.key, reply);',
        put: 'await refusal; await count(request.state.key, reply);',
      },
    ],
  },
  {
    name: 'an interrupted backup leaves its journal',
    suite: 'test/e2e/backup.test.ts',
    caughtBy: 'a terminal shows the progress of a backup; interrupted by Ctrl-C, it leaves no file',
    patches: [{ file: BACKUP, find: "['', '-journal']", put: "['']" }],
  },
  {
    name: 'the folder of a backup is not flushed to the disk',
    suite: 'test/e2e/backup-on-bad-disks.test.ts',
    caughtBy: 'survives a power cut whole',
    patches: [{ file: BACKUP, find: 'await sync(dirname(resolve(file)));', put: '' }],
    inSoak: true,
  },
  {
    name: 'a backup overwrites a file that was made meanwhile',
    suite: 'test/e2e/backup.test.ts',
    caughtBy: 'a file that is made while a backup is written is not overwritten',
    patches: [{ file: BACKUP, find: 'renameToNew(partial, file)', put: 'rename(partial, file)' }],
  },
  {
    name: 'a backup copies the database file without its log',
    suite: 'test/e2e/backup.test.ts',
    caughtBy: 'a backup has all current data, nothing that was deleted, and is readable by its owner only',
    patches: [
      {
        file: 'src/store/sqlite/backup-process.ts',
        find: "database.prepare('VACUUM INTO ?').run(to);",
        put: "(await import('node:fs')).copyFileSync(from, to);",
      },
    ],
    inSoak: true,
  },
  {
    name: 'the quota metric is up while the quota cannot be counted',
    suite: 'test/e2e/alerts.test.ts',
    caughtBy: 'fires every alert for the failure it is meant for, and has data for every panel of the dashboard',
    patches: [
      {
        file: 'gateway/metrics.ts',
        find: "gauge(registry, 'lead_intake_gateway_quota_up', $ABOUT, isUp(quota))",
        put: "gauge(registry, 'lead_intake_gateway_quota_up', $ABOUT, () => 1)",
      },
    ],
    inSoak: true,
  },
  {
    name: 'a result that cannot be written counts as printed',
    suite: FAULTS,
    caughtBy: 'a file that takes only the beginning of the output is a failure',
    patches: [{ file: 'operator/export-output.ts', find: 'fstatSync(stdout.fd).isFile()', put: 'false' }],
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
  {
    name: 'a token is valid before it is shown',
    suite: FAULTS,
    caughtBy: SECRET_LOST,
    patches: [{ file: 'operator/callers.ts', find: 'await show(token);', put: 'write(); await show(token);' }],
    inSoak: true,
  },
];
