import { getStudio } from '../../src/usecases/keep-directory.ts';
import { resendChanges, watchChanges } from '../changes.ts';
import { standardOutput } from '../export-output.ts';
import { abortOnSignal, isJson, program, progressPrinter, runOnStore } from './program.ts';

export function addChangeCommands(): void {
  const changes = program
    .command('changes')
    .description('inspect the change feed: the leads with changes that consumers have not acknowledged');
  changes
    .command('watch')
    .description('print pending and new changes until Ctrl-C, without acknowledging them')
    .addHelpText('after', '\nWhile 200 leads are unacknowledged, those after them are not shown.')
    .action(() =>
      runOnStore(async (deps) => {
        const { write } = standardOutput();
        await watchChanges(deps, { json: isJson(), write, log: console.error, ending: abortOnSignal() });
      }),
    );
  changes
    .command('resend')
    .description('put leads into the feed again as if each had changed, for a consumer that has lost its copy')
    .argument('[studio]', 'studio of the leads (default: all)')
    .action((studioId: string | undefined) =>
      runOnStore(async (deps) => {
        if (studioId !== undefined) await getStudio(deps, studioId);
        const print = progressPrinter();
        return { resent: await resendChanges(deps, studioId, (count) => print(`${count} leads so far`)) };
      }),
    );
}
