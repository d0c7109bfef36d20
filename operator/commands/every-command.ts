import { addCallerCommands } from './caller-commands.ts';
import { addChangeCommands } from './change-commands.ts';
import { addConsumerCommands } from './consumer-commands.ts';
import { addDatabaseCommands, addExaminationCommands } from './deployment-commands.ts';
import { addDirectoryCommands } from './directory-commands.ts';
import { addErasureCommands } from './erasure-commands.ts';
import { addKeyCommands } from './key-commands.ts';
import { addLeadCommands } from './lead-commands.ts';
import { addRequestCommand } from './request-commands.ts';

/** Adds every command to the program, in the order of the help. */
export function addEveryCommand(): void {
  addDirectoryCommands();
  addKeyCommands();
  addRequestCommand();
  addLeadCommands();
  addErasureCommands();
  addCallerCommands();
  addChangeCommands();
  addConsumerCommands();
  addDatabaseCommands();
  addExaminationCommands();
}
