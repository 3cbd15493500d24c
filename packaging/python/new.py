# SPDX-License-Identifier: Apache-2.0
"""tfplug new: a project for a plug-in that builds, passes its tests and trains."""

import keyword
import pathlib
import re
import sys

_TEMPLATE = pathlib.Path(__file__).resolve().parent / "template"
# Files of the template whose names in the project are special.
_PLACES = {
    "clang-format": ".clang-format",
    "gitignore": ".gitignore",
    "workflow/build.yml": ".github/workflows/build.yml",
}


def add_parser(commands):
    parser = commands.add_parser(
        "new", help="write a project for a new device",
        description="Writes a project that builds, passes its tests and trains a "
        "Keras model: a device on a stub driver, the kernels of tfplug's library, a "
        "graph pass, and a wheel.")
    parser.add_argument("name", metavar="NAME", help="such as my_device: the name of "
                        "the library and the wheel; its device type is MY_DEVICE")
    parser.add_argument("--build", choices=("meson", "cmake"), default="meson",
                        help="the build system (default meson)")
    parser.add_argument("--directory", type=pathlib.Path, metavar="DIRECTORY",
                        help="the directory to create (default: NAME)")
    parser.set_defaults(run=run)


def problem_with(name):
    """Returns why a name cannot be that of a device, or ""."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        return ("a name begins with a lower-case letter and consists of lower-case "
                "letters, digits and underscores, such as my_device")
    if keyword.iskeyword(name) or name in ("tfplug", "driver", "std"):
        return "this name has another meaning in the project's code"
    # TensorFlow's own device types; its graph rewriters take any type that contains
    # "CPU" for the CPU.
    if "cpu" in name or name in ("gpu", "tpu", "default", "tpu_system"):
        return "the device type would be one of TensorFlow's own, or contain CPU"
    return ""


def run(options):
    problem = problem_with(options.name)
    directory = options.directory or pathlib.Path(options.name)
    if not problem and directory.exists() and any(directory.iterdir()):
        problem = f"{directory} exists and is not empty; --directory names another"
    if problem:
        print(f"tfplug new {options.name}: {problem}.", file=sys.stderr)
        return 1
    for part in ("common", options.build):
        for source in sorted((_TEMPLATE / part).rglob("*")):
            if source.is_dir() or source.suffix == ".pyc":  # pip compiles train.py.
                continue
            place = source.relative_to(_TEMPLATE / part).as_posix()
            target = directory / _PLACES.get(place, place)
            target.parent.mkdir(parents=True, exist_ok=True)
            text = source.read_text(encoding="utf-8")
            target.write_text(text.replace("my_device", options.name)
                              .replace("MY_DEVICE", options.name.upper()),
                              encoding="utf-8")
            if place == "build.sh":
                target.chmod(0o755)
    print(f"Wrote {directory}. Next:\n\n    cd {directory}\n    ./build.sh\n"
          "    python train.py")
    return 0
