import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  archiveNames,
  PACKAGE_KINDS,
  PACKAGE_SETTINGS,
  type PackageDescription,
  type PackageRelease,
} from '../../common/package-settings.ts';
import { makeSbom } from './sbom.ts';
import { PACKAGERS } from './sources.ts';

const ROOT = join(import.meta.dirname, '../..');

/** The version of the release and of all its packages. Archives of two releases differ, so their addresses must, too. */
export const VERSION: string = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version;

/**
 * Builds every package of this release into a folder, with its bill of materials, a file of all checksums, and the release file by which
 * a gateway finds them. Archives of other versions stay there.
 *
 * @returns the release
 */
export function buildPackages(folder: string, settings = PACKAGE_SETTINGS, version = VERSION): PackageRelease {
  mkdirSync(folder, { recursive: true });
  const sums: string[] = [];
  const put = (name: string, content: Uint8Array) => {
    replace(folder, name, content);
    sums.push(`${computeHash('sha256', content)}  ${name}\n`);
  };
  const names = archiveNames(settings, version);
  const packages = PACKAGE_KINDS.map((kind): PackageDescription => {
    const made = PACKAGERS[kind](settings, version);
    const { archive, dependencies: _, description: __, ...more } = made;
    const [file, sha256] = [names[kind], computeHash('sha256', archive)];
    const sbom = `${file.replace(/\.\w+$/, '')}.cdx.json`;
    put(file, archive);
    put(sbom, jsonFile(makeSbom(kind, made, settings, version, sha256)));
    const sums = { bytes: archive.length, sha256, sha1: computeHash('sha1', archive) };
    return { kind, file, sbom, ...sums, ...more };
  });
  const checksums = `SHA256SUMS-${version}.txt`;
  replace(folder, checksums, Buffer.from(sums.join('')));
  const release = { version, checksums, packages };
  // Written last: it tells a gateway that all other files are there.
  replace(folder, `release-${version}.json`, jsonFile(release));
  return release;
}

/** Replaces a file as a whole, because a gateway may be sending the former one, and has announced its length. */
function replace(folder: string, name: string, content: Uint8Array): void {
  const next = join(folder, `.${name}.${process.pid}`);
  writeFileSync(next, content);
  renameSync(next, join(folder, name));
}

const computeHash = (algorithm: 'sha1' | 'sha256', content: Uint8Array) =>
  createHash(algorithm).update(content).digest('hex');

const jsonFile = (value: unknown): Buffer => Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
