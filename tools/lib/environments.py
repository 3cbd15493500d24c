# SPDX-License-Identifier: Apache-2.0
"""Virtual environments with releases of TensorFlow, kept in the user's cache."""

import os
import pathlib
import subprocess
import sys


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "tfplug"


def minor(release):
    """Returns the second part of a release such as "2.15.1"."""
    return int(release.split(".")[1])


def make(directory, release, python, packages=()):
    """Returns the Python of the virtual environment `directory`, a folder of cache(),
    with this release, or with "nightly", and `packages`, lists of pip's arguments that
    are installed in turn. `python` creates it, if it does not exist yet."""
    path = cache() / directory
    ready = path / "ready"
    if not ready.exists():
        print(f"{release}: creating {path} ...", file=sys.stderr, flush=True)
        if release == "nightly":
            wanted = ["--pre", "tf-nightly"]
        else:
            wanted = [f"tensorflow-cpu=={release}"]
            if minor(release) < 18:
                wanted.append("numpy<2")  # Built against the C API of NumPy 1.
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([python, "-m", "venv", "--clear", path], check=True)
        for each in [wanted, *packages]:
            subprocess.run([path / "bin/python", "-m", "pip", "install", "--quiet",
                            "--disable-pip-version-check", "--only-binary", ":all:",
                            "--no-compile", "--progress-bar", "off", *each], check=True)
        ready.touch()
    return path / "bin/python"
