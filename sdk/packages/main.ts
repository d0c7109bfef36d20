/**
 * `npm run build:packages`: builds the packages that the gateway of this installation serves.
 *
 * Usage: main.ts [FOLDER]
 */
import { PACKAGES_FOLDER } from '../../common/package-settings.ts';
import { buildPackages } from './build-packages.ts';

const folder = process.argv[2] ?? PACKAGES_FOLDER;
const { packages } = buildPackages(folder);
console.log(`built in ${folder}: ${packages.map(({ file }) => file).join(', ')}`);
