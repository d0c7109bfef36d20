import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../../../test/tools/processes.ts';

const execute = promisify(execFile);

/** A client for PSR-18 and PSR-17, and the logger interface of PSR-3, at Debian's paths. */
export const GUZZLE = 'GuzzleHttp/autoload.php';
export const PSR_LOG = 'Psr/Log/autoload.php';

/** Commands that succeed on a machine that can run a PHP website. */
export const PHP_TOOLS = [
  'composer --version',
  `php -r 'require "${GUZZLE}"; require "${PSR_LOG}"; curl_init(); new ZipArchive(); new PDO("sqlite::memory:");'`,
];

/** A website's folder in which Composer has installed the PHP client from its package. */
export interface PhpWebsite {
  readonly folder: string;
  /** Writes a file into the folder. */
  write(file: string, text: string): void;
  /** Runs a file, with warnings as errors, and returns its output. */
  run(file: string, env?: Readonly<Record<string, string>>, options?: readonly string[]): Promise<string>;
  /** Runs statements as a file of the website. */
  runStatements(
    statements: string,
    env?: Readonly<Record<string, string>>,
    options?: readonly string[],
  ): Promise<string>;
  /** Copies the website to another folder. */
  copy(folder: string): PhpWebsite;
}

/**
 * Creates a website.
 *
 * @param scratch a folder for the website and Composer's own files
 */
export async function aPhpWebsite(scratch: string): Promise<PhpWebsite> {
  const website = websiteIn(join(scratch, 'website'));
  mkdirSync(website.folder);
  const packages = join(scratch, 'packages');
  const env = {
    PATH: process.env.PATH,
    COMPOSER_HOME: scratch,
    COMPOSER_ALLOW_SUPERUSER: '1',
    COMPOSER_DISABLE_NETWORK: '1',
  };
  const composer = (...args: string[]) =>
    execute('composer', ['--no-interaction', ...args], { cwd: website.folder, env });
  await composer('archive', `--working-dir=${join(ROOT, 'sdk/php')}`, '--format=tar', `--dir=${packages}`);
  website.write('composer.json', '{}');
  await composer('config', 'repositories.packagist.org', 'false');
  await composer('config', 'repositories.lead-intake', 'artifact', packages);
  await composer('require', 'lead-intake/client');
  // Warnings and deprecations are errors, as on many websites.
  website.write('strict.php', '<?php set_error_handler(fn ($level, $text) => throw new ErrorException($text));');
  return website;
}

function websiteIn(folder: string): PhpWebsite {
  const write = (file: string, text: string) => writeFileSync(join(folder, file), text);
  const run: PhpWebsite['run'] = async (file, env = {}, options = []) => {
    const php = [...options, '-d', 'auto_prepend_file=strict.php', '-d', 'error_reporting=-1', file];
    const { stdout } = await execute('php', php, { cwd: folder, env: { PATH: process.env.PATH, ...env } });
    return stdout.trim();
  };
  return {
    folder,
    write,
    run,
    runStatements(statements, env, options) {
      const file = `${randomUUID()}.php`;
      write(file, `<?php declare(strict_types=1);\nrequire 'vendor/autoload.php';\n${statements}`);
      return run(file, env, options);
    },
    copy(other) {
      cpSync(folder, other, { recursive: true });
      return websiteIn(other);
    },
  };
}
