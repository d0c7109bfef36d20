import { parse } from 'csv-parse/sync';
import { restore } from '../../operator/csv-export.ts';

/** Returns the leads of an export as another program reads them: by column, without added apostrophes. */
export const leadsIn = (csv: string): Record<string, string>[] =>
  parse(csv, { columns: true, cast: (cell) => restore(cell) });
