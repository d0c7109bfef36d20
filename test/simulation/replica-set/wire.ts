import { BSON, type Document } from 'mongodb';
import { NotSimulated } from './values.ts';

/* MongoDB's protocol: OP_MSG, and OP_QUERY, which a driver sends first. */

const OP_REPLY = 1;
const OP_QUERY = 2004;
const OP_MSG = 2013;

/** Flags of a message: another message follows without a reply; the server may send many replies. */
const MORE_TO_COME = 2;
const EXHAUST_ALLOWED = 1 << 16;

/** Numbers keep their types, so that they are stored and returned unchanged. */
const AS_STORED = { promoteValues: false, promoteLongs: false, validation: { utf8: false } } as const;

/** A message of a client. */
export interface Message {
  readonly id: number;
  readonly isQuery: boolean;
  readonly wantsReply: boolean;
  readonly mayStream: boolean;
  /** The body, with each sequence of documents as a list in it. */
  readonly command: Document;
}

export function parseMessage(bytes: Buffer): Message {
  const id = bytes.readInt32LE(4);
  const opcode = bytes.readInt32LE(12);
  if (opcode === OP_QUERY) {
    // Skips the flags, the name of a collection, and two numbers.
    const command = documentAt(bytes, bytes.indexOf(0, 20) + 9);
    return { id, isQuery: true, wantsReply: true, mayStream: false, command };
  }
  if (opcode !== OP_MSG) throw new NotSimulated(`the opcode ${opcode}`);
  const flags = bytes.readInt32LE(16);
  let command: Document = {};
  for (let at = 20; at < bytes.length; at += 1 + bytes.readInt32LE(at + 1)) {
    if (bytes[at] === 0) command = { ...documentAt(bytes, at + 1), ...command };
    else command = { ...command, ...sequenceAt(bytes, at + 1) };
  }
  const [wantsReply, mayStream] = [(flags & MORE_TO_COME) === 0, (flags & EXHAUST_ALLOWED) !== 0];
  return { id, isQuery: false, wantsReply, mayStream, command };
}

const documentAt = (bytes: Buffer, at: number): Document =>
  BSON.deserialize(bytes.subarray(at, at + bytes.readInt32LE(at)), AS_STORED);

function sequenceAt(bytes: Buffer, at: number): Document {
  const end = at + bytes.readInt32LE(at);
  const nameEnd = bytes.indexOf(0, at + 4);
  const documents: Document[] = [];
  for (let from = nameEnd + 1; from < end; from += bytes.readInt32LE(from)) documents.push(documentAt(bytes, from));
  return { [bytes.toString('utf8', at + 4, nameEnd)]: documents };
}

/** Encodes a reply. @param isLast false if another one follows without a request */
export function replyTo({ id, isQuery }: Message, document: Document, isLast = true): Buffer {
  const body = BSON.serialize(document);
  const head = Buffer.alloc(isQuery ? 36 : 21);
  head.writeInt32LE(head.length + body.length, 0);
  head.writeInt32LE(id, 8);
  head.writeInt32LE(isQuery ? OP_REPLY : OP_MSG, 12);
  // The number of documents, or the flags.
  if (isQuery) head.writeInt32LE(1, 32);
  else head.writeInt32LE(isLast ? 0 : MORE_TO_COME, 16);
  return Buffer.concat([head, body]);
}

/** Returns a function that takes bytes, and calls back with each complete message. */
export function parseMessages(take: (message: Message) => void): (bytes: Buffer) => void {
  let received = Buffer.alloc(0);
  // A large message comes in hundreds of pieces, which are joined when it is complete.
  let pieces: Buffer[] = [];
  let missing = 4;
  return (bytes) => {
    pieces.push(bytes);
    missing -= bytes.length;
    if (missing > 0) return;
    received = Buffer.concat([received, ...pieces]);
    pieces = [];
    while (received.length >= 4 && received.length >= received.readInt32LE(0)) {
      const length = received.readInt32LE(0);
      const message = parseMessage(received.subarray(0, length));
      received = received.subarray(length);
      take(message);
    }
    missing = (received.length < 4 ? 4 : received.readInt32LE(0)) - received.length;
  };
}
