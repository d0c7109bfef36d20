import { join } from 'node:path';

/** Decisions of the clients' owner about their packages. Edit them here, and nowhere else. */
export interface PackageSettings {
  /** The npm name, which programs import. */
  readonly npm: string;
  /** The Composer name. PHP's namespace is always `LeadIntake`. */
  readonly composer: string;
  /** The pip name. Python's module is always `lead_intake`. */
  readonly pypi: string;
  /** An SPDX licence identifier. Your own begins with `LicenseRef-`. The WordPress plugin has its own licence. */
  readonly licence: string;
  readonly author?: { readonly name: string; readonly email?: string };
  readonly homepage?: string;
}

/**
 * This project publishes no packages of these names: they are installed from the address of a deployment. Before you publish them, set
 * names that are yours at the registry.
 */
export const PACKAGE_SETTINGS: PackageSettings = {
  npm: 'lead-intake-sdk',
  composer: 'lead-intake/client',
  pypi: 'lead-intake',
  licence: 'LicenseRef-Proprietary',
};

/** Returns the archive names of a version. Each begins as its registry requires, and no two versions share one. */
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

/** The purpose of each kind of package, in the order of the page that lists them. */
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

/** A package, as the release file describes it. */
export interface PackageDescription {
  readonly kind: PackageKind;
  readonly name: string;
  /** The file name of the archive. */
  readonly file: string;
  readonly bytes: number;
  /** In hexadecimal. */
  readonly sha256: string;
  /** In hexadecimal; Composer compares it. */
  readonly sha1: string;
  /** The file name of its CycloneDX bill of materials. */
  readonly sbom: string;
  /** Python only: the versions that it supports, as pip reads them. */
  readonly requiresPython?: string;
  /** PHP only: its composer.json. */
  readonly composer?: Readonly<Record<string, unknown>>;
  /** Its manual in Markdown. Links are paths of pages of `/docs`, and `{{publicUrl}}` stands for the address of the deployment. */
  readonly manual?: string;
  /** Recipes only: the page of each by its name, written like a manual. Its last section has all files of the recipe. */
  readonly pages?: Readonly<Record<string, string>>;
  /** WordPress only: what WordPress asks about an update. */
  readonly update?: PluginUpdate;
}

/** An update, in the form of the filter `update_plugins_{hostname}`. `package` is the name of a file beside this one. */
export interface PluginUpdate {
  readonly version: string;
  readonly package: string;
  readonly requires: string;
  readonly requires_php: string;
  readonly tested: string;
  /** The checksum of the package, in hexadecimal. */
  readonly sha256: string;
}

/** The packages of a release, as in the `release-VERSION.json` beside them. */
export interface PackageRelease {
  readonly version: string;
  /** The name of the file with the checksums of all others. */
  readonly checksums: string;
  readonly packages: readonly PackageDescription[];
}

/** The folder into which `npm run build:packages` builds the packages of this release. */
export const PACKAGES_FOLDER = join(import.meta.dirname, '../packages');
