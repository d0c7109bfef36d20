#!/usr/bin/env node
import { addCallerCommands } from './commands/caller-commands.ts';
import { addChangeCommands } from './commands/change-commands.ts';
import { addDatabaseCommands } from './commands/database-commands.ts';
import { addDirectoryCommands } from './commands/directory-commands.ts';
import { addErasureCommands } from './commands/erasure-commands.ts';
import { addExaminationCommands } from './commands/examination-commands.ts';
import { addKeyCommands } from './commands/key-commands.ts';
import { addLeadCommands } from './commands/lead-commands.ts';
import { program } from './commands/program.ts';

// In the order of the help.
addDirectoryCommands();
addKeyCommands();
addLeadCommands();
addErasureCommands();
addCallerCommands();
addChangeCommands();
addDatabaseCommands();
addExaminationCommands();

await program.parseAsync();
