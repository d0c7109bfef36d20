import type { Command } from 'commander';
import { addEveryCommand } from '../../operator/commands/every-command.ts';
import { program } from '../../operator/commands/program.ts';

addEveryCommand();

const listLeaves = (command: Command, name: readonly string[] = []): [string, Command][] =>
  command.commands.length === 0
    ? [[name.join(' '), command]]
    : command.commands.flatMap((each) => listLeaves(each, [...name, each.name()]));

/** Every command of the command line, with its full name, such as `leads list`. */
export const COMMANDS = listLeaves(program);
