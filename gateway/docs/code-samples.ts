import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_SETTINGS } from '../../common/package-settings.ts';
import type { KeyOperation } from '../../common/rules/public-api.ts';
import { CAPTURE, OLDER_LEAD } from './examples.ts';

/** Per client library: its name, the language of its samples, a program, and the statements of each operation. */
const CLIENTS = readFileSync(join(import.meta.dirname, 'code-samples.md'), 'utf8')
  .split(/^## /m)
  .slice(1)
  .map((section) => {
    const [label = ''] = section.split('\n', 1);
    const blocks = [...section.matchAll(/^(?:### (\w+)\n\n)?```(\w+)\n([\s\S]*?)\n```$/gm)];
    const texts = new Map(blocks.map(([, operation = 'program', , text = '']) => [operation, text]));
    return { label, lang: blocks[0]?.[2] ?? '', texts };
  });

/** A program for one operation. `lang` is its language, as the reference names it. */
interface CodeSample {
  readonly lang: string;
  readonly label: string;
  readonly source: string;
}

/** Returns one code sample per client library. The reference generates samples for curl itself. */
export function codeSamples(publicUrl: string, operation: KeyOperation): CodeSample[] {
  const { displayName, contact } = CAPTURE;
  const values: Readonly<Record<string, string>> = {
    ...{ publicUrl, displayName, ...contact },
    id: OLDER_LEAD.id,
    npmName: PACKAGE_SETTINGS.npm,
  };
  return CLIENTS.map(({ label, lang, texts }) => {
    const program = (texts.get('program') ?? '').replace(/^( *)\{\{statements\}\}/m, (_, indent) =>
      (texts.get(operation) ?? '').replaceAll(/^/gm, indent),
    );
    return { lang, label, source: program.replaceAll(/\{\{(\w+)\}\}/g, (_, name) => values[name] ?? '') };
  });
}
