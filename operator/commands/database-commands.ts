import { readDatabaseUrl } from '../../src/config.ts';
import { backUpDatabase, vacuumDatabase } from '../../src/store/open-store.ts';
import { StoreUnavailable } from '../../src/store/store.ts';
import { createDemo } from '../../src/usecases/create-demo.ts';
import { listAuditEvents } from '../../src/usecases/list-audit-events.ts';
import { listApiKeys, revokeApiKey } from '../../src/usecases/manage-api-keys.ts';
import { BY_HAND } from '../by-hand.ts';
import { progressBar } from '../progress-bar.ts';
import { abortOnSignal, program, runOnStore, runReported, showResult, showSecret } from './program.ts';

/** Adds the commands for the audit log and the database as a whole. */
export function addDatabaseCommands(): void {
  program
    .command('audit <studio>')
    .description('show the audit log of a studio and its keys, or of a lead; newest first')
    .option('--lead <id>', 'lead whose events to show')
    .action((studioId: string, { lead: leadId }: { lead?: string }) =>
      runOnStore((deps) => listAuditEvents(deps, { studioId, leadId })),
    );
  program
    .command('vacuum')
    .description('rewrite a SQLite file without the remains of erased data; writers wait meanwhile')
    .action(() => runReported(async () => showResult(vacuumDatabase(readDatabaseUrl(process.env).reveal()))));
  program
    .command('backup <file>')
    .description('write a snapshot of the SQLite database to a new file, while cores run; Ctrl-C removes the file')
    .action((file: string) =>
      runReported(async () => {
        const ending = abortOnSignal(new StoreUnavailable(`backup interrupted: ${file} was not written`));
        const showProgress = progressBar();
        const onProgress = (written: number, total: number) =>
          showProgress(written, total, () => `${megabytes(written)} of ${megabytes(total)} MB`);
        const databaseUrl = readDatabaseUrl(process.env).reveal();
        await showResult(await backUpDatabase(databaseUrl, file, { onProgress, ending }));
      }),
    );
  program
    .command('demo')
    .description('create a demo studio with a source and a key, unless it exists')
    .action(() =>
      runOnStore(async (deps) => {
        const demo = await createDemo(deps);
        if (demo.secret === null) return demo;
        await showSecret(demo, async () => {
          const { studioId } = demo;
          const { apiKeys } = await listApiKeys(deps, { studioId, memberId: null });
          for (const { id: keyId } of apiKeys) {
            await revokeApiKey(deps, { studioId, memberId: null, keyId, ...BY_HAND });
          }
          return 'the demo key was revoked: create another one with `keys create`';
        });
        return undefined;
      }),
    );
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
