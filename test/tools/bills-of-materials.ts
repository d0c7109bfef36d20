import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { ROOT } from './processes.ts';

const schemas = join(ROOT, 'node_modules/@cyclonedx/cyclonedx-library/res/schema');
const schema = (name: string) => JSON.parse(readFileSync(join(schemas, `${name}.SNAPSHOT.schema.json`), 'utf8'));

/** Validates a bill of materials against the schema of CycloneDX 1.6. */
export const validateBom = new Ajv({
  strict: false,
  validateFormats: false,
  schemas: {
    'http://cyclonedx.org/schema/spdx.SNAPSHOT.schema.json': schema('spdx'),
    'http://cyclonedx.org/schema/jsf-0.82.SNAPSHOT.schema.json': schema('jsf-0.82'),
  },
}).compile(schema('bom-1.6'));
