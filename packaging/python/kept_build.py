# SPDX-License-Identifier: Apache-2.0
"""Keeps builds of libraries in the cache, and finds those that are as they were kept.

  kept_build.py find CACHE NAME RECIPE      prints the newest one's prefix
  kept_build.py keep STAGE PREFIX RECIPE    moves STAGE/PREFIX to PREFIX
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import stat
import sys
import tempfile

_MANIFEST, _RECIPE = "manifest", "recipe"


def cache():
    """Returns the directory of the kept builds."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(home) / "tfplug"


def _manifest(prefix):
    """Returns the checksums of all files of a build, a line each."""
    files = sorted(path for path in prefix.rglob("*")
                   if path.is_file() and path != prefix / _MANIFEST)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  "
                   f"{path.relative_to(prefix)}\n" for path in files)


def _is_intact(prefix):
    """Returns whether a build is unchanged, belongs to this user, and cannot be
    written by others."""
    for path in (prefix, *prefix.rglob("*")):
        found = path.lstat()
        if found.st_uid != os.getuid() or (
                not stat.S_ISLNK(found.st_mode) and found.st_mode & 0o022):
            return False
    manifest = prefix / _MANIFEST
    return manifest.is_file() and manifest.read_text() == _manifest(prefix)


def find(directory, name, recipe):
    """Returns the prefix of the newest intact build of `name` that was made by this
    recipe, a line of text, or None."""
    found = None
    for stamp in sorted(pathlib.Path(directory).glob(f"{name}-*/{_RECIPE}")):
        if stamp.read_text().strip() != recipe:
            continue
        if _is_intact(stamp.parent):
            found = stamp.parent
        else:
            print(f"{stamp.parent} is not used: it was altered, is incomplete, or can be "
                  "written by another user.", file=sys.stderr)
    return found


@contextlib.contextmanager
def locked(directory, name):
    """Lets one process at a time build `name`: the others wait, and find it built."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / f"{name}.lock", "w", encoding="utf-8") as file:
        with contextlib.suppress(OSError):  # A file system without locks.
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def keep(stage, prefix, recipe):
    """Moves a finished build, `stage`/`prefix`, to `prefix`. One that is there, intact and
    of this recipe, stays: a project may be compiling with it."""
    built, prefix = pathlib.Path(f"{stage}{prefix}"), pathlib.Path(prefix)
    (built / _RECIPE).write_text(f"{recipe}\n")
    for path in (built, *built.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o022)
    manifest = built / _MANIFEST
    manifest.write_text(_manifest(built))
    manifest.chmod(0o644)
    prefix.parent.mkdir(parents=True, exist_ok=True)
    # The copy to another file system takes time, a change of a name does not.
    with tempfile.TemporaryDirectory(prefix=".", dir=prefix.parent) as beside:
        new = shutil.move(built, pathlib.Path(beside, "new"))
        is_there = (prefix / _RECIPE).is_file() and (
            (prefix / _RECIPE).read_text().strip() == recipe and _is_intact(prefix))
        if not is_there:
            if prefix.exists():
                prefix.rename(pathlib.Path(beside, "old"))
            new.rename(prefix)


if __name__ == "__main__":
    if sys.argv[1] == "keep":
        keep(*sys.argv[2:])
    else:
        print(find(*sys.argv[2:]) or "", end="")
