import { hostname, userInfo } from 'node:os';
import { newId } from '../src/domain/new-id.ts';

/** Something that the operator can put right; the message is for them. */
export class CommandFault extends Error {}

/** What the audit log records of commands: a caller that is no valid name of one, and one id for all that a run does. */
export const BY_HAND = {
  caller: `(command line, ${userOfCommand().slice(0, 76)} on ${hostname().slice(0, 64)})`,
  callId: newId(),
};

/** Returns the user of the operating system who runs this process, and who has called sudo for that. */
function userOfCommand(): string {
  const user = nameOfUser();
  const caller = process.env.SUDO_USER || user;
  return caller === user ? user : `${user} for ${caller.slice(0, 64)}`;
}

function nameOfUser(): string {
  try {
    return userInfo().username;
  } catch {
    // Containers often run under a number that has no name.
    return `user ${process.getuid?.()}`;
  }
}
