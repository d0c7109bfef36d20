"""A FUSE disk that can lose its power: changes that were not fsynced are lost, except a random part of them.

    python3 forgetful-disk.py MOUNTPOINT FOLDER

Starts with the contents of FOLDER and holds all changes in memory. JSON written to the file `.cut` of the mounted folder
schedules the power failure:

    {"after": 5, "of": "leads.db", "keepsData": 0.5, "keepsNames": 0, "seed": 1}

The power fails at the fifth change or sync from now on of a file with that name, or of any file if the name is empty;
immediately if `after` is 0. That change or sync is not carried out. `keepsData` and `keepsNames` are the probabilities that a
part of the unsynced data or names survives; the seed makes the choice reproducible. Then FOLDER holds what is left, this
process exits with status 0, and processes that use the disk get errors.

What is left is the least that POSIX, read strictly, guarantees, plus a random part:
- of a file: what was fsynced, and any part of later writes, by sectors or pages, in any order; a file that grew may
  have its new size without its data
- of a folder: the names that it had when it was fsynced, and any part of later creations, renames and removals.
  Syncing a file does not sync its name.
"""

import ctypes
import errno
import json
import os
import random
import shutil
import signal
import stat
import sys
import time

import mfusepy

SECTOR_BYTES = 512
PAGE_BYTES = 4096

# Linux's PR_SET_PDEATHSIG: the signal that is sent when the parent process ends.
ON_PARENTS_END = 1

CUT = "/.cut"


class File:
    def __init__(self, mode: int, data: bytes = b""):
        self.mode = mode
        self.data = bytearray(data)
        self.synced = bytearray(data)
        # The changes since the last sync: (offset, bytes) for a write, (size, None) for a new size.
        self.later: list[tuple[int, bytes | None]] = []

    def change(self, at: int, written: bytes | None) -> None:
        apply(self.data, at, written)
        self.later.append((at, written))

    def sync(self) -> None:
        for at, written in self.later:
            apply(self.synced, at, written)
        self.later.clear()

    def left(self, chance: random.Random, keeps: float) -> bytes:
        """Returns contents that the disk may hold after a power failure."""
        left = bytearray(self.synced)
        part_bytes = chance.choice([SECTOR_BYTES, PAGE_BYTES])
        for at, written in self.later:
            if written is None:
                if chance.random() < keeps:
                    apply(left, at, None)
                continue
            if at + len(written) > len(left) and chance.random() < keeps:
                # Its size first, before its data: the new part holds zeros or whatever was on the disk before.
                grown = at + len(written) - len(left)
                left.extend(chance.choice([bytes(grown), chance.randbytes(grown)]))
            start = at
            while start < at + len(written):
                end = min((start // part_bytes + 1) * part_bytes, at + len(written))
                if chance.random() < keeps:
                    apply(left, start, written[start - at : end - at])
                start = end
        return bytes(left)


class Folder:
    def __init__(self, mode: int):
        self.mode = mode
        self.names: dict[str, "File | Folder"] = {}
        self.synced: dict[str, "File | Folder"] = {}
        # The changes since the last sync: (name, the entry under that name or None, the name that it had before).
        self.later: list[tuple[str, "File | Folder | None", str | None]] = []

    def change(self, name: str, entry: "File | Folder | None", before: str | None = None) -> None:
        rename(self.names, name, entry, before)
        self.later.append((name, entry, before))

    def sync(self) -> None:
        self.synced = dict(self.names)
        self.later.clear()

    def left(self, chance: random.Random, keeps: float) -> dict[str, "File | Folder"]:
        left = dict(self.synced)
        for name, entry, before in self.later:
            # A rename needs the old name to exist.
            if chance.random() < keeps and (before is None or left.get(before) is entry):
                rename(left, name, entry, before)
        return left


def apply(data: bytearray, at: int, written: bytes | None) -> None:
    if written is None:
        del data[at:]
    data.extend(bytes(max(0, at - len(data))))
    if written is not None:
        data[at : at + len(written)] = written


def rename(names: dict[str, File | Folder], name: str, entry: File | Folder | None, before: str | None) -> None:
    if before is not None:
        del names[before]
    if entry is None:
        names.pop(name, None)
    else:
        names[name] = entry


def loaded(path: str) -> File | Folder:
    mode = os.stat(path).st_mode
    if not stat.S_ISDIR(mode):
        with open(path, "rb") as file:
            return File(mode, file.read())
    folder = Folder(mode)
    for name in os.listdir(path):
        folder.change(name, loaded(os.path.join(path, name)))
    folder.sync()
    return folder


def save(path: str, entry: File | Folder, chance: random.Random, cut: dict) -> None:
    if isinstance(entry, File):
        with open(path, "wb") as file:
            file.write(entry.left(chance, cut["keepsData"]))
    else:
        os.mkdir(path)
        for name, each in sorted(entry.left(chance, cut["keepsNames"]).items()):
            save(os.path.join(path, name), each, chance, cut)
    os.chmod(path, stat.S_IMODE(entry.mode))


class Disk(mfusepy.Operations):
    use_ns = True

    def __init__(self, folder: str):
        self.folder = folder
        self.root = loaded(folder)
        self.open_files: list[File] = []
        self.switch = File(stat.S_IFREG | 0o600)
        self.cut: dict | None = None

    # Operations at which the power may fail.

    def write(self, path, data, offset, fh):
        if path == CUT:
            self.cut = json.loads(data)
            if self.cut["after"] == 0:
                self.lose_power()
            return len(data)
        self.before_change(path)
        self.open_files[fh].change(offset, data)
        return len(data)

    def truncate(self, path, length, fh=None):
        if path == CUT:
            return
        self.before_change(path)
        self.at(path).change(length, None)

    def fsync(self, path, datasync, fh):
        self.before_change(path)
        self.open_files[fh].sync()

    def fsyncdir(self, path, datasync, fh):
        self.before_change(path)
        self.at(path).sync()

    def create(self, path, mode, flags):
        self.before_change(path)
        file = File(stat.S_IFREG | mode)
        self.parent_of(path).change(os.path.basename(path), file)
        return self.opened(file)

    def mkdir(self, path, mode):
        self.before_change(path)
        self.parent_of(path).change(os.path.basename(path), Folder(stat.S_IFDIR | mode))

    def unlink(self, path):
        self.before_change(path)
        self.parent_of(path).change(os.path.basename(path), None)

    def rmdir(self, path):
        self.unlink(path)

    def rename(self, old, new):
        self.before_change(old)
        entry, source, target = self.at(old), self.parent_of(old), self.parent_of(new)
        if source is target:
            target.change(os.path.basename(new), entry, os.path.basename(old))
        else:
            target.change(os.path.basename(new), entry)
            source.change(os.path.basename(old), None)

    def before_change(self, path: str) -> None:
        if self.cut is None or os.path.basename(path) != (self.cut["of"] or os.path.basename(path)):
            return
        self.cut["after"] -= 1
        if self.cut["after"] <= 0:
            self.lose_power()

    def lose_power(self) -> None:
        shutil.rmtree(self.folder)
        save(self.folder, self.root, random.Random(self.cut["seed"]), self.cut)
        os._exit(0)

    # Operations that change nothing, or nothing that a power cut could undo.

    def getattr(self, path, fh=None):
        entry = self.at(path)
        size = len(entry.data) if isinstance(entry, File) else 0
        now = time.time_ns()
        links = 1 if isinstance(entry, File) else 2
        return {
            "st_mode": entry.mode,
            "st_size": size,
            "st_nlink": links,
            "st_mtime": now,
            "st_ctime": now,
            "st_atime": now,
            "st_uid": os.getuid(),
            "st_gid": os.getgid(),
        }

    def open(self, path, flags):
        return self.opened(self.at(path))

    def read(self, path, size, offset, fh):
        return bytes(self.open_files[fh].data[offset : offset + size])

    def readdir(self, path, fh):
        return [".", "..", *self.at(path).names]

    def chmod(self, path, mode):
        entry = self.at(path)
        entry.mode = stat.S_IFMT(entry.mode) | mode

    def chown(self, path, uid, gid):
        pass

    def utimens(self, path, times=None):
        pass

    def statfs(self, path):
        return {"f_bsize": PAGE_BYTES, "f_blocks": 1 << 20, "f_bavail": 1 << 20, "f_bfree": 1 << 20}

    def opened(self, file: File) -> int:
        self.open_files.append(file)
        return len(self.open_files) - 1

    def parent_of(self, path: str) -> Folder:
        return self.at(os.path.dirname(path))

    def at(self, path: str) -> File | Folder:
        if path == CUT:
            return self.switch
        entry = self.root
        for name in path.split("/"):
            if name:
                if not isinstance(entry, Folder) or name not in entry.names:
                    raise mfusepy.FuseOSError(errno.ENOENT)
                entry = entry.names[name]
        return entry


if __name__ == "__main__":
    mountpoint, folder = sys.argv[1:]
    ctypes.CDLL(None).prctl(ON_PARENTS_END, signal.SIGTERM)
    # Single-threaded: the power fails at one moment for all operations.
    mfusepy.FUSE(Disk(folder), mountpoint, foreground=True, nothreads=True)
