# SPDX-License-Identifier: Apache-2.0
"""tfplug new: a project for a plug-in that builds, passes its tests and trains."""

import ctypes
import importlib.metadata
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
        "passes.*": "a graph pass",
    },
    "opencl": {
        "driver.*": "OpenCL's functions, loaded at run time, and their errors",
        "my_device.*": "memory, queues and events on these functions",
        "backend.h": "compilation and launch of kernels, whose source tfplug generates",
        "kernels.cc": "registration of the ops",
    },
    "vulkan": {
        "driver.*": "Vulkan's functions, loaded at run time, and their errors",
        "my_device.*": "memory, command buffers and a semaphore on these functions",
        "backend.h": "compilation and launch of kernels, whose source tfplug generates",
        "kernels.cc": "registration of the ops",
    },
    "cuda_like": {
        "driver/": "the functions of CUDA's driver API, loaded at run time",
        "my_device.*": "memory, streams and events on these functions",
        "backend.*": "compilation and launch of kernels, whose source tfplug generates",
        "kernels.cc": "registration of the ops",
        "blas.*": "products of matrices by cuBLAS",
        "graph.*": "CUDA graphs, which regions replay",
        "staging.*": "page-locked memory for small results",
        "timer.*": "the device's own times, for profiles",
        "passes.cc": "the graph passes",
    },
}
# Libraries that a project links, beside tfplug: what they do, and their names, of which
# not all exist everywhere.
_LIBRARIES = {
    "vulkan": ("compile kernels: glslang, static (Debian: glslang-dev, spirv-tools)",
               "glslang MachineIndependent GenericCodeGen OGLCompiler OSDependent SPIRV "
               "SPIRV-Tools-opt SPIRV-Tools glslang-default-resource-limits"),
}
_LINK = {
    "meson": """\
# To {0}.
foreach name : '{1}'.split()
  libraries += meson.get_compiler('cpp').find_library(name, static: true, required: false)
endforeach
""",
    "cmake": """\
# To {0}.
foreach(name {1})
  find_library(FOUND_${{name}} lib${{name}}.a)
  if(FOUND_${{name}})
    list(APPEND LIBRARIES ${{FOUND_${{name}}}})
  endif()
endforeach()
""",
}
# Files of the template whose names in the project are special.
_PLACES = {
    "bazelrc": ".bazelrc",
    "clang-format": ".clang-format",
    "devcontainer.json": ".devcontainer/devcontainer.json",
    "dockerignore": ".dockerignore",
    "gitignore": ".gitignore",
    "workflow/build.yml": ".github/workflows/build.yml",
}
# What a project with Bazel does not have: images and workflows of pip's builds.
_OF_PIP = ("Dockerfile", ".devcontainer/devcontainer.json", ".dockerignore",
           ".github/workflows/build.yml")
_IMAGES = """ `docker build --build-arg TFPLUG=ADDRESS --output dist .`
builds one for all distributions since 2019 (manylinux_2_28), where `ADDRESS` is that of a wheel of tfplug: it is in no package
index yet. `.devcontainer/` opens the same image in an editor, with the variable `TFPLUG` of your machine, and the
workflow in `.github/`, with that of the repository, builds and tests both."""
_COMPILER = """ A build directory keeps its
compiler: `./build.sh` begins anew if `CXX` is another one."""
_REPAIR = """`auditwheel
repair dist/*.whl` finds out on which Linux distributions it runs, and names it accordingly."""
_REPAIR_OF_BAZEL = """With
`auditwheel` and `patchelf` installed, `./build.sh` names it after the Linux distributions on which it runs."""
# For the project's README: how to compile and test, the library, and the lists of
# sources and tests.
_BUILDS = {
    "meson": ("ninja -C build", "meson test -C build", "build/libmy_device.so",
              "`kernels` in `meson.build`", "`device`", "`meson.build`, as `['conformance', 'relu']`"),
    "cmake": ("ninja -C build", "ctest --test-dir build", "build/libmy_device.so",
              "`KERNELS` in `CMakeLists.txt`", "`DEVICE`",
              "`CMakeLists.txt`, as `foreach(name conformance relu)`"),
    "bazel": ("bazel build //:my_device", "bazel test //:conformance",
              "bazel-bin/libmy_device.so", "`KERNELS` in `BUILD.bazel`", "`DEVICE`",
              "`BUILD.bazel`, as `[\"conformance\", \"relu\"]`"),
}
# Words that cannot name a namespace in C++17 and C++20; Python's are keyword.kwlist.
_CPP_WORDS = frozenset("""
    alignas alignof asm auto bool case catch char compl concept const const_cast consteval
    constexpr constinit co_await co_return co_yield decltype delete do double dynamic_cast
    enum explicit export extern float friend goto inline int linux long mutable namespace
    new noexcept not_eq nullptr operator or_eq private protected public register
    reinterpret_cast requires short signed sizeof static static_assert static_cast std
    struct switch template this thread_local throw typedef typeid typename typeof union
    unix unsigned using virtual void volatile wchar_t xor xor_eq and_eq bitand bitor
    main errno assert""".split())
# Names of the project's own files, targets and classes, and of targets that build
# systems reserve.
_OWN_WORDS = frozenset("""
    absl all benchmark clean conformance coverage dist doctest driver help install package
    scan src test tests tfplug uninstall""".split())
# Packages that people have beside a plug-in, whether or not they are installed here.
_PACKAGES = frozenset("""
    cmake jax keras meson ninja numpy pandas pip pytest scipy setuptools tensorboard
    tensorflow tensorflow_probability tf_keras torch wheel""".split())


def add_parser(commands):
    parser = commands.add_parser(
        "new", help="write a project for a new device",
        description="Writes a project that builds, passes its tests and trains a "
        "Keras model: a device on a stub driver, the kernels of tfplug's library, a "
        "graph pass, and a wheel. With --from, the device is a copy of one of tfplug's "
        "examples, for the driver that this names.")
    parser.add_argument("name", metavar="NAME", help="such as my_device: the name of "
                        "the library and the wheel; its device type is MY_DEVICE")
    parser.add_argument("--build", choices=sorted(_BUILDS), default="meson",
                        help="the build system (default meson)")
    parser.add_argument("--from", choices=sorted(_FILES), default="stub",
                        dest="origin", help="where the device begins (default stub)")
    parser.add_argument("--directory", type=pathlib.Path, metavar="DIRECTORY",
                        help="the directory to create (default: NAME)")
    parser.set_defaults(run=run)


def problem_with(name):
    """Returns why a name cannot be that of a device, or ""."""
    if not re.fullmatch(r"[a-z][a-z_]{0,39}", name):
        return ("a name begins with a lower-case letter and consists of at most 40 "
                "lower-case letters and underscores, such as my_device. The device type is "
                "the name in capital letters, such as MY_DEVICE: TensorFlow aborts on "
                "device types with digits and hyphens")
    if (keyword.iskeyword(name) or name in _CPP_WORDS or name in _OWN_WORDS or
            # The project's namespace has this name.
            hasattr(ctypes.CDLL(None), name)):
        return ("this name has another meaning in C++, in C's library, in Python or in "
                "the project's build")
    # TensorFlow's own device types; its graph rewriters take any type that contains
    # "CPU" for the CPU.
    if "cpu" in name or name in ("gpu", "tpu", "default", "tpu_system"):
        return "the device type would be one of TensorFlow's own, or contain CPU"
    if name in _PACKAGES or _is_other_package(name):
        return ("a Python package has this name, which the project's wheel would replace "
                "where it is installed")
    return ""


def _is_other_package(name):
    """Returns whether an installed package of this name is no plug-in's wheel."""
    try:
        files = importlib.metadata.distribution(name).files or []
    except importlib.metadata.PackageNotFoundError:
        return False
    return not any(file.parts[0] == "tensorflow-plugins" for file in files)


def _renamed(text, origin, name):
    """Returns a template's text for a device of the given name."""
    text = text.replace("my_device", name).replace("MY_DEVICE", name.upper())
    if origin != "stub":
        for old, new in ((origin, name), (origin.upper(), name.upper())):
            # Not in "pocl-opencl-icd", CL_TARGET_OPENCL_VERSION, CUDA_LIKE_DRIVER,
            # <vulkan/vulkan.h>.
            text = re.sub(rf"(?<![-\w])(?<!{old}/){old}(?![-\w/])", new, text)
            # Include guards, such as OPENCL_OPENCL_H_.
            text = re.sub(rf"(?<![A-Za-z0-9]){old}(?=_(\w+_)?H_\b)", new, text)
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
            place = _PLACES.get(place, place)
            if place in texts:
                raise ValueError(f"the project would have two files {place}; choose "
                                 "another name")
            texts[place] = _renamed(source.read_text(encoding="utf-8"), renamed,
                                    options.name)

    sources = [place for place in texts
               if place.startswith("src/") and place.endswith(".cc")]
    kernels = [s for s in sources if re.search(r"/(kernels|passes)\.cc$", s)]
    device = [s for s in sources if s not in kernels]
    quote, comma = {"meson": ("'", ", "), "cmake": ("", " "),
                    "bazel": ('"', ",\n    ")}[options.build]

    def listed(names):
        return comma.join(f"{quote}{name}{quote}" for name in names)

    more = ""
    if options.build == "bazel":
        texts = {place: text for place, text in texts.items() if place not in _OF_PIP}
        texts[".gitignore"] += "/bazel-*\n/.bazelrc.user\n"
        if origin in _LIBRARIES:
            raise ValueError(f"--from {origin} links static libraries of this machine, "
                             "which Bazel would need rules for; choose another --build")
    elif origin in _LIBRARIES:
        more = _renamed(_LINK[options.build].format(*_LIBRARIES[origin]), "stub",
                        options.name)
    compile_it, test_it, library, kernels_list, device_list, tests_list = (
        _renamed(text, "stub", options.name) for text in _BUILDS[options.build])
    values = {
        "@LIBRARIES@\n": more,
        "@DEVICE_SOURCES@": listed(device),
        "@KERNEL_SOURCES@": listed(kernels),
        "@ABOUT@": _STUB if origin == "stub" else _EXAMPLE.format(origin),
        "@COMPILE@": compile_it,
        "@COMPILER@": "" if options.build == "bazel" else _COMPILER,
        "@REPAIR@": _REPAIR_OF_BAZEL if options.build == "bazel" else _REPAIR,
        "@IMAGES@": "" if options.build == "bazel" else _IMAGES,
        "@LIBRARY@": library,
        "@TEST@": test_it,
        "@KERNELS_LIST@": kernels_list,
        "@DEVICE_LIST@": device_list,
        "@TESTS@": tests_list,
        "@FILES@": "\n".join(
            f"| `src/{_renamed(name, 'stub', options.name)}` | {text} |"
            for name, text in _FILES[origin].items()),
    }
    for place in ("README.md", "meson.build", "CMakeLists.txt", "BUILD.bazel"):
        for key, value in values.items():
            if place in texts:
                texts[place] = texts[place].replace(key, value)
    return texts


def _write(directory, texts):
    """Writes the files; `directory` is new or empty."""
    for target, text in texts.items():
        path = directory / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if target == "build.sh":
            path.chmod(0o755)


def run(options):
    problem = problem_with(options.name)
    directory = options.directory or pathlib.Path(options.name)
    try:
        if not problem and directory.is_file():
            problem = f"{directory} is a file; --directory names a new directory"
        if not problem and directory.exists() and any(directory.iterdir()):
            problem = f"{directory} exists and is not empty; --directory names another"
        if not problem:
            _write(directory, _texts(options))
    except ValueError as error:
        problem = str(error)
    except OSError as error:
        problem = (f"{error.filename or directory} cannot be written: {error.strerror}; "
                   "--directory names another directory")
    if problem:
        print(f"tfplug new {options.name[:60]}: {problem}.", file=sys.stderr)
        return 1
    print(f"Wrote {directory}. Next:\n\n    cd {directory}\n    ./build.sh\n"
          "    python train.py")
    return 0
