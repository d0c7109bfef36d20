import { template } from './translations.ts';

process.stdout.write(template());
