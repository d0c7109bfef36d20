import { gunzipSync, gzipSync, type Zippable, zipSync } from 'fflate';
import { createTar, parseTar } from 'nanotar';

/** Files by their paths in an archive, which are relative and have forward slashes. */
export type Files = ReadonlyMap<string, Uint8Array>;

/**
 * The time of every file in every archive, as npm writes it. It is fixed, so that two builds are equal. ZIP stores local times without
 * a zone, so this text is the same everywhere.
 */
const LOCAL_TIME = new Date(1985, 9, 26, 8, 15);
const UNIX_SECONDS = 499_162_500;

const MODE = 0o644;
/** ZIP's attributes of a regular file under Unix, which are in their upper half. */
const ZIP_ATTRIBUTES = ((0o100000 | MODE) << 16) >>> 0;
const UNIX = 3;

/** The length of a path in a tar header; bytes. */
const MAX_TAR_PATH = 100;

/** Returns a ZIP archive of files, in the order of their paths, except that those in `last` come last. Equal files make equal bytes on every machine. */
export function makeZip(files: Files, last: readonly string[] = []): Uint8Array {
  const order = [...sortedPaths(files).filter((path) => !last.includes(path)), ...last];
  const attributes = { os: UNIX, attrs: ZIP_ATTRIBUTES, mtime: LOCAL_TIME, level: 9 } as const;
  const entries: Zippable = {};
  for (const path of order) entries[path] = [findContent(files, path), attributes];
  return zipSync(entries);
}

/** Returns a gzipped tar archive of files, in the order of their paths. Equal files make equal bytes on every machine. */
export function makeTgz(files: Files): Uint8Array {
  const tooLong = [...files.keys()].filter((path) => Buffer.byteLength(path) > MAX_TAR_PATH);
  if (tooLong.length > 0) throw new Error(`a tar archive cannot have ${tooLong.join(', ')}: shorten these paths`);
  const attrs = { mode: MODE.toString(8), uid: 0, gid: 0, mtime: UNIX_SECONDS * 1000 };
  const tar = createTar(sortedPaths(files).map((name) => ({ name, data: findContent(files, name), attrs })));
  return gzipSync(tar, { level: 9, mtime: 0 });
}

/** Returns the files of a gzipped tar archive. */
export const filesOfTgz = (archive: Uint8Array): Files =>
  new Map(parseTar(gunzipSync(archive)).map(({ name, data }) => [name, data ?? new Uint8Array()]));

// Sorts by code units, because the order must not depend on the machine's language.
const sortedPaths = (files: Files): string[] => [...files.keys()].sort();

function findContent(files: Files, path: string): Uint8Array {
  const content = files.get(path);
  if (content === undefined) throw new Error(`the archive has no file ${path}`);
  return content;
}
