import { Option } from 'commander';
import { CALLER_ROLES } from '../../src/domain/caller.ts';
import { addCaller, CALLERS_HELP, listCallers, type NewCaller, removeCaller, retireToken } from '../callers.ts';
import { program, runReported, showResult, showSecret } from './program.ts';

export function addCallerCommands(): void {
  const callers = program
    .command('callers')
    .description('manage the programs that may call the core, in the file of CORE_CALLERS_FILE');
  const fileOption = new Option('--file <path>', 'callers file').env('CORE_CALLERS_FILE').makeOptionMandatory();
  callers
    .command('new <name>')
    .description('add a caller, or a second token of one; a token is printed once')
    .addOption(new Option('--may <role...>', 'roles of a new caller').choices(CALLER_ROLES))
    .option('--studio <id...>', 'studios that a new caller has access to (default: all)')
    .option('--certificate <file>', 'certificate (PEM) that the caller presents instead of a token')
    .addOption(fileOption)
    .addHelpText('after', CALLERS_HELP)
    .action((name: string, { file, ...caller }: NewCaller & { readonly file: string }) =>
      runReported(() =>
        addCaller(file, name, caller, (token) =>
          showSecret({ name, token }, async () => 'the caller was left as it was'),
        ),
      ),
    );
  callers
    .command('list')
    .description('list all callers, without their tokens')
    .addOption(fileOption)
    .action(({ file }: { file: string }) => runReported(async () => showResult(listCallers(file))));
  callers
    .command('retire <name>')
    .description('remove one of the two tokens of a caller immediately, by default the older one')
    .option('--token <digits>', 'first digits of the hash of the token, as `callers list` prints them')
    .addOption(fileOption)
    .action((name: string, { token, file }: { token?: string; file: string }) =>
      runReported(async () => showResult(retireToken(file, name, token))),
    );
  callers
    .command('remove <name>')
    .description('remove a caller immediately')
    .addOption(fileOption)
    .action((name: string, { file }: { file: string }) =>
      runReported(async () => showResult(removeCaller(file, name))),
    );
}
