import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../../test/tools/processes.ts';
import { pluginFiles, pluginUpdate } from '../wordpress/plugin-files.ts';
import { textsOfPlugin, translationsIn } from '../wordpress/translations.ts';

const LANGUAGES = join(ROOT, 'sdk/wordpress/lead-intake/languages');
const TEMPLATE = 'lead-intake/languages/lead-intake.pot';
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

// @proves plugin-1
describe('the files of the plugin for WordPress', () => {
  const files = pluginFiles();
  const texts = [...files].map(([path, file]) => ({ path, text: Buffer.from(file).toString() }));
  const code = texts.filter(({ path }) => path.endsWith('.php'));

  test('the plugin is built the same each time, with its release in the header and in readme.txt', () => {
    expect([...pluginFiles()]).toEqual([...files]);
    expect([...files.keys()].filter((path) => !path.startsWith('lead-intake/'))).toEqual([]);
    const toText = (name: string) => texts.find(({ path }) => path === `lead-intake/${name}`)?.text;
    expect(toText('lead-intake.php')).toContain(`* Version: ${version}\n`);
    expect(toText('readme.txt')).toContain(`Stable tag: ${version}\n`);
    for (const header of [
      'License: GPL-2.0-or-later',
      'Update URI: https://lead-intake.invalid/',
      'Text Domain: lead-intake',
    ]) {
      expect(toText('lead-intake.php')).toContain(header);
    }
  });

  test('each PHP file refuses direct requests, and the client has a namespace of the plugin', () => {
    expect(code.length).toBeGreaterThan(60);
    const guard =
      /^(?:<\?php\n\s*(?:\/\*\*[\s\S]*?\*\/\s*)?declare\(strict_types=1\);\s*(?:namespace LeadIntakePlugin[\\\w]*;\s*)?(?:use [\\\w]+;\s*)*)defined\('(?:ABSPATH|WP_UNINSTALL_PLUGIN)'\) \|\| exit;/;
    expect(code.filter(({ text }) => !guard.test(text)).map(({ path }) => path)).toEqual([]);
    expect(
      code
        .filter(({ text }) => /(?<![\w\\])\\?LeadIntake\\/.test(text.replaceAll(/\/\*[\s\S]*?\*\//g, '')))
        .map(({ path }) => path),
    ).toEqual([]);
  });

  test('the plugin has at most 2,100 lines of PHP of its own', () => {
    const own = globSync('sdk/wordpress/lead-intake/**/*.php', { cwd: ROOT });
    expect(
      own.map((path) => readFileSync(join(ROOT, path), 'utf8').split('\n').length - 1).reduce((a, b) => a + b),
    ).toBeLessThanOrEqual(2100);
  });

  test('wordpress.json describes the requirements and the hash of the plugin', () => {
    expect(pluginUpdate('lead-intake-1.2.0.zip', Buffer.from('a zip file'))).toEqual({
      version,
      package: 'lead-intake-1.2.0.zip',
      requires: '6.1',
      requires_php: '8.1',
      tested: '6.1',
      sha256: '47d03e66a698943e8bf4b2dfa29f70a8f951c614623725c5cdb56731c25d7ce6',
    });
  });
});

// @proves plugin-1
describe('the translations of the plugin for WordPress', () => {
  const placeholders = (text: string) => text.match(/%(?:\d\$)?[sd]/g) ?? [];

  test('the template for translators has each text of the code', () => {
    const template = translationsIn(Buffer.from(pluginFiles().get(TEMPLATE) ?? []).toString());
    expect(template.size).toBeGreaterThan(80);
    expect([...template].filter(([id]) => id !== '').map(([id, { plural }]) => ({ id, plural }))).toEqual(
      textsOfPlugin().map(({ id, plural }) => ({ id, plural })),
    );
  });

  test.each(['de_DE', 'fr_FR'])(
    'the translation into %s has each text with its placeholders, and no other text',
    (language) => {
      const found = translationsIn(readFileSync(join(LANGUAGES, `lead-intake-${language}.po`), 'utf8'));
      expect([...found.keys()].filter((id) => id !== '').toSorted()).toEqual(
        textsOfPlugin()
          .map(({ id }) => id)
          .toSorted(),
      );
      for (const { id, plural } of textsOfPlugin()) {
        const { plural: translated, forms = [] } = found.get(id) ?? {};
        expect({ id, translated, count: forms.length }).toEqual({
          id,
          translated: plural,
          count: plural === undefined ? 1 : 2,
        });
        for (const form of forms)
          expect({ id, form, has: placeholders(form) }).toEqual({
            id,
            form: expect.stringMatching(/\S/),
            has: placeholders(id),
          });
      }
    },
  );
});
