/**
 * Prints the bill of materials of the image that it runs in: Debian's packages, Node, and the npm packages for production. The build of
 * the image calls it.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { VERSION } from './build-packages.ts';
import { cycloneDx } from './sbom.ts';

interface LockedPackage {
  readonly version: string;
  readonly dev?: boolean;
  readonly integrity: string;
  readonly license?: string;
}

const lock: { packages: Record<string, LockedPackage> } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../package-lock.json'), 'utf8'),
);

const fromNpm = Object.entries(lock.packages)
  .filter(([path, { dev }]) => path !== '' && !dev)
  .map(([path, { version, integrity, license }]) => {
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    return {
      ...component('library', name, version, `pkg:npm/${name.replace('@', '%40')}@${version}`, path),
      hashes: [{ alg: 'SHA-512', content: Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex') }],
      ...(license && { licenses: [{ expression: license }] }),
    };
  });

// biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg's own placeholders.
const query = ['--show', '--showformat', '${Package} ${Version} ${Architecture}\n'];
const fromDebian = execFileSync('dpkg-query', query, { encoding: 'utf8' })
  .trim()
  .split('\n')
  .map((line) => {
    const [name = '', version = '', architecture] = line.split(' ');
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;
    return component('library', name, version, purl);
  });

const node = component('platform', 'node', process.versions.node, `pkg:generic/node@${process.versions.node}`);

const image = component('container', 'lead-intake', VERSION, `pkg:generic/lead-intake@${VERSION}`);
console.log(JSON.stringify(cycloneDx(image, { components: [node, ...fromNpm, ...fromDebian] }), null, 2));

/** @param ref distinguishes it from another component of the same name and version; default: the purl */
function component(type: string, name: string, version: string, purl: string, ref = purl) {
  return { type, 'bom-ref': ref, name, version, purl };
}
