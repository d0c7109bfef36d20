import { type Command, Option } from 'commander';
import { eachPage } from '../../src/domain/cursor.ts';
import { newId } from '../../src/domain/new-id.ts';
import { firstErasure } from '../../src/domain/retention.ts';
import type { MemberRole, Studio } from '../../src/domain/studio.ts';
import { everyStudioWithLeads } from '../../src/usecases/count-leads.ts';
import { EndedStudios, eraseStudio, examineStudio } from '../../src/usecases/erase-studio.ts';
import {
  listEveryLeadSource,
  putLeadSource,
  putMember,
  removeLeadSource,
  removeMember,
} from '../../src/usecases/members-and-sources.ts';
import { countExpiredLeads } from '../../src/usecases/retain-leads.ts';
import { emptyStudio, everyStudio, getStudio, type PutStudioCommand, putStudio } from '../../src/usecases/studios.ts';
import { BY_HAND, CommandFault } from '../command.ts';
import { AUDITED_MEMBER, DEFAULT_QUOTA_HELP, positiveInteger, type QuotaOption, quotaOption } from './options.ts';
import { program, progressPrinter, runOnStore } from './program.ts';

/** Adds the commands for studios, their members and lead sources. */
export function addDirectoryCommands(): void {
  addStudioCommands();
  addMemberCommands();
  addSourceCommands();
}

interface PutStudioOptions {
  readonly status?: Studio['status'];
  readonly region?: string;
  readonly quota?: QuotaOption;
  readonly keepEnquiries?: 'yes' | 'no';
  readonly retention?: number | 'none';
  readonly test?: true;
  readonly member?: string;
}

function addStudioCommands(): void {
  const studios = program.command('studios').description('manage studios');
  studios
    .command('put <studio>')
    .description('create a studio, or change the given settings of one; a new studio is active')
    .addOption(
      new Option('--status <status>', 'whether the public API serves the studio').choices(['active', 'suspended']),
    )
    .option('--region <code>', 'country of phone numbers without a country code, such as DE; "none" for unknown')
    .option('--quota <number>', `requests per window of all its keys together; ${DEFAULT_QUOTA_HELP}`, quotaOption)
    .addOption(
      new Option(
        '--keep-enquiries <choice>',
        'whether an open lead stores the data of creations that are refused because of it',
      ).choices(['yes', 'no']),
    )
    .option(
      '--retention <days>',
      'days after which closed leads that do not change are erased; "none" for never',
      (value) => (value === 'none' ? value : positiveInteger(value)),
    )
    .option('--test', 'create a test studio: only consumers and exports that ask for test studios get its leads')
    .option(...AUDITED_MEMBER)
    .action(
      (
        id: string,
        { region, quota, keepEnquiries: keep, retention, test: isTest, member, ...options }: PutStudioOptions,
      ) => {
        const regionCode = region === 'none' ? null : region;
        const quotaLimit = quota === 'default' ? null : quota;
        const keepEnquiries = keep && keep === 'yes';
        const retentionDays = retention === 'none' ? null : retention;
        return runOnStore(async (deps) => {
          const status = options.status ?? ((await deps.store.findStudio(id)) ? 'unchanged' : 'active');
          const fields = { regionCode, quotaLimit, keepEnquiries, retentionDays, isTest };
          const put: PutStudioCommand = { id, status, ...fields, memberId: member, ...BY_HAND };
          return publicStudio(await putStudio(deps, put));
        }, 'mayCreate');
      },
    );
  studios
    .command('get <studio>')
    .description('show a studio')
    .action((id: string) => runOnStore(async (deps) => publicStudio(await getStudio(deps, id))));
  studios
    .command('list')
    .description('list all studios')
    .option('--leads', 'with the number of their leads, most leads first; counts every lead')
    .action(({ leads }: { leads?: true }) =>
      runOnStore(async (deps) => {
        if (!leads) return (await Array.fromAsync(everyStudio(deps))).map(publicStudio);
        const counted = await Array.fromAsync(everyStudioWithLeads(deps));
        const biggestFirst = counted.toSorted((one, other) => other.leads - one.leads);
        return biggestFirst.map(({ studio, leads }) => ({ ...publicStudio(studio), leads }));
      }),
    );
  addStudioErasures(studios);
}

/** Adds the commands that erase all leads of a studio, or count what retention would erase. */
function addStudioErasures(studios: Command): void {
  studios
    .command('try-retention <studio> <days>')
    .description('count the closed leads that a retention of so many days would erase now; changes nothing')
    .action((studioId: string, days: string) =>
      runOnStore((deps) => countExpiredLeads(deps, { studioId, days: Number(days) })),
    );
  studios
    .command('empty <studio>')
    .description('delete all leads of a test studio, with their keys and events')
    .action((id: string) =>
      runOnStore(async (deps) => {
        for (let deleted = 0; ; ) {
          const { deletedLeadCount, isEmpty } = await emptyStudio(deps, { studioId: id, ...BY_HAND });
          deleted += deletedLeadCount;
          if (isEmpty) return { deleted };
        }
      }),
    );
  studios
    .command('erase <studio>')
    .description('end a studio for good: revoke its keys, erase its leads, remove its members and sources')
    .option('--confirm <studio>', 'the same id again, to erase; without it, prints only what would be erased')
    .option(...AUDITED_MEMBER)
    .action((studioId: string, { confirm, member: memberId }: { confirm?: string; member?: string }) =>
      runOnStore(async (deps) => {
        if (confirm === undefined) {
          const { leads, keys, sources } = await examineStudio(deps, studioId);
          return { leadsToErase: leads, keysToRevoke: keys, sourcesToRemove: sources };
        }
        if (confirm !== studioId) throw new CommandFault('--confirm names another studio: give the same id twice');
        const command = { studioId, confirmStudioId: confirm, memberId, ...BY_HAND };
        const [showProgress, known] = [progressPrinter(), new EndedStudios()];
        const report = { erasedLeads: 0, skippedLeads: 0, revokedKeys: 0, removedMembers: 0, removedSources: 0 };
        for await (const part of eachPage((pageToken) => eraseStudio(deps, known, { ...command, pageToken }))) {
          report.erasedLeads += part.erasedLeadCount;
          report.skippedLeads += part.skippedLeadCount;
          report.revokedKeys += part.revokedKeyCount;
          report.removedMembers += part.removedMemberCount;
          report.removedSources += part.removedSourceCount;
          showProgress(`${report.erasedLeads} leads erased so far`);
        }
        if (report.skippedLeads > 0) process.exitCode = 1;
        return report;
      }),
    );
}

function addMemberCommands(): void {
  const members = program.command('members').description('manage the members of a studio');
  members
    .command('put <studio> <member>')
    .description('create or replace a member')
    .addOption(
      new Option('--role <role>', 'role in the studio; owners and admins manage its keys')
        .choices(['owner', 'admin', 'staff'])
        .makeOptionMandatory(),
    )
    .action((studioId: string, id: string, { role }: { role: MemberRole }) =>
      runOnStore((deps) => putMember(deps, { studioId, id, role, ...BY_HAND })),
    );
  members
    .command('remove <studio> <member>')
    .description('remove a member; the keys that the member issued stop working')
    .action((studioId: string, memberId: string) =>
      runOnStore(async (deps) => ({ removed: await removeMember(deps, { studioId, memberId, ...BY_HAND }) })),
    );
}

function addSourceCommands(): void {
  const sources = program.command('sources').description('manage the lead sources of a studio');
  sources
    .command('put <studio> [source]')
    .description('create or replace a source; without an id, create one with a new id')
    .requiredOption('--name <name>', 'display name')
    .option('--disabled', 'refuse new leads from the source')
    .action((studioId: string, id: string | undefined, { name, disabled }: { name: string; disabled?: boolean }) =>
      runOnStore((deps) => putLeadSource(deps, { studioId, id: id ?? newId(), name, enabled: !disabled, ...BY_HAND })),
    );
  sources
    .command('list <studio>')
    .description('list all sources of a studio')
    .action((studioId: string) => runOnStore((deps) => listEveryLeadSource(deps, studioId)));
  sources
    .command('remove <studio> <source>')
    .description('remove a source; new leads can no longer name it')
    .action((studioId: string, sourceId: string) =>
      runOnStore(async (deps) => ({ removed: await removeLeadSource(deps, { studioId, sourceId, ...BY_HAND }) })),
    );
}

/** Returns a studio's record without internal fields. */
const publicStudio = ({ formerRegions: _, retention, ...studio }: Studio) => ({
  ...studio,
  retentionDays: retention?.days ?? null,
  ...(retention && { firstErasure: firstErasure(retention) }),
});
