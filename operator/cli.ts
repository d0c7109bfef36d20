#!/usr/bin/env node
import { createReadStream } from 'node:fs';
import { text } from 'node:stream/consumers';
import { inspect } from 'node:util';
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { errorSummary } from '../common/error-summary.ts';
import { printable, printableLines } from '../common/printable.ts';
import { PAGE_SIZE } from '../common/rules/field-rules.ts';
import { SettingsError } from '../common/settings.ts';
import { Throttle } from '../common/throttle.ts';
import { DAY_MS } from '../common/units.ts';
import { Api } from '../conformance/api.ts';
import { showReport } from '../conformance/show-report.ts';
import { CannotVerify, preflight, verify } from '../conformance/verify.ts';
import { readDatabaseUrl } from '../src/config.ts';
import type { ApiKeyScope } from '../src/domain/api-key.ts';
import { COMMAND_LINE } from '../src/domain/audit.ts';
import { CALLER_ROLES, type CallerRole } from '../src/domain/caller.ts';
import { systemClock } from '../src/domain/clock.ts';
import { LEAD_STAGES, type LeadStage } from '../src/domain/lead.ts';
import { newId } from '../src/domain/new-id.ts';
import { Refusal } from '../src/domain/refusal.ts';
import type { MemberRole, Studio } from '../src/domain/studio.ts';
import type { ConversionProgress } from '../src/store/conversion.ts';
import { backUpDatabase, openStore, vacuumDatabase } from '../src/store/open-store.ts';
import { StoreUnavailable, type StudioRenewal, UnreadableRecord } from '../src/store/store.ts';
import { changeLeadStage } from '../src/usecases/change-lead-stage.ts';
import { createDemo } from '../src/usecases/create-demo.ts';
import type { Dependencies } from '../src/usecases/dependencies.ts';
import { countClosedLeads, eraseClosedLeads } from '../src/usecases/erase-closed-leads.ts';
import { eraseContact } from '../src/usecases/erase-contact.ts';
import { eraseLead } from '../src/usecases/erase-lead.ts';
import { findLeads } from '../src/usecases/find-leads.ts';
import { findLeakedKeys } from '../src/usecases/find-leaked-keys.ts';
import { getLead } from '../src/usecases/get-lead.ts';
import {
  getStudio,
  listEveryLeadSource,
  putLeadSource,
  putMember,
  putStudio,
  removeLeadSource,
  removeMember,
} from '../src/usecases/keep-directory.ts';
import { listAuditEvents } from '../src/usecases/list-audit-events.ts';
import { everyStudio } from '../src/usecases/list-studios.ts';
import { createApiKey, listApiKeys, replaceApiKey, revokeApiKey } from '../src/usecases/manage-api-keys.ts';
import { putApiKeyQuota } from '../src/usecases/put-api-key-quota.ts';
import { renewAllClaims } from '../src/usecases/renew-all-claims.ts';
import { renewClaims } from '../src/usecases/renew-claims.ts';
import { updateLead } from '../src/usecases/update-lead.ts';
import { addCaller, CALLERS_HELP, CallersFault, listCallers, removeCaller, retireToken } from './callers.ts';
import { resendChanges, watchChanges } from './changes.ts';
import { foundSecret, listedLead, publicKey, publicRenewal, publicStudio, show, showFindings } from './cli-output.ts';
import { examine, type Part } from './doctor/examine.ts';
import { applyErasures, exportErasures, JournalFault } from './erasures.ts';
import { EXPORT_FORMATS } from './export-format.ts';
import { ExportBroken, writeLeads } from './export-leads.ts';
import { fileOutput, OutputFault, standardOutput } from './export-output.ts';
import { importFile } from './import-leads.ts';
import { CORRECTION_HELP, readCorrection } from './lead-correction.ts';
import { newestLeads } from './newest-leads.ts';
import { progressBar } from './progress-bar.ts';
import { CONTACT_HELP, readContact } from './read-contact.ts';

/** Who does what a command does, for the audit. */
const BY_HAND = { caller: COMMAND_LINE };

/** How often a command that waits for the conversion of a file says so; milliseconds. */
const SHOWN_EVERY_MS = 5000;

const program = new Command('lead-intake')
  .description('Does by hand what the CRM does by RPC, on the database that DATABASE_URL names.')
  .option('--json', 'answer in JSON, for programs')
  .showHelpAfterError('(add --help for help)');

const STATUS = new Option('--status <status>', 'whether the public API serves it').choices(['active', 'suspended']);
const ROLE = new Option('--role <role>', 'owners and admins manage keys').choices(['owner', 'admin', 'staff']);
const MEMBER = ['--member <id>', 'owner or admin of the studio who does it'] as const;
const MEMBER_OR_OPERATOR = [
  '--member <id>',
  'owner or admin of the studio who does it; the operator, unless given',
] as const;
const DOER = ['--member <id>', 'who does it, for the audit'] as const;
const STUDIO = ['--studio <id>', 'whose leads'] as const;
const SCOPES = new Option('--scope <scope...>', 'what the key allows').choices(['leads.read', 'leads.create']);
const DAYS = ['--days <number>', 'how long the key lives from now', days] as const;

const OWN_QUOTA = 'default: as many as the gateways are set to';

const studios = program.command('studios').description('studios of the CRM');
studios
  .command('put <studio>')
  .description('create a studio, or change what is given of it; a new one is active')
  .addOption(STATUS)
  .option('--region <code>', 'country of phone numbers typed without one: DE, US, …; none: nobody knows')
  .option('--quota <number>', `requests per window that all its keys share; ${OWN_QUOTA}`, quota)
  .option(...DOER)
  .action((id: string, options: { status?: Studio['status']; region?: string; quota?: Quota; member?: string }) => {
    const { region, member: memberId } = options;
    const regionCode = region === 'none' ? null : region;
    const quotaLimit = options.quota === 'default' ? null : options.quota;
    return run(async (deps) => {
      const status = options.status ?? ((await deps.store.findStudio(id)) ? 'as it is' : 'active');
      return publicStudio(await putStudio(deps, { id, status, regionCode, quotaLimit, memberId, ...BY_HAND }));
    });
  });
studios
  .command('get <studio>')
  .description('show a studio')
  .action((id: string) => run(async (deps) => publicStudio(await getStudio(deps, id))));
studios
  .command('list')
  .description('show all studios')
  .action(() => run(async (deps) => (await Array.fromAsync(everyStudio(deps))).map(publicStudio)));

const members = program.command('members').description('people who work in a studio');
members
  .command('put <studio> <member>')
  .description('create or replace a member')
  .addOption(ROLE.makeOptionMandatory())
  .action((studioId: string, id: string, { role }: { role: MemberRole }) =>
    run((deps) => putMember(deps, { studioId, id, role })),
  );
members
  .command('remove <studio> <member>')
  .description('remove a member, whose keys then stop working')
  .action((studioId: string, memberId: string) =>
    run(async (deps) => ({ removed: await removeMember(deps, { studioId, memberId }) })),
  );

const sources = program.command('sources').description('where leads come from');
sources
  .command('put <studio> [source]')
  .description('create or replace a source; without an id a new one is made')
  .requiredOption('--name <name>', 'what people call it')
  .option('--disabled', 'refuse new leads that name it')
  .action((studioId: string, id: string | undefined, options: { name: string; disabled?: boolean }) =>
    run((deps) => putLeadSource(deps, { studioId, id: id ?? newId(), name: options.name, enabled: !options.disabled })),
  );
sources
  .command('list <studio>')
  .description('show all sources of a studio')
  .action((studioId: string) => run((deps) => listEveryLeadSource(deps, studioId)));
sources
  .command('remove <studio> <source>')
  .description('remove a source, which no new lead may name then')
  .action((studioId: string, sourceId: string) =>
    run(async (deps) => ({ removed: await removeLeadSource(deps, { studioId, sourceId }) })),
  );

const keys = program.command('keys').description('API keys of a studio');
keys
  .command('create <studio>')
  .description('issue a key; its secret is shown this once')
  .requiredOption(...MEMBER)
  .requiredOption('--name <name>', 'what people call it')
  .addOption(SCOPES.default(['leads.read', 'leads.create']))
  .option(...DAYS, 365)
  .action((studioId: string, options: { member: string; name: string; scope: ApiKeyScope[]; days: number }) =>
    run(async (deps) => {
      const { member: memberId, name, scope: scopes } = options;
      const issued = await createApiKey(deps, {
        ...{ studioId, memberId, name, scopes, ...BY_HAND },
        expiresAt: inDays(options.days),
      });
      return { ...publicKey(issued.key), secret: issued.secret };
    }),
  );
keys
  .command('list <studio>')
  .description('show all keys of a studio, never their secrets')
  .option(...MEMBER_OR_OPERATOR)
  .action((studioId: string, { member = null }: { member?: string | null }) =>
    run(async (deps) => (await listApiKeys(deps, { studioId, memberId: member })).map(publicKey)),
  );
keys
  .command('replace <studio> <key>')
  .description('give a key a new secret, shown this once; the old one is dead at once')
  .requiredOption(...MEMBER)
  .option(...DAYS)
  .action((studioId: string, keyId: string, options: { member: string; days?: number }) =>
    run(async (deps) => {
      const expiresAt = options.days === undefined ? undefined : inDays(options.days);
      const issued = await replaceApiKey(deps, { studioId, memberId: options.member, keyId, expiresAt, ...BY_HAND });
      return { ...publicKey(issued.key), secret: issued.secret };
    }),
  );
keys
  .command('revoke <studio> <key>')
  .description('make a key unusable, for good')
  .option(...MEMBER_OR_OPERATOR)
  .action((studioId: string, keyId: string, { member = null }: { member?: string | null }) =>
    run(async (deps) => publicKey(await revokeApiKey(deps, { studioId, memberId: member, keyId, ...BY_HAND }))),
  );
keys
  .command('find')
  .description('find out whose keys the secrets are that stand in a file or the standard input')
  .argument(
    '[file]',
    'a secret that was found, or a whole file in which some may be; the standard input, unless it is given',
  )
  .addHelpText(
    'after',
    '\nA secret is never an argument: those can be seen by others on the machine. None is repeated.',
  )
  .action((file: string | undefined) =>
    run(async (deps) => {
      const { found, misspelt } = await findLeakedKeys(
        deps,
        await text(file === undefined ? process.stdin : createReadStream(file)),
      );
      if (misspelt > 0) console.error(`${misspelt} look like a secret, and are none: their checksums are wrong`);
      return found.map(foundSecret);
    }),
  );
keys
  .command('quota <studio> <key>')
  .description('give a key a quota of its own; holds at every gateway within a minute')
  .addArgument(new Argument('<number>', `requests per window; ${OWN_QUOTA}`).argParser(quota))
  .option(...DOER)
  .action((studioId: string, keyId: string, limit: Quota, { member: memberId }: { member?: string }) =>
    run(async (deps) => {
      const quotaLimit = limit === 'default' ? undefined : limit;
      return publicKey(await putApiKeyQuota(deps, { studioId, keyId, quotaLimit, memberId, ...BY_HAND }));
    }),
  );

const leads = program.command('leads').description('leads of studios');
leads
  .command('list')
  .description('show leads of a studio, newest first')
  .requiredOption(...STUDIO)
  .option('--limit <number>', 'how many at most', atLeastOne, PAGE_SIZE.fallback)
  .action(({ studio, limit }: { studio: string; limit: number }) =>
    run(async (deps) => {
      const listed = await newestLeads(deps, studio, limit);
      return isJson() ? listed : listed.map(listedLead);
    }),
  );
leads
  .command('get <lead>')
  .description('show a lead')
  .requiredOption(...STUDIO)
  .action((leadId: string, { studio: studioId }: { studio: string }) =>
    run((deps) => getLead(deps, { studioId, leadId, view: 'full' })),
  );
leads
  .command('export')
  .description('write all leads, oldest first: of a studio, or studio by studio')
  .option(...STUDIO)
  .addOption(new Option('--format <format>', 'how').choices(['ndjson', 'csv']).default('ndjson'))
  .option('--output <file>', 'write to a new file, for its owner alone, instead of the standard output')
  .addOption(new Option('--resume', 'go on where the file of --output ends, if it is there').conflicts('resumeFrom'))
  .option('--resume-from <token>', 'go on behind what was written, as the message of an export that broke off says')
  .addHelpText(
    'after',
    `
Every lead that is there when it begins is written once, whatever is created or changed meanwhile. NDJSON has the JSON form of
leadintake.v1.Lead. In CSV, a text that a spreadsheet would run as a formula has an apostrophe in front; so has one that begins so
behind apostrophes. Whoever takes one away from such cells has the texts.`,
  )
  .action((options: ExportOptions) => exportTo(options));
leads
  .command('import <studio> <file>')
  .description('write leads that came another way or from before; done again, it passes over those that are there')
  .addOption(new Option('--format <format>', 'unless given, by the name of the file').choices(['ndjson', 'csv']))
  .addHelpText(
    'after',
    `
Takes what \`leads export\` writes, and anything like it: displayName and email or phone (in NDJSON, contact), and where they are
known sourceId, note, stage, createTime, updateTime. A lead is known again by its idempotencyKey, a UUID; else by its id; else by all
that it has. Each line that is refused is told on standard error, and the status is 1 then.`,
  )
  .action((studioId: string, path: string, { format }: { format?: 'ndjson' | 'csv' }) =>
    run(async (deps) => {
      const byName = path.toLowerCase().endsWith('.csv') ? 'csv' : 'ndjson';
      const counts = await importFile(deps, { studioId, path, format: format ?? byName });
      if (counts.refused > 0) process.exitCode = 1;
      return counts;
    }),
  );
leads
  .command('stage <studio> <lead>')
  .description('move a lead to a stage; won and lost free its contact')
  .addArgument(new Argument('<stage>').choices(LEAD_STAGES))
  .option(...DOER)
  .action((studioId: string, leadId: string, stage: LeadStage, { member: memberId }: { member?: string }) =>
    run((deps) => changeLeadStage(deps, { studioId, leadId, stage, memberId, ...BY_HAND })),
  );
leads
  .command('find <studio>')
  .description('show the leads of a contact, the open one first; at most 100')
  .addHelpText('after', CONTACT_HELP)
  .action((studioId: string) =>
    run(async (deps) => {
      const contact = await readContact(process.stdin);
      const query = { studioId, contact, pageSize: PAGE_SIZE.max, pageToken: '' };
      const { leads, nextPageToken, mayBeIncomplete } = await findLeads(deps, query);
      if (nextPageToken !== '') console.error(`these are ${leads.length} of more leads`);
      if (mayBeIncomplete) console.error('closed leads may be missing: see `lead-intake claims`');
      return leads;
    }),
  );
leads
  .command('update <studio> <lead>')
  .description('correct the name, contact, source or note of a lead; an open one takes its other contact')
  .option(...DOER)
  .addHelpText('after', CORRECTION_HELP)
  .action((studioId: string, leadId: string, { member: memberId }: { member?: string }) =>
    run(async (deps) => {
      const fields = await readCorrection(process.stdin);
      return updateLead(deps, { studioId, leadId, fields, memberId, ...BY_HAND });
    }),
  );

leads
  .command('erase')
  .description('erase what leads tell of their persons, for good; ids, idempotency keys, times and stages stay')
  .argument('[studio]', 'with --closed-before: all studios, unless it is given')
  .argument('[lead]', 'one lead')
  .option('--closed-before <date>', 'all that are closed and have not changed since, such as 2025-01-31', moment)
  .option('--yes', 'with --closed-before: erase them; otherwise it is only said how many there are')
  .option(...DOER)
  .action((studioId: string | undefined, leadId: string | undefined, options: EraseOptions) =>
    eraseLeads(studioId, leadId, options),
  );

leads
  .command('erase-contact <studio>')
  .description('erase all leads of a contact, closed ones too')
  .option(...DOER)
  .addHelpText('after', CONTACT_HELP)
  .action((studioId: string, { member: memberId }: { member?: string }) =>
    run(async (deps) =>
      eraseContact(deps, { studioId, contact: await readContact(process.stdin), memberId, ...BY_HAND }),
    ),
  );

const erasures = program
  .command('erasures')
  .description('which leads were erased: to be applied again to what a backup brought back');
erasures
  .command('export')
  .description('write a line of JSON for each erased lead; nothing in it is of a person')
  .action(() => run((deps) => exportErasures(deps, standardOutput().write)));
erasures
  .command('apply')
  .description('erase the leads that a journal names')
  .argument('[file]', 'what `erasures export` wrote; the standard input, unless it is given')
  .action((file: string | undefined) =>
    run((deps) => applyErasures(deps, file === undefined ? process.stdin : createReadStream(file))),
  );

const callers = program
  .command('callers')
  .description('who may call the core, as the file of CORE_CALLERS_FILE has it');
const CALLERS_FILE = new Option('--file <path>', 'the file').env('CORE_CALLERS_FILE').makeOptionMandatory();
callers
  .command('new <name>')
  .description('add a caller, or give one a second token; a token is shown this once')
  .addOption(new Option('--may <role...>', 'what a new one may do').choices(CALLER_ROLES))
  .option('--studio <id...>', 'the only studios that a new one has to do with; all, unless given')
  .option('--certificate <file>', 'it presents this certificate (PEM) in place of a token')
  .addOption(CALLERS_FILE)
  .addHelpText('after', CALLERS_HELP)
  .action((name: string, { may, studio: studios, certificate, file }: NewCallerOptions) =>
    told(async () => {
      const token = addCaller(file, { name, may, studios, certificate });
      if (token !== undefined) show({ name, token }, isJson());
    }),
  );
callers
  .command('list')
  .description('show all callers, never their tokens')
  .addOption(CALLERS_FILE)
  .action(({ file }: { file: string }) => told(async () => show(listCallers(file), isJson())));
callers
  .command('retire <name>')
  .description('take one of its two tokens from a caller, at once: the older one, unless told')
  .option('--token <digits>', 'how its hash begins, as `callers list` shows it')
  .addOption(CALLERS_FILE)
  .action((name: string, { token, file }: { token?: string; file: string }) =>
    told(async () => show(retireToken(file, name, token), isJson())),
  );
callers
  .command('remove <name>')
  .description('take a caller out, at once')
  .addOption(CALLERS_FILE)
  .action((name: string, { file }: { file: string }) => told(async () => show(removeCaller(file, name), isJson())));

const changes = program.command('changes').description('changes of leads that no consumer has acknowledged');
changes
  .command('watch')
  .description('show the leads that wait and those that come, until Ctrl-C; acknowledges none')
  .addHelpText('after', '\nAs long as 200 leads are not acknowledged, those behind them are not shown.')
  .action(() =>
    run(async (deps) => {
      const ending = new AbortController();
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ending.abort());
      const { write } = standardOutput();
      await watchChanges(deps, { json: isJson(), write, tell: console.error, ending: ending.signal });
    }),
  );
changes
  .command('resend')
  .description('have leads sent once more, as if each had changed: for a consumer that has lost its copy')
  .argument('[studio]', 'those of all studios, unless it is given')
  .action((studioId: string | undefined) =>
    run(async (deps) => {
      const progress = new Throttle(SHOWN_EVERY_MS);
      const tell = (count: number) => {
        if (progress.isDue()) console.error(`${count} leads so far`);
      };
      return { resent: await resendChanges(deps, studioId, tell) };
    }),
  );

program
  .command('claims')
  .description('show the studios of which the claims of leads are being made anew, and how far that has come')
  .option('--again', 'first have those of all studios made anew: for cores of release 1.0 before or after this one')
  .option('--renew', 'do now what of it is due, as a core that runs does by itself')
  .action(({ again = false, renew = false }: { again?: boolean; renew?: boolean }) =>
    run(async (deps) => {
      const { left } = again ? await renewAllClaims(deps) : { left: [] };
      for (const id of left) console.error(`${id}: not begun, it changed in this moment or cannot be read: once more`);
      const progressed = ({ studio, renewal }: StudioRenewal, renewed: number) =>
        console.error(`${studio.id}: ${renewal.step} step, up to lead ${renewal.after}, ${renewed} made anew`);
      const leadInTheWay = (studioId: string, leadId: string, holderId: string) =>
        console.error(`${studioId}: the open leads ${leadId} and ${holderId} have one contact`);
      if (renew) await renewClaims(deps, { progressed, leadInTheWay });
      return (await deps.store.listClaimRenewals()).map(publicRenewal);
    }),
  );

program
  .command('audit <studio>')
  .description('show who did what to a studio and its keys, or to a lead; newest first')
  .option('--lead <id>', 'what was done to this lead')
  .action((studioId: string, { lead: leadId }: { lead?: string }) =>
    run((deps) => listAuditEvents(deps, { studioId, leadId })),
  );

program
  .command('vacuum')
  .description('write a SQLite file anew, without what was erased from it; whoever writes to it waits meanwhile')
  .action(() => told(async () => show(vacuumDatabase(readDatabaseUrl(process.env).reveal()), isJson())));

program
  .command('backup <file>')
  .description('write the SQLite database as it is now into a new file, while cores go on; Ctrl-C leaves nothing of it')
  .action((file: string) =>
    told(async () => {
      const ending = new AbortController();
      const brokenOff = new StoreUnavailable(`broken off: there is no ${file}`);
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ending.abort(brokenOff));
      const progress = progressBar();
      const progressed = (written: number, total: number) =>
        progress(written, total, () => `${megabytes(written)} of ${megabytes(total)} MB`);
      const databaseUrl = readDatabaseUrl(process.env).reveal();
      show(await backUpDatabase(databaseUrl, file, { progressed, ending: ending.signal }), isJson());
    }),
  );

program
  .command('demo')
  .description('make a demo studio with a source and a key, unless it is there')
  .action(() => run(createDemo));

program
  .command('doctor')
  .description('look at a deployment: settings, database and indexes, core, Redis, gateway, clocks, certificates')
  .addArgument(
    new Argument('[part]', "what this machine's environment has the settings of").choices(['core', 'gateway']),
  )
  .addHelpText('after', '\nChanges nothing. Status: 0 when nothing is wrong, warnings aside; 1 otherwise.')
  .action(async (part?: Part) => {
    const findings = await examine(part ? [part] : ['core', 'gateway'], process.env);
    showFindings(findings, isJson());
    process.exitCode = findings.some(({ verdict }) => verdict === 'fault') ? 1 : 0;
  });

program
  .command('verify')
  .description('hold a deployment of the public API against its contract, rule by rule, from outside')
  .requiredOption('--base-url <url>', 'address of the deployment, without /v1')
  .option('--quota', "also use up the key's quota, and wait until it is there again")
  .addHelpText(
    'after',
    `
Makes some hundred leads in the studio of a key with both scopes, which should be one to throw away. The key comes from
LEAD_INTAKE_KEY, or from the standard input; LEAD_INTAKE_SOURCE_ID may name an enabled source of the studio.
Status: 0 no rule is broken, 1 one is, 2 it could not be found out.`,
  )
  .action(async ({ baseUrl, quota = false }: { baseUrl: string; quota?: boolean }) => {
    const secret = process.env.LEAD_INTAKE_KEY || (await text(process.stdin)).trim();
    const onWait = (seconds: number) => console.error(`the quota is used up: waiting ${seconds} s`);
    const api = new Api(baseUrl, secret, process.env.LEAD_INTAKE_SOURCE_ID || undefined, onWait);
    const onCheck = (title: string, index: number, count: number) =>
      console.error(`${String(index + 1).padStart(3)}/${count}  ${title}`);
    try {
      await preflight(api);
      const report = await verify(api, { quota, onCheck });
      showReport(report, isJson());
      process.exitCode = report.rules.some(({ verdict }) => verdict === 'failed') ? 1 : 0;
    } catch (error) {
      if (!(error instanceof CannotVerify)) throw error;
      console.error(printable(error.message));
      process.exitCode = 2;
    }
  });

await program.parseAsync();

function isJson(): boolean {
  return program.opts<{ json?: boolean }>().json === true;
}

/** Runs a command, and shows what it gives. */
function run(command: (deps: Dependencies) => Promise<unknown>): Promise<void> {
  return withStore(async (deps) => {
    const answer = await command(deps);
    if (answer !== undefined) show(answer, isJson());
  });
}

interface NewCallerOptions {
  readonly file: string;
  readonly may?: CallerRole[];
  readonly studio?: string[];
  readonly certificate?: string;
}

interface EraseOptions {
  readonly closedBefore?: Date;
  readonly yes?: boolean;
  readonly member?: string;
}

async function eraseLeads(
  studioId: string | undefined,
  leadId: string | undefined,
  options: EraseOptions,
): Promise<void> {
  const { closedBefore: before, yes = false, member: memberId } = options;
  if (before === undefined) {
    if (studioId === undefined || leadId === undefined)
      return program.error('error: which lead? or --closed-before which date?');
    return run((deps) => eraseLead(deps, { studioId, leadId, memberId, ...BY_HAND }));
  }
  if (leadId !== undefined) return program.error('error: one lead, or all that are closed?');
  await run(async (deps) => {
    if (studioId !== undefined) await getStudio(deps, studioId);
    const count = await countClosedLeads(deps, { studioId, before });
    if (!yes) return { wouldErase: count };
    console.error(`${count} leads are to be erased`);
    const progress = new Throttle(SHOWN_EVERY_MS);
    const which = { studioId, before, memberId: memberId ?? null, ...BY_HAND };
    const erased = await eraseClosedLeads(deps, which, (sofar) => {
      if (progress.isDue()) console.error(`${sofar} of ${count} leads are erased`);
    });
    return { erased };
  });
}

interface ExportOptions {
  readonly studio?: string;
  readonly format: keyof typeof EXPORT_FORMATS;
  readonly output?: string;
  readonly resume?: boolean;
  readonly resumeFrom?: string;
}

async function exportTo({ studio = '', resumeFrom: resumeToken = '', ...options }: ExportOptions): Promise<void> {
  const { output: path, resume = false } = options;
  if (resume && path === undefined) program.error('error: --resume goes on in the file of --output, which is missing');
  const format = EXPORT_FORMATS[options.format];
  await withStore(async (deps) => {
    // Before there is a file.
    if (studio !== '') await getStudio(deps, studio);
    const isFile = path !== undefined;
    const output = isFile ? await fileOutput(path, format, resume) : standardOutput();
    await writeLeads(deps, { studioId: studio, resumeToken, format, output, isFile });
  });
}

async function withStore(command: (deps: Dependencies) => Promise<void>): Promise<void> {
  await told(async () => {
    const report = ({ message }: UnreadableRecord) => console.error(message);
    const store = await openStore(readDatabaseUrl(process.env).reveal(), undefined, report, {
      progressed: showConversion(),
    });
    try {
      await command({ store, clock: systemClock, newId });
    } finally {
      await store.close();
    }
  });
}

/** Has people told in their words what goes wrong. Whoever closes the pipe has enough of it. */
async function told(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof OutputFault && error.isClosedPipe) return;
    console.error(printableLines(complaint(error)));
    process.exitCode = 1;
  }
}

/** Tells once in a while how far the conversion of a database file is, which a command waits for. */
function showConversion(): (progress: ConversionProgress) => void {
  const progress = new Throttle(SHOWN_EVERY_MS);
  return ({ done, total }) => {
    if (progress.isDue())
      console.error(`the database file of an earlier release is being converted: ${done} of ${total} records`);
  };
}

/** A fault of ours keeps its stack; what the operator can mend is one line each. */
function complaint(error: unknown): string {
  if (
    error instanceof SettingsError ||
    error instanceof OutputFault ||
    error instanceof JournalFault ||
    error instanceof CallersFault
  )
    return error.message;
  if (error instanceof ExportBroken) return `${complaint(error.cause)}\n${error.message}`;
  if (error instanceof StoreUnavailable || error instanceof UnreadableRecord) return errorSummary(error);
  // What the file system says of a file that was named.
  if (error instanceof Error && 'syscall' in error) return error.message;
  if (!(error instanceof Refusal)) return inspect(error);
  const faults = error.faults.map(({ field, message }) => `  ${field} ${message}`);
  return [`${error.reason}: ${error.message}`, ...faults].join('\n');
}

function days(value: string): number {
  if (!/^\d+$/.test(value)) throw new InvalidArgumentError('must be a whole number');
  return Number(value);
}

/** Requests per window, or as many as the gateways are set to. */
type Quota = number | 'default';

function quota(value: string): Quota {
  return value === 'default' ? value : atLeastOne(value);
}

function moment(value: string): Date {
  const date = new Date(value);
  if (!/^\d{4}-\d{2}-\d{2}(T|$)/.test(value) || Number.isNaN(date.getTime())) {
    throw new InvalidArgumentError('must be a date, such as 2025-01-31, or a time, such as 2025-01-31T12:00:00Z');
  }
  return date;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

function atLeastOne(value: string): number {
  if (!/^[1-9]\d*$/.test(value)) throw new InvalidArgumentError('must be a whole number, at least 1');
  return Number(value);
}

function inDays(number: number): Date {
  return new Date(Date.now() + number * DAY_MS);
}
