# SPDX-License-Identifier: Apache-2.0
"""Keeps builds of libraries in the cache, and finds those that are as they were kept.

  kept_build.py find CACHE NAME RECIPE      prints the newest one's prefix
  kept_build.py keep STAGE PREFIX RECIPE    moves STAGE/PREFIX to PREFIX
"""

import hashlib
import os
import pathlib
import shutil
import stat
import sys

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


def keep(stage, prefix, recipe):
    """Moves a finished build, `stage`/`prefix`, to `prefix`."""
    built = pathlib.Path(f"{stage}{prefix}")
    (built / _RECIPE).write_text(f"{recipe}\n")
    for path in (built, *built.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o022)
    manifest = built / _MANIFEST
    manifest.write_text(_manifest(built))
    manifest.chmod(0o644)
    shutil.rmtree(prefix, ignore_errors=True)
    pathlib.Path(prefix).parent.mkdir(parents=True, exist_ok=True)
    shutil.move(built, prefix)


if __name__ == "__main__":
    if sys.argv[1] == "keep":
        keep(*sys.argv[2:])
    else:
        print(find(*sys.argv[2:]) or "", end="")
