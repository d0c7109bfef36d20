/** The error of a store that is unavailable, refused a command, or does not know the outcome of a write. */
export class StoreUnavailable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'StoreUnavailable';
  }
}

type RecordKind = 'lead' | 'API key' | 'studio' | 'member' | 'lead source' | 'event' | 'consumer' | 'request';

/** The names that identify a record. */
export interface RecordName {
  readonly kind: RecordKind;
  readonly studioId: string;
  readonly id: string;
}

/**
 * A stored record that this release cannot read, because another program, another release or a person wrote it. The
 * error identifies the record and the field, and never contains the field's value.
 */
export class UnreadableRecord extends Error implements RecordName {
  readonly kind: RecordKind;
  readonly studioId: string;
  readonly id: string;
  /** The first field that is missing, of the wrong type, or not a known value. */
  readonly field: string;

  constructor(kind: RecordKind, { studioId, id }: { readonly studioId: string; readonly id: string }, field: string) {
    super(`the ${kind} ${id} of studio ${studioId} cannot be read: ${field} is invalid`);
    this.name = 'UnreadableRecord';
    this.kind = kind;
    this.studioId = studioId;
    this.id = id;
    this.field = field;
  }
}

export type ReportUnreadable = (record: UnreadableRecord) => void;
