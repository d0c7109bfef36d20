import { EventEmitter } from 'node:events';
import fs from 'node:fs';
import sqlite from 'node:sqlite';
import workers from 'node:worker_threads';
import zlib from 'node:zlib';
import { here } from './machine.ts';

/* Runs the work of Node's threads in this one. SQLite is real: a killed process leaves its files, and releases its locks. */

const RealDatabase = sqlite.DatabaseSync;

class NodeDatabase extends RealDatabase {
  constructor(...values: ConstructorParameters<typeof RealDatabase>) {
    super(...values);
    here().resources.add({ release: () => this.isOpen && this.close() });
  }
}

/** The thread that checkpoints SQLite's log into the database, as events of its node. */
class CheckpointThread extends EventEmitter {
  readonly #database: NodeDatabase;

  constructor(_: URL, { workerData }: { readonly workerData: { readonly path: string } }) {
    super();
    this.#database = new NodeDatabase(workerData.path);
  }

  postMessage(message: 'checkpoint' | 'truncate' | 'close'): void {
    setImmediate(() => {
      this.#database.exec(`PRAGMA wal_checkpoint(${message === 'checkpoint' ? 'PASSIVE' : 'TRUNCATE'})`);
      if (message !== 'close') return;
      this.#database.close();
      this.emit('exit');
    });
  }

  ref(): void {}

  unref(): void {}
}

const { writeSync } = fs;

/** Keeps the standard output of a node in that node. */
function write(descriptor: number, ...values: [Buffer]): number {
  const node = here();
  if (node === node.machine.outside) return writeSync(descriptor, ...values);
  const [bytes] = values;
  node.output += bytes.toString();
  return bytes.length;
}

type Compress = (bytes: Buffer, options?: object) => Buffer;

/** Returns the asynchronous form of a compressing function. */
function inThisThread(compress: Compress) {
  type Done = (error: Error | null, result?: Buffer) => void;
  return (bytes: Buffer, ...rest: [Done] | [object, Done]) => {
    const [options, done] = rest.length === 1 ? [undefined, rest[0]] : rest;
    try {
      setImmediate(done as (...values: unknown[]) => void, null, compress(bytes, options));
    } catch (error) {
      setImmediate(done as (...values: unknown[]) => void, error);
    }
  };
}

/** Keeps every opened file referenced, because Node closes files that a killed node left open when it collects garbage. */
const opened: unknown[] = [];

/** Replaces Node's threads. */
export function replaceThreads(): void {
  Object.assign(sqlite, { DatabaseSync: NodeDatabase });
  Object.assign(workers, { Worker: CheckpointThread });
  Object.assign(zlib, {
    gzip: inThisThread(zlib.gzipSync as Compress),
    gunzip: inThisThread(zlib.gunzipSync as Compress),
    brotliCompress: inThisThread(zlib.brotliCompressSync as Compress),
    brotliDecompress: inThisThread(zlib.brotliDecompressSync as Compress),
  });
  Object.assign(fs, { writeSync: write });
  const { open } = fs.promises;
  // In a thread, they would end at a time that no seed determines.
  Object.assign(fs.promises, {
    open: async (...values: Parameters<typeof open>) => {
      const file = await open(...values);
      opened.push(file);
      return file;
    },
    access: async (...values: Parameters<typeof fs.accessSync>) => fs.accessSync(...values),
    stat: async (path: string) => fs.statSync(path),
    readFile: async (path: string, encoding: BufferEncoding) => fs.readFileSync(path, encoding),
  });
}
