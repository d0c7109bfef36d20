/** Something that the operator can put right; the message is for them. */
export class CommandFault extends Error {}
