/** Lists the packages: the repository's files in each, and the metadata for its manager. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, extname, join } from 'node:path';
import { parse } from 'smol-toml';
import {
  archiveNames,
  PACKAGE_SETTINGS,
  type PackageDescription,
  type PackageKind,
  type PackageSettings,
} from '../../common/package-settings.ts';
import { pluginFiles, pluginUpdate } from '../wordpress/plugin-files.ts';
import { type Files, filesOfTgz, makeTgz, makeZip } from './archives.ts';

const ROOT = join(import.meta.dirname, '../..');

/** A dependency of a package that its manager installs. */
export interface Dependency {
  readonly name: string;
  /** The permitted versions, in the manager's syntax. */
  readonly versions: string;
}

/** A package without its checksums. */
export interface Package
  extends Pick<PackageDescription, 'requiresPython' | 'composer' | 'update' | 'manual' | 'pages'> {
  readonly name: string;
  readonly description: string;
  readonly archive: Uint8Array;
  readonly dependencies: readonly Dependency[];
}

/** Makes a package of a version by the settings. */
type Packager = (settings: PackageSettings, version: string) => Package;

/** Instructions on the clients for coding assistants. */
const SKILL = filesIn('sdk', 'SKILL.md');
const PHP_SOURCES = filesIn('sdk/php/src', '**/*.php');

export const PACKAGERS: Readonly<Record<PackageKind, Packager>> = {
  npm: npmPackage,
  python: pythonPackage,
  php: phpPackage,
  wordpress(settings, version) {
    const archive = makeZip(pluginFiles());
    return {
      name: 'lead-intake-wordpress',
      description: 'A plugin for WordPress that sends what visitors enter as leads, and loses none.',
      archive,
      dependencies: [],
      manual: toManual('sdk/wordpress/README.md'),
      update: { ...pluginUpdate(archiveNames(settings, version).wordpress, archive), version },
    };
  },
  recipes: recipesPackage,
  proto: () => ({
    name: 'lead-intake-proto',
    description: 'The RPC contract of the core of Lead Intake, for protoc, buf and grpcurl.',
    archive: makeZip(within('lead-intake-proto', inScratch(protoFiles))),
    dependencies: [],
  }),
};

function npmPackage(settings: PackageSettings, version: string): Package {
  const files = new Map([...inScratch(npmFiles), ...within('package', SKILL)]);
  const { name, description, private: _, scripts: __, ...manifest } = json(text(files, 'package/package.json'));
  const { licence, author, homepage } = settings;
  const head = { name: settings.npm, version, description, license: isOwnLicence(licence) ? 'UNLICENSED' : licence };
  const own = { ...head, ...(author && { author }), ...(homepage && { homepage }) };
  files.set('package/package.json', jsonFile({ ...own, ...manifest, ...own }));
  const named = (page: string) => page.replaceAll(name, settings.npm);
  files.set('package/README.md', Buffer.from(named(standalone(text(files, 'package/README.md')))));
  const manual = named(toManual('sdk/README.md'));
  return { name: settings.npm, description, archive: makeTgz(files), dependencies: [], manual };
}

function phpPackage(settings: PackageSettings, version: string): Package {
  const source = json(readFileSync(join(ROOT, 'sdk/php/composer.json'), 'utf8'));
  const { name, description, require = {}, archive: _, ...manifest } = source;
  const { licence, author, homepage } = settings;
  const composer = {
    ...{ name: settings.composer, description, ...manifest, version, require },
    license: isOwnLicence(licence) ? 'proprietary' : licence,
    ...(author && { authors: [author] }),
    ...(homepage && { homepage }),
  };
  const readme = standalone(readFileSync(join(ROOT, 'sdk/php/README.md'), 'utf8')).replaceAll(name, settings.composer);
  const files = new Map<string, Uint8Array>([
    ['composer.json', jsonFile(composer)],
    ['README.md', Buffer.from(readme)],
    ...SKILL,
    ...within('src', PHP_SOURCES),
  ]);
  const dependencies = Object.entries(require).map(([name, versions]) => ({ name, versions }));
  const manual = toManual('sdk/php/README.md').replaceAll(name, settings.composer);
  return { name: settings.composer, description, archive: makeZip(files), dependencies, composer, manual };
}

/** The fields of sdk/python/pyproject.toml that a wheel has. */
interface PythonProject {
  readonly description: string;
  readonly 'requires-python': string;
  readonly classifiers: readonly string[];
  readonly dependencies: readonly string[];
}

/** Makes a wheel: https://packaging.python.org/en/latest/specifications/binary-distribution-format/ */
function pythonPackage(settings: PackageSettings, version: string): Package {
  const { project } = parse(readFileSync(join(ROOT, 'sdk/python/pyproject.toml'), 'utf8')) as unknown as {
    readonly project: PythonProject;
  };
  const name = settings.pypi;
  const folder = `${name.replaceAll(/[-_.]+/g, '_').toLowerCase()}-${version}.dist-info`;
  const files = new Map([
    ...within('lead_intake', filesIn('sdk/python/src/lead_intake', '**/*.{py,typed}'), SKILL),
    [`${folder}/METADATA`, Buffer.from(pythonMetadata(settings, version, project))] as const,
    [`${folder}/WHEEL`, Buffer.from(WHEEL)] as const,
  ]);
  const rows = [...files].sort().map(([path, content]) => {
    const digest = createHash('sha256').update(content).digest('base64url');
    return `${path},sha256=${digest},${content.length}\n`;
  });
  const record = `${folder}/RECORD`;
  files.set(record, Buffer.from(`${rows.join('')}${record},,\n`));
  const dependencies = project.dependencies.map((each) => {
    const [, dependency = each, versions = ''] = /^([\w.-]+)(.*)$/.exec(each) ?? [];
    return { name: dependency, versions };
  });
  return {
    name,
    description: project.description,
    // Last, as the specification recommends.
    archive: makeZip(files, [record]),
    dependencies,
    requiresPython: project['requires-python'],
    manual: toManual('sdk/python/README.md'),
  };
}

const WHEEL = `Wheel-Version: 1.0
Generator: lead-intake
Root-Is-Purelib: true
Tag: py3-none-any
`;

function pythonMetadata(settings: PackageSettings, version: string, project: PythonProject): string {
  const { pypi, licence, author, homepage } = settings;
  const headers = [
    ['Metadata-Version', '2.4'],
    ['Name', pypi],
    ['Version', version],
    ['Summary', project.description],
    ...(author ? [['Author', author.name]] : []),
    ...(author?.email ? [['Author-email', `${author.name} <${author.email}>`]] : []),
    ...(homepage ? [['Project-URL', `Homepage, ${homepage}`]] : []),
    ['License-Expression', licence],
    // Registries refuse a package with a private classifier.
    ...project.classifiers.filter((each) => !each.startsWith('Private ::')).map((each) => ['Classifier', each]),
    ['Requires-Python', project['requires-python']],
    ...project.dependencies.map((each) => ['Requires-Dist', each]),
    ['Description-Content-Type', 'text/markdown'],
  ];
  const readme = readFileSync(join(ROOT, 'sdk/python/README.md'), 'utf8');
  return `${headers.map(([name, value]) => `${name}: ${value}\n`).join('')}\n${standalone(readme)}`;
}

/** Builds and packs the client with npm in a fresh folder, without remains of a former build. */
function npmFiles(scratch: string): Files {
  const folder = join(ROOT, 'sdk');
  const others = ['dist', 'php', 'python', 'conformance', 'packages'].map((name) => join(folder, name));
  cpSync(folder, join(scratch, 'sdk'), { recursive: true, filter: (file) => !others.includes(file) });
  cpSync(join(ROOT, 'tsconfig.json'), join(scratch, 'tsconfig.json'));
  symlinkSync(join(ROOT, 'node_modules'), join(scratch, 'node_modules'));
  mkdirSync(join(scratch, 'packed'));
  run('npm', ['pack', './sdk', '--silent', '--pack-destination', join(scratch, 'packed')], scratch);
  const [archive = ''] = globSync('packed/*.tgz', { cwd: scratch });
  return filesOfTgz(readFileSync(join(scratch, archive)));
}

/** The path of the outboxes' page in the Rails recipe. */
const RAILS_PAGE = 'rails/app/views/leads/page.html';

/** Packs the recipes, which are as the tests run them, but with the clients' names from the settings. */
function recipesPackage(settings: PackageSettings, version: string): Package {
  const [names, ownNames] = [archiveNames(PACKAGE_SETTINGS, version), archiveNames(settings, version)];
  const named = (content: Uint8Array | string) =>
    Buffer.from(content)
      .toString()
      .replaceAll(names.npm, ownNames.npm)
      .replaceAll(names.python, ownNames.python)
      .replaceAll(PACKAGE_SETTINGS.npm, settings.npm)
      .replaceAll(PACKAGE_SETTINGS.composer, settings.composer);
  const files = [...filesIn(RECIPES, '**/*'), [RAILS_PAGE, readFileSync(join(ROOT, 'sdk/outbox/page.html'))] as const]
    .filter(([path]) => !path.includes('__pycache__'))
    .map(([path, content]) => [path, named(content)] as const);
  const pages = Map.groupBy(files, ([path]) => path.split('/', 1)[0] ?? '');
  return {
    name: 'lead-intake-recipes',
    description: 'Complete contact forms for websites, to copy.',
    archive: makeTgz(within('recipes', new Map(files.map(([path, content]) => [path, Buffer.from(content)])))),
    dependencies: [],
    pages: Object.fromEntries([...pages].map(([name, own]) => [name, named(recipePage(name, own))])),
  };
}

/** Returns the README of a recipe, followed by its files. */
function recipePage(name: string, files: readonly (readonly [path: string, content: string])[]): string {
  const readme = `${name}/README.md`;
  const sections = files
    .filter(([path]) => path !== readme)
    .map(([path, content]) => {
      const code = content === '' ? 'It is empty.' : `\`\`\`${extname(path).slice(1)}\n${content.trimEnd()}\n\`\`\``;
      return `### \`${path.slice(name.length + 1)}\`\n\n${code}\n`;
    });
  return `${toManual(`${RECIPES}/${readme}`)}\n## Its files\n\n${sections.join('\n')}`;
}

function protoFiles(scratch: string): Files {
  const bundle = join(scratch, 'lead-intake-proto');
  run(join(ROOT, 'proto/make-bundle'), [bundle], ROOT);
  return filesIn(bundle, '**/*');
}

function run(command: string, args: readonly string[], cwd: string): void {
  const path = [join(ROOT, 'node_modules/.bin'), process.env.PATH].join(delimiter);
  execFileSync(command, args, { cwd, env: { ...process.env, PATH: path }, stdio: ['ignore', 'pipe', 'inherit'] });
}

function inScratch<T>(work: (scratch: string) => T): T {
  const scratch = mkdtempSync(join(tmpdir(), 'lead-intake-packages-'));
  try {
    return work(scratch);
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

/** Reads the files of a folder by their paths within it. The folder is absolute, or relative to the repository. */
function filesIn(folder: string, pattern: string): Files {
  const cwd = folder.startsWith('/') ? folder : join(ROOT, folder);
  const entries = globSync(pattern, { cwd, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries.map(({ parentPath, name }) => join(parentPath, name));
  return new Map(paths.map((path) => [path.slice(cwd.length + 1).replaceAll('\\', '/'), readFileSync(path)]));
}

/** Puts files into a folder. */
const within = (folder: string, ...parts: readonly Files[]): Files =>
  new Map(parts.flatMap((files) => [...files].map(([path, content]) => [`${folder}/${path}`, content] as const)));

/**
 * Makes a page readable without the repository: a link to a page of `/docs` becomes that page's path at the deployment, and a
 * link to another file becomes its text.
 */
const standalone = (page: string): string =>
  page
    .replaceAll(/<!-- [\w-]+ -->\n/g, '')
    .replaceAll(/\[([^\]]+)\]\((?:\.\.\/)+gateway\/docs\/pages\/([\w-]+)\.md(#[\w-]+)?\)/g, '$1 (`/docs/$2`)')
    .replaceAll(/\[([^\]]+)\]\((?!https?:|#)[^)]+\)/g, '$1');

const RECIPES = 'examples/recipes';

/** The pages of the manuals below `/docs`, by the READMEs that they are made from. */
const MANUALS: Readonly<Record<string, string>> = {
  'README.md': 'typescript',
  'php/README.md': 'php',
  'python/README.md': 'python',
  'wordpress/README.md': 'wordpress',
};

/** Returns a README as a page of a deployment: links to other pages lead there, and links to files of this repository become their text. */
const toManual = (readme: string): string =>
  readFileSync(join(ROOT, readme), 'utf8')
    .replaceAll(/<!-- [\w-]+ -->\n/g, '')
    .replaceAll('https://api.example.com', '{{publicUrl}}')
    .replaceAll(/\[([^\]]+)\]\((?!https?:|#)([^)#]+)(#[\w-]+)?\)/g, (_, text, path, anchor = '') => {
      const file = join(dirname(readme), path).replace(/^sdk\//, '');
      const page =
        /^gateway\/docs\/pages\/([\w-]+)\.md$/.exec(file)?.[1] ??
        /^examples\/(recipes\/[\w-]+)\/README\.md$/.exec(file)?.[1] ??
        MANUALS[file];
      return page === undefined ? text : `[${text}](/docs/${page}${anchor})`;
    });

/** Whether a licence is not on the SPDX list, and so has a name of its own. */
const isOwnLicence = (licence: string): boolean => licence.startsWith('LicenseRef-');

/** A manifest, whose other fields are copied. */
interface Manifest {
  readonly [field: string]: unknown;
  readonly name: string;
  readonly description: string;
  readonly require?: Readonly<Record<string, string>>;
}

const json = (source: string): Manifest => JSON.parse(source);

const jsonFile = (value: unknown): Buffer => Buffer.from(`${JSON.stringify(value, null, 2)}\n`);

const text = (files: Files, path: string): string => Buffer.from(files.get(path) ?? []).toString();
