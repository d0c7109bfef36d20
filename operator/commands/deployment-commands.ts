import { text } from 'node:stream/consumers';
import { Argument, Option } from 'commander';
import { printable, printableJson } from '../../common/printable.ts';
import { readDatabaseUrl } from '../../src/config.ts';
import { backUpDatabase, vacuumDatabase } from '../../src/store/open-store.ts';
import { StoreUnavailable } from '../../src/store/port/faults.ts';
import { createDemo } from '../../src/usecases/create-demo.ts';
import type { Dependencies } from '../../src/usecases/dependencies.ts';
import { exportAuditEvents } from '../../src/usecases/export-audit.ts';
import { listApiKeys, revokeApiKey } from '../../src/usecases/manage-api-keys.ts';
import { listAuditEvents } from '../../src/usecases/studios.ts';
import { Api } from '../../verify/api.ts';
import { reportText } from '../../verify/report-text.ts';
import { CannotVerify, preflight, verify } from '../../verify/verify.ts';
import { BY_HAND, CommandFault } from '../command.ts';
import type { Part } from '../doctor/examine.ts';
import type { Finding } from '../doctor/finding.ts';
import { print } from '../standard-output.ts';
import { dateOrTime } from './options.ts';
import {
  abortOnSignal,
  isJson,
  program,
  progressPrinter,
  runOnStore,
  runReported,
  showResult,
  showSecret,
} from './program.ts';

/** Adds the commands for the audit log and for the database as a whole. */
export function addDatabaseCommands(): void {
  const audit = program.command('audit').description('show and export the audit log');
  audit
    .command('show [studio]', { isDefault: true })
    .description(
      'show the audit log of a studio and its keys, or of a lead, newest first; without a studio, events of no studio',
    )
    .option('--lead <id>', 'lead whose events to show')
    .action((studioId: string | undefined, { lead: leadId }: { lead?: string }) =>
      runOnStore((deps) => listAuditEvents(deps, { studioId, leadId })),
    );
  audit
    .command('export')
    .description('write all events as lines of JSON, including events of no studio')
    .option('--since <time>', 'only events from this time on', dateOrTime)
    .option('--until <time>', 'only events before, at least five minutes ago (default: five minutes ago)', dateOrTime)
    .addOption(
      new Option(
        '--resume-token <token>',
        'continue after the line with this resumeToken, in the same range of times',
      ).conflicts(['since', 'until']),
    )
    .action((options: ExportAuditOptions) => runOnStore((deps) => writeAudit(deps, options)));
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
        const showProgress = progressPrinter();
        const onProgress = (written: number, total: number) =>
          showProgress(`${megabytes(written)} of ${megabytes(total)} MB`);
        const databaseUrl = readDatabaseUrl(process.env).reveal();
        await showResult(await backUpDatabase(databaseUrl, file, { onProgress, ending }));
      }),
    );
  program
    .command('demo')
    .description('create a demo studio with a source and a key, unless it exists')
    .action(() =>
      runOnStore(async (deps) => {
        const demo = await createDemo(deps, BY_HAND);
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
      }, 'mayCreate'),
    );
}

interface ExportAuditOptions {
  readonly since?: Date;
  readonly until?: Date;
  readonly resumeToken?: string;
}

/** Writes the events of a range, part by part. The last line of each part has the token that resumes after this part. */
async function writeAudit(deps: Dependencies, { since, until, resumeToken = '' }: ExportAuditOptions): Promise<void> {
  let ended = until;
  for await (const { events, ...part } of exportAuditEvents(deps, { start: since, end: until, resumeToken })) {
    ended = part.end;
    const lines = events.map(({ time, ...event }, index) => {
      const isLast = index === events.length - 1 && part.resumeToken !== '';
      return `${JSON.stringify({ time, ...event, ...(isLast && { resumeToken: part.resumeToken }) })}\n`;
    });
    await print(lines.join(''));
  }
  console.error(`all events before ${ended?.toISOString()}: the next export begins there (--since)`);
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

export function addExaminationCommands(): void {
  program
    .command('doctor')
    .description('diagnose a deployment: settings, database and indexes, core, Redis, gateway, certificates')
    .addArgument(
      new Argument(
        '[part]',
        'process to diagnose, whose settings are in this environment (default: core and gateway)',
      ).choices(['core', 'gateway', 'relay']),
    )
    .option('--records', 'also read every record of the database, and name those that cannot be read; cores may run')
    .addHelpText('after', '\nChanges nothing. Exit status: 0 without faults, even with warnings; else 1.')
    .action((part: Part | undefined, { records = false }: { records?: boolean }) =>
      runReported(async () => {
        // Loaded here, because it loads every client, and other commands should not wait for that.
        const { examine } = await import('../doctor/examine.ts');
        const parts: readonly Part[] = part ? [part] : ['core', 'gateway'];
        if (records && !parts.includes('core')) throw new CommandFault(`a ${part} has no database`);
        const findings = await examine(parts, process.env, records ? progressPrinter() : undefined);
        process.exitCode = findings.some(({ verdict }) => verdict === 'fault') ? 1 : 0;
        await print(findingsText(findings, isJson()));
      }),
    );
  program
    .command('verify')
    .description('test a deployment of the public API against its contract, rule by rule, from outside')
    .requiredOption('--base-url <url>', 'address of the deployment, without /v1')
    .option('--quota', 'also exhaust the quota of the key, and wait until it is available again')
    .addHelpText(
      'after',
      `
Creates some fifty leads in the studio of the key, with --quota more: use a
throwaway studio, and a key with both scopes. The key is read from LEAD_INTAKE_KEY, or from standard
input. LEAD_INTAKE_SOURCE_ID may name an enabled source of the studio.
Exit status: 0 if no rule is broken, 1 if one is, 2 if the deployment cannot be
tested.`,
    )
    .action((options: VerifyOptions) => runReported(() => verifyDeployment(options)));
}

interface VerifyOptions {
  readonly baseUrl: string;
  readonly quota?: boolean;
}

async function verifyDeployment({ baseUrl, quota = false }: VerifyOptions): Promise<void> {
  const secret = process.env.LEAD_INTAKE_KEY || (await text(process.stdin)).trim();
  const onWait = (seconds: number) => console.error(`quota exhausted: waiting ${seconds} s`);
  const api = new Api(baseUrl, secret, process.env.LEAD_INTAKE_SOURCE_ID || undefined, onWait);
  const onCheck = (title: string, index: number, count: number) =>
    console.error(`${String(index + 1).padStart(3)}/${count}  ${title}`);
  try {
    await preflight(api);
    const report = await verify(api, { quota, onCheck });
    process.exitCode = report.rules.some(({ verdict }) => verdict === 'failed') ? 1 : 0;
    await print(reportText(report, isJson()));
  } catch (error) {
    if (!(error instanceof CannotVerify)) throw error;
    console.error(printable(error.message));
    process.exitCode = 2;
  }
}

function findingsText(findings: readonly Finding[], json: boolean): string {
  if (json) return `${printableJson(findings)}\n`;
  const lines = findings.map(({ what, verdict, says }) => {
    return `${(verdict === 'fault' ? 'FAULT' : verdict).padEnd(8)} ${what.padEnd(22)} ${printable(says)}\n`;
  });
  return lines.join('');
}
