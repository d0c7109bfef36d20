import { join } from 'node:path';

/** What whoever owns the clients decides about their packages: edit it here, and nowhere else. */
export interface PackageSettings {
  /** The name for npm, by which programs import the client. */
  readonly npm: string;
  /** The name for Composer. PHP's namespace is `LeadIntake`, whatever the name. */
  readonly composer: string;
  /** The name for pip. Python's module is `lead_intake`, whatever the name. */
  readonly pypi: string;
  /** The identifier of a licence at SPDX; one of your own begins with `LicenseRef-`. The plugin for WordPress has its own. */
  readonly licence: string;
  /** Who publishes the packages. */
  readonly author?: { readonly name: string; readonly email?: string };
  /** A page about the packages. */
  readonly homepage?: string;
}

/**
 * No registry has packages of these names by this project: they are installed from the address of a deployment. Before you publish
 * them, set names that are yours at the registry.
 */
export const PACKAGE_SETTINGS: PackageSettings = {
  npm: 'lead-intake-sdk',
  composer: 'lead-intake/client',
  pypi: 'lead-intake',
  licence: 'LicenseRef-Proprietary',
};

/** The names of the archives of a version. They begin as each registry would have them, and no two versions share one. */
export function archiveNames({ npm, composer, pypi }: PackageSettings, version: string) {
  return {
    npm: `${npm.replace(/^@/, '').replace('/', '-')}-${version}.tgz`,
    python: `${pypi.replaceAll(/[-_.]+/g, '_').toLowerCase()}-${version}-py3-none-any.whl`,
    php: `${composer.replace('/', '-')}-php-${version}.zip`,
    wordpress: `lead-intake-wordpress-${version}.zip`,
    recipes: `lead-intake-recipes-${version}.tgz`,
    proto: `lead-intake-proto-${version}.zip`,
  } as const;
}

/** What the package of each kind is for, in the order of the page that lists them. */
export const PACKAGE_TITLES = {
  npm: 'TypeScript and JavaScript',
  python: 'Python',
  php: 'PHP',
  wordpress: 'WordPress',
  recipes: 'Recipes for whole websites',
  proto: 'RPC contract',
} as const;

export type PackageKind = keyof typeof PACKAGE_TITLES;

export const PACKAGE_KINDS = Object.keys(PACKAGE_TITLES) as PackageKind[];

/** A package as the file of its release describes it. */
export interface PackageDescription {
  readonly kind: PackageKind;
  readonly name: string;
  /** The name of the archive. */
  readonly file: string;
  readonly bytes: number;
  /** In hexadecimal. */
  readonly sha256: string;
  /** In hexadecimal; Composer compares it. */
  readonly sha1: string;
  /** The name of its bill of materials, in the format of CycloneDX. */
  readonly sbom: string;
  /** Of Python, the versions that it needs, as pip reads them. */
  readonly requiresPython?: string;
  /** Of PHP, its composer.json. */
  readonly composer?: Readonly<Record<string, unknown>>;
  /** Its manual in Markdown, with the paths of pages of `/docs` as links, and `{{publicUrl}}` for the address of the deployment. */
  readonly manual?: string;
  /** Of the recipes, the page of each by its name, written like a manual; its last section has all files of the recipe. */
  readonly pages?: Readonly<Record<string, string>>;
  /** Of the plugin for WordPress, what WordPress asks about an update. */
  readonly update?: PluginUpdate;
}

/** What WordPress reads about an update, in the form of the filter `update_plugins_{hostname}`. `package` is a name beside this file. */
export interface PluginUpdate {
  readonly version: string;
  readonly package: string;
  readonly requires: string;
  readonly requires_php: string;
  readonly tested: string;
  /** Of the package, in hexadecimal digits. */
  readonly sha256: string;
}

/** The packages of a release, as `release-VERSION.json` beside them has them. */
export interface PackageRelease {
  readonly version: string;
  /** The name of the file with the checksums of all others. */
  readonly checksums: string;
  readonly packages: readonly PackageDescription[];
}

/** The folder into which `npm run build:packages` builds those of this release. */
export const PACKAGES_FOLDER = join(import.meta.dirname, '../packages');
