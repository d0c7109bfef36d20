import { hostname, userInfo } from 'node:os';
import { newId } from '../src/domain/new-id.ts';

/** A fault that the operator can fix, with a message for them. */
export class CommandFault extends Error {}

/** The identity of commands in the audit log: a caller that no callers file can name, and one id per run. */
export const BY_HAND = {
  caller: `(command line, ${userOfCommand().slice(0, 76)} on ${hostname().slice(0, 64)})`,
  callId: newId(),
};

/** Returns the operating system user who runs this process, and who called sudo for it. */
function userOfCommand(): string {
  const user = nameOfUser();
  const caller = process.env.SUDO_USER || user;
  return caller === user ? user : `${user} for ${caller.slice(0, 64)}`;
}

function nameOfUser(): string {
  try {
    return userInfo().username;
  } catch {
    // Containers often run under a numeric user without a name.
    return `user ${process.getuid?.()}`;
  }
}
