import type { PackageKind, PackageSettings } from '../../common/package-settings.ts';
import type { Package } from './sources.ts';

/** The purl types of the registries from which package managers install dependencies (https://github.com/package-url/purl-spec). */
const REGISTRY: Partial<Record<PackageKind, string>> = { python: 'pypi' };

/**
 * Returns the bill of materials of a package: the package itself, and the dependencies that its manager installs. Our own packages are
 * in no registry, so they are `generic`: a scanner must not take a stranger's package of the same name for them. PHP and its extensions
 * do not count as packages.
 *
 * @param sha256 of the archive, in hexadecimal
 * @returns a document of CycloneDX 1.6
 */
export function makeSbom(
  kind: PackageKind,
  { name, description, dependencies }: Package,
  { licence, author }: PackageSettings,
  version: string,
  sha256: string,
): object {
  const ref = `pkg:generic/${encodeURIComponent(name)}@${version}`;
  const registry = REGISTRY[kind];
  const parts = registry === undefined ? [] : dependencies;
  const components = parts.map((part) => ({
    type: 'library',
    'bom-ref': `pkg:${registry}/${part.name}`,
    name: part.name,
    purl: `pkg:${registry}/${part.name}`,
    properties: [{ name: 'versions', value: part.versions }],
  }));
  // The plugin has its own licence, which its files state.
  const licences = kind === 'wordpress' ? {} : { licenses: [toLicence(licence)] };
  const component = {
    type: 'library',
    'bom-ref': ref,
    name,
    version,
    description,
    ...(author && { authors: [author] }),
    hashes: [{ alg: 'SHA-256', content: sha256 }],
    ...licences,
    purl: ref,
  };
  return cycloneDx(component, {
    components,
    dependencies: [
      { ref, dependsOn: components.map((part) => part['bom-ref']) },
      ...components.map((part) => ({ ref: part['bom-ref'] })),
    ],
  });
}

/** Returns a document of CycloneDX 1.6 about a component. */
export const cycloneDx = (component: object, contents: object): object => ({
  $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  version: 1,
  metadata: { component },
  ...contents,
});

const toLicence = (licence: string) =>
  licence.startsWith('LicenseRef-') ? { license: { name: licence } } : { expression: licence };
