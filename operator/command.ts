import { hostname, userInfo } from 'node:os';
import { newId } from '../src/domain/new-id.ts';

/** Something that the operator can put right; the message is for them. */
export class CommandFault extends Error {}

/** What the audit log records of commands: a caller that is no valid name of one, and one id for all that a run does. */
export const BY_HAND = { caller: `(command line, ${userOfCommand()} on ${hostname().slice(0, 64)})`, callId: newId() };

/** Returns the user of the operating system who runs this process; where that is root by sudo, who has called sudo as well. */
function userOfCommand(): string {
  const { SUDO_USER } = process.env;
  const by = process.getuid?.() === 0 && SUDO_USER && SUDO_USER !== 'root' ? ` for ${SUDO_USER.slice(0, 64)}` : '';
  try {
    return userInfo().username + by;
  } catch {
    // Containers often run under a number that has no name.
    return `user ${process.getuid?.()}`;
  }
}
