# SPDX-License-Identifier: Apache-2.0
"""tfplug new: a project for a plug-in that builds, passes its tests and trains."""

import keyword
import pathlib
import re
import sys

_TEMPLATE = pathlib.Path(__file__).resolve().parent / "template"
_STUB = "It computes on the host until the TODOs in `src/` are done:"
_EXAMPLE = ("It began as tfplug's examples/{0}: replace the driver's calls by those of "
            "yours.")
# The contents of the template's folders with sources, for the project's README.
_FILES = {
    "stub": {
        "driver.h": "the driver's calls; a stub",
        "device.h": "memory, streams and events on these calls",
        "backend.h": "the computations from which tfplug makes kernels",
        "kernels.cc": "registration of the ops",
        "passes.h": "a graph pass",
    },
    "opencl": {
        "driver.*": "OpenCL's functions, loaded at run time, and their errors",
        "my_device.*": "memory, queues and events on these functions",
        "backend.h": "compilation and launch of kernels, whose source tfplug generates",
        "kernels.cc": "registration of the ops",
    },
    "cuda_like": {
        "driver/": "the functions of CUDA's driver API, loaded at run time",
        "my_device.*": "memory, streams and events on these functions",
        "backend.*": "compilation and launch of kernels, whose source tfplug generates",
        "kernels.cc": "registration of the ops",
        "blas.*": "products of matrices by cuBLAS",
        "timer.*": "the device's own times, for profiles",
        "passes.cc": "the graph passes",
    },
}
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
        "graph pass, and a wheel. With --from, the device is a copy of one of tfplug's "
        "examples, for the driver that this names.")
    parser.add_argument("name", metavar="NAME", help="such as my_device: the name of "
                        "the library and the wheel; its device type is MY_DEVICE")
    parser.add_argument("--build", choices=("meson", "cmake"), default="meson",
                        help="the build system (default meson)")
    parser.add_argument("--from", choices=sorted(_FILES), default="stub",
                        dest="origin", help="where the device begins (default stub)")
    parser.add_argument("--directory", type=pathlib.Path, metavar="DIRECTORY",
                        help="the directory to create (default: NAME)")
    parser.set_defaults(run=run)


def problem_with(name):
    """Returns why a name cannot be that of a device, or ""."""
    if not re.fullmatch(r"[a-z][a-z_]*", name):
        return ("a name begins with a lower-case letter and consists of lower-case "
                "letters and underscores, such as my_device: TensorFlow aborts on device "
                "types with other characters than capital letters and underscores")
    if keyword.iskeyword(name) or name in ("tfplug", "driver", "std"):
        return "this name has another meaning in the project's code"
    # TensorFlow's own device types; its graph rewriters take any type that contains
    # "CPU" for the CPU.
    if "cpu" in name or name in ("gpu", "tpu", "default", "tpu_system"):
        return "the device type would be one of TensorFlow's own, or contain CPU"
    return ""


def _renamed(text, origin, name):
    """Returns a template's text for a device of the given name."""
    text = text.replace("my_device", name).replace("MY_DEVICE", name.upper())
    if origin != "stub":
        for old, new in ((origin, name), (origin.upper(), name.upper())):
            # Not in "pocl-opencl-icd", CL_TARGET_OPENCL_VERSION, CUDA_LIKE_DRIVER.
            text = re.sub(rf"(?<![-\w]){old}(?![-\w])", new, text)
    return text


def _texts(options):
    """Returns the text of each file of the project."""
    texts, origin = {}, options.origin
    for part in ("common", options.build, origin):
        renamed = origin if part == origin else "stub"
        for source in sorted((_TEMPLATE / part).rglob("*")):
            if source.is_dir() or source.suffix == ".pyc":  # pip compiles train.py.
                continue
            place = _renamed(source.relative_to(_TEMPLATE / part).as_posix(), renamed,
                             options.name)
            texts[_PLACES.get(place, place)] = _renamed(
                source.read_text(encoding="utf-8"), renamed, options.name)

    sources = [place for place in texts
               if place.startswith("src/") and place.endswith(".cc")]
    kernels = [s for s in sources if re.search(r"/(kernels|passes)\.cc$", s)]
    device = [s for s in sources if s not in kernels]
    if options.build == "meson":
        def listed(names):
            return ", ".join(f"'{name}'" for name in names)
    else:
        listed = " ".join
    values = {
        "@DEVICE_SOURCES@": listed(device),
        "@KERNEL_SOURCES@": listed(kernels),
        "@ABOUT@": _STUB if origin == "stub" else _EXAMPLE.format(origin),
        "@TEST@": ("meson test -C build" if options.build == "meson" else
                   "ctest --test-dir build"),
        "@FILES@": "\n".join(
            f"| `src/{_renamed(name, 'stub', options.name)}` | {text} |"
            for name, text in _FILES[origin].items()),
    }
    for place in ("README.md", "meson.build", "CMakeLists.txt"):
        for key, value in values.items():
            if place in texts:
                texts[place] = texts[place].replace(key, value)
    return texts


def run(options):
    problem = problem_with(options.name)
    directory = options.directory or pathlib.Path(options.name)
    if not problem and directory.exists() and any(directory.iterdir()):
        problem = f"{directory} exists and is not empty; --directory names another"
    if problem:
        print(f"tfplug new {options.name}: {problem}.", file=sys.stderr)
        return 1
    texts = _texts(options)
    for target, text in texts.items():
        path = directory / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if target == "build.sh":
            path.chmod(0o755)
    print(f"Wrote {directory}. Next:\n\n    cd {directory}\n    ./build.sh\n"
          "    python train.py")
    return 0
