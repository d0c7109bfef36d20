import { userInfo } from 'node:os';

/** Something that the operator can put right; the message is for them. */
export class CommandFault extends Error {}

/** The caller that the audit log records for commands, which is no valid name of a caller. */
export const BY_HAND = { caller: `(command line, ${userOfCommand()})` };

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
