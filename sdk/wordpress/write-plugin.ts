import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pluginFiles } from './plugin-files.ts';

// Writes the files of the plugin's zip file into a folder.
const [target = join(import.meta.dirname, 'build')] = process.argv.slice(2);
rmSync(join(target, 'lead-intake'), { recursive: true, force: true });
for (const [path, file] of pluginFiles()) {
  mkdirSync(dirname(join(target, path)), { recursive: true });
  writeFileSync(join(target, path), file);
}
