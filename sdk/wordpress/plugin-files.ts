import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PluginUpdate } from '../../common/package-settings.ts';
import { template, toMo } from './translations.ts';

const FOLDER = join(import.meta.dirname, 'lead-intake');
const CLIENT = join(import.meta.dirname, '../php/src');
const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'));

/** The client's namespace within the plugin. It lets PHP load another plugin's release of the client beside this one. */
const NAMESPACE = 'LeadIntakePlugin\\Client';

/** Returns the files of the plugin with its client and its translations, by their paths in the zip file and in that order. */
export function pluginFiles(): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>([['languages/lead-intake.pot', Buffer.from(template())]]);
  for (const path of globSync('**/*.*', { cwd: FOLDER }).toSorted()) {
    const text = readFileSync(join(FOLDER, path), 'utf8');
    files.set(path, Buffer.from(/\.(?:php|txt)$/.test(path) ? withOwnClient(text).replaceAll('0.0.0', version) : text));
    if (path.endsWith('.po')) files.set(path.replace(/\.po$/, '.mo'), toMo(text));
  }
  for (const path of globSync('**/*.php', { cwd: CLIENT })) {
    const text = readFileSync(join(CLIENT, path), 'utf8');
    files.set(`client/${path}`, Buffer.from(withOwnClient(text).replace(/^namespace .*;$/m, `$&\n\n${GUARD}`)));
  }
  return new Map(
    [...files].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([path, file]) => [`lead-intake/${path}`, file]),
  );
}

/** Returns the content of `wordpress.json` about the plugin's zip file. */
export function pluginUpdate(name: string, zip: Uint8Array): PluginUpdate {
  const text = (path: string) => readFileSync(join(FOLDER, path), 'utf8');
  const header = (title: string) =>
    new RegExp(`^(?: \\* )?${title}: (.+)$`, 'm').exec(text('lead-intake.php') + text('readme.txt'))?.[1] ?? '';
  return {
    version,
    package: name,
    requires: header('Requires at least'),
    requires_php: header('Requires PHP'),
    tested: header('Tested up to'),
    sha256: createHash('sha256').update(zip).digest('hex'),
  };
}

/** Ends a request to the file's own address before the file runs. */
const GUARD = "defined('ABSPATH') || exit;";

const withOwnClient = (php: string): string =>
  php.replaceAll(/^(namespace|use) LeadIntake(?=[\\;])/gm, (_, keyword) => `${keyword} ${NAMESPACE}`);
