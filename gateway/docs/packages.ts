import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { PackageDescription, PackageKind, PackageRelease } from '../../common/package-settings.ts';

/** The version of this installation. */
const VERSION: string = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')).version;

/** The path below which packages are served. Composer uses it as the address of a repository. */
export const PACKAGES_PATH = '/docs/packages';

/** A file of a package: an archive, its bill of materials, or checksums. */
export interface PackageFile {
  readonly name: string;
  readonly folder: string;
  readonly mediaType: string;
  /** Archives only; in hexadecimal. */
  readonly sha256?: string;
  /** Archives only. */
  readonly bytes?: number;
}

interface StoredRelease extends PackageRelease {
  readonly folder: string;
}

/** The packages that a gateway serves. */
export interface Packages {
  /** The release of this installation; undefined when its packages were not built. */
  readonly current: PackageRelease | undefined;
  /** This release and earlier ones, newest first. */
  readonly releases: readonly StoredRelease[];
}

/**
 * Finds the packages of this and earlier releases. If two folders have the same version, the first one counts.
 *
 * @throws Error when a folder or a release file cannot be read, or an archive is missing
 */
export function findPackages(folders: readonly string[]): Packages {
  const releases = new Map<string, StoredRelease>();
  for (const folder of folders.filter(existsSync)) {
    const names = readdirSync(folder).filter((name) => /^release-[\w.+-]+\.json$/.test(name));
    for (const release of names.map((name) => readRelease(folder, name))) {
      if (!releases.has(release.version)) releases.set(release.version, release);
    }
  }
  const compare = new Intl.Collator('en', { numeric: true }).compare;
  return {
    current: releases.get(VERSION),
    releases: [...releases.values()].toSorted((a, b) => compare(b.version, a.version)),
  };
}

function readRelease(folder: string, name: string): StoredRelease {
  try {
    const release: PackageRelease = JSON.parse(readFileSync(join(folder, name), 'utf8'));
    for (const { name, bytes } of listFiles({ ...release, folder })) {
      // The name becomes part of a path and of an address.
      if (!/^\w[\w.+-]*$/.test(name)) throw new Error(`${JSON.stringify(name)} is not the name of a file`);
      const { size } = statSync(join(folder, name));
      if (bytes !== undefined && size !== bytes) throw new Error(`${name} has ${size} bytes instead of ${bytes}`);
    }
    return { ...release, folder };
  } catch (error) {
    const what = `reading the packages of ${join(folder, name)} failed: ${(error as Error).message}`;
    throw new Error(`${what}; copy all files of that release again, or remove that file`);
  }
}

/** Returns every file of a release. */
export function listFiles({ folder, checksums, packages }: StoredRelease): PackageFile[] {
  const files = packages.flatMap(({ file, sha256, bytes, sbom }): PackageFile[] => [
    { folder, name: file, mediaType: file.endsWith('.tgz') ? 'application/gzip' : 'application/zip', sha256, bytes },
    { folder, name: sbom, mediaType: 'application/vnd.cyclonedx+json; version=1.6' },
  ]);
  return [...files, { folder, name: checksums, mediaType: 'text/plain; charset=utf-8' }];
}

/** Returns all packages, newest first. */
const listPackages = ({ releases }: Packages) =>
  releases.flatMap(({ version, packages }) => packages.map((description) => ({ version, ...description })));

const listKind = (packages: Packages, kind: PackageKind) => listPackages(packages).filter((one) => one.kind === kind);

const formatPackageUrl = (publicUrl: string, file: string) => `${publicUrl}${PACKAGES_PATH}/${file}`;

/** A file below PACKAGES_PATH, written when the gateway starts. */
export interface PackageIndex {
  readonly path: string;
  readonly mediaType: string;
  readonly text: string;
}

/**
 * Returns the indexes: all packages for programs, a repository for Composer, a simple index (PEP 503) with relative links for pip. Composer
 * accepts only absolute addresses.
 */
export function packageIndexes(packages: Packages, publicUrl: string): PackageIndex[] {
  const all = listPackages(packages).map(
    ({ composer: _, sha1: __, update: ___, manual: ____, pages: _____, file, sbom, ...each }) => {
      return { ...each, url: formatPackageUrl(publicUrl, file), sbom: formatPackageUrl(publicUrl, sbom) };
    },
  );
  const index = { version: VERSION, packages: all };
  return [
    { path: '/index.json', mediaType: 'application/json', text: JSON.stringify(index) },
    { path: '/packages.json', mediaType: 'application/json', text: composerRepository(packages, publicUrl) },
    ...simpleIndex(packages),
    ...pluginIndex(packages),
  ];
}

/** Returns the index that website plugins ask about updates. */
function pluginIndex(packages: Packages): PackageIndex[] {
  const [newest] = listKind(packages, 'wordpress');
  if (!newest?.update) return [];
  return [{ path: '/wordpress.json', mediaType: 'application/json', text: JSON.stringify(newest.update) }];
}

function composerRepository(packages: Packages, publicUrl: string): string {
  const versions: Record<string, Record<string, object>> = {};
  for (const { name, version, file, sha1, composer } of listKind(packages, 'php')) {
    const dist = { type: 'zip', url: formatPackageUrl(publicUrl, file), shasum: sha1 };
    versions[name] = { ...versions[name], [version]: { ...composer, name, version, dist } };
  }
  return JSON.stringify({ packages: versions });
}

function simpleIndex(packages: Packages): PackageIndex[] {
  const normalized = ({ name }: PackageDescription) => name.replaceAll(/[-_.]+/g, '-').toLowerCase();
  const projects = Object.groupBy(listKind(packages, 'python'), normalized);
  const page = (path: string, title: string, links: readonly string[]): PackageIndex => ({
    path: `/simple/${path}`,
    mediaType: 'text/html; charset=utf-8',
    text: `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="pypi:repository-version" content="1.0"><title>${title}</title>
${links.join('<br>\n')}
</html>
`,
  });
  const project = (name: string) => `<a href="${name}/">${name}</a>`;
  const wheel = ({ file, sha256, requiresPython = '' }: PackageDescription) => {
    const versions = requiresPython.replaceAll('<', '&lt;').replaceAll('>', '&gt;');
    return `<a href="../../${file}#sha256=${sha256}" data-requires-python="${versions}">${file}</a>`;
  };
  const pages = Object.entries(projects).map(([name, wheels = []]) => page(`${name}/`, name, wheels.map(wheel)));
  return [page('', 'Packages for pip', Object.keys(projects).map(project)), ...pages];
}

/** Returns the detail for a request for something that was not built. */
export const notBuilt = (what: 'packages' | 'docs'): string =>
  `The ${what} of this release are not here: whoever runs this deployment builds them by npm run build:${what}, and restarts the gateway.`;

/** Returns the detail for a request for a missing package. */
export function missingPackage({ current, releases }: Packages, publicUrl: string): string {
  if (!current) return notBuilt('packages');
  const earlier = releases.filter((release) => release !== current).map(({ version }) => version);
  const others = earlier.join(', ') || 'no other release';
  return `This deployment has the packages of release ${VERSION}, and those of ${others}: see ${publicUrl}${PACKAGES_PATH}.`;
}
