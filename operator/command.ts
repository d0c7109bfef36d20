import { hostname, userInfo } from 'node:os';
import { newId } from '../src/domain/new-id.ts';

/** A fault that the operator can fix, with a message for them. */
export class CommandFault extends Error {}

/** How the audit log identifies a command: by a caller that no callers file can name, and by one id per run. */
export const BY_HAND = {
  caller: `(command line, ${describeUser().slice(0, 76)} on ${hostname().slice(0, 64)})`,
  callId: newId(),
};

/** Returns the user who runs this process, and the user who called sudo. */
function describeUser(): string {
  const user = findUserName();
  const caller = process.env.SUDO_USER || user;
  return caller === user ? user : `${user} for ${caller.slice(0, 64)}`;
}

function findUserName(): string {
  try {
    return userInfo().username;
  } catch {
    // Containers often run under a numeric user without a name.
    return `user ${process.getuid?.()}`;
  }
}
