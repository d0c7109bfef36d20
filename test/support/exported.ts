import { parse } from 'csv-parse/sync';
import { restore } from '../../operator/csv-export.ts';

/** Returns the leads of an export by column, without the apostrophes that the export adds. */
export const leadsIn = (csv: string): Record<string, string>[] =>
  parse(csv, { columns: true, cast: (cell) => restore(cell) });
