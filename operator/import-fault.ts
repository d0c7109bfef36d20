/** A file that cannot be imported at all: nothing of it was written. The message is for the operator. */
export class ImportFault extends Error {}
