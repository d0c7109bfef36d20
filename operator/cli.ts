#!/usr/bin/env node
import { addEveryCommand } from './commands/every-command.ts';
import { program } from './commands/program.ts';

addEveryCommand();
await program.parseAsync();
