import { SettingsError, type UnusedVariables } from '../../common/settings.ts';
import { type Finding, Notes } from './finding.ts';

/** Reads settings; undefined when they have faults, each of which becomes a finding. */
export function examineSettings<Config extends UnusedVariables>(
  what: string,
  read: () => Config,
): [Config | undefined, readonly Finding[]] {
  const notes = new Notes(what);
  try {
    const config = read();
    notes.ok('are valid and consistent');
    for (const name of config.ignored) notes.warning(`${name} counts as unset: remove it, or give it a value`);
    for (const name of config.unknown)
      notes.warning(`${name} is no setting and has no effect: rename it, or remove it`);
    return [config, notes.findings];
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    for (const fault of error.faults) notes.fault(fault);
    return [undefined, notes.findings];
  }
}
