import { newCoreToken } from '../../common/rules/key-secret.ts';
import { tokenHash } from '../../src/callers-file.ts';
import { print } from '../standard-output.ts';
import { isJson, program, runReported } from './program.ts';

export function addCallerCommands(): void {
  program
    .command('callers')
    .description('help with the file of CORE_CALLERS_FILE, which names the programs that may call the core')
    .command('token')
    .description('create a token for a caller, and its entry for the file, which has only its hash')
    .action(() =>
      runReported(() => {
        const token = newCoreToken();
        const entry = { sha256: tokenHash(token), created: new Date().toISOString().slice(0, 10) };
        return print(isJson() ? `${JSON.stringify({ token, entry })}\n` : `${token}\n${JSON.stringify(entry)}\n`);
      }),
    );
}
