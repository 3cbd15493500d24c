# SPDX-License-Identifier: Apache-2.0
"""tfplug doctor: which plug-ins TensorFlow finds here, which work, and why not.

Nothing is loaded into this process: each plug-in is tried in a process of its own,
which it may crash.
"""

import collections
import dataclasses
import importlib.metadata
import itertools
import json
import os
import pathlib
import re
import site
import subprocess
import sys
import sysconfig

try:
    from tfplug.doctor_causes import ENTRY_POINTS, file_problem, logged, remedy_for, what_happened
except ImportError:  # Run from the source tree.
    from doctor_causes import ENTRY_POINTS, file_problem, logged, remedy_for, what_happened

_OLDEST = (2, 12)
_CHILD = pathlib.Path(__file__).resolve().parent / "doctor_child.py"
_SECONDS = 300  # for one child
_OWN_TYPES = {"CPU", "DEFAULT", "GPU"}  # of TensorFlow itself
_COVERAGE = "tfplug coverage lists the kernels that a model needs."
_FIRST_KERNELS = (
    "TFPLUG_REGISTER_BACKEND makes the kernels and graph passes that Keras needs of two "
    "functions: see step 4 of the page \"Your first device in 20 minutes\" of tfplug's "
    "documentation.")


@dataclasses.dataclass
class Finding:
    level: str  # ok, warning, error
    text: str
    remedy: str = ""


def add_parser(commands):
    parser = commands.add_parser(
        "doctor", help="report on TensorFlow and its plug-ins in this environment",
        description="Reports which TensorFlow is installed, which plug-ins it loads, "
        "which of them work, and what to do about those that do not. A library that is "
        "named is tried alone, without the installed plug-ins.",
        epilog="Exit status: 0 if TensorFlow loads every plug-in, and Keras trains on each "
        "device that has kernels; 1 with an error.")
    parser.add_argument("libraries", nargs="*", metavar="FILE.so",
                        help="try this library, which need not be installed; default: "
                        "what TensorFlow finds here")
    parser.add_argument("--json", action="store_true",
                        help="print the findings as JSON")
    parser.set_defaults(run=run)


# ---- TensorFlow and the directories in which it looks --------------------------

def tensorflow_packages():
    """Returns the installed distributions that contain TensorFlow: {name: version}."""
    found = {}
    for each in importlib.metadata.distributions():
        name = (each.metadata["Name"] or "").lower().replace("_", "-")
        if name in ("tensorflow", "tf-nightly") or name.startswith(
                ("tensorflow-cpu", "tensorflow-macos", "tf-nightly-cpu",
                 "tensorflow-rocm", "intel-tensorflow")):
            found[name] = each.version
    return found


def check_tensorflow():
    packages = tensorflow_packages()
    if not packages:
        yield Finding("error", "TensorFlow is not installed in "
                      f"{sys.prefix} (Python {sys.version.split()[0]}).",
                      "pip install tensorflow-cpu, or run the tfplug of the "
                      "environment that has TensorFlow.")
        return
    names = ", ".join(f"{name} {version}" for name, version in packages.items())
    versions = set(packages.values())
    if len(packages) > 1 and ("tensorflow-intel" not in packages or len(versions) > 1):
        yield Finding("warning", f"Several packages contain TensorFlow: {names}.",
                      "They overwrite each other's files. Uninstall all of them, and "
                      "install one.")
    for version in versions:
        release = tuple(int(part) for part in version.split(".")[:2])
        if release < _OLDEST:
            yield Finding("error", f"TensorFlow {version} is too old for plug-ins "
                          "made with tfplug.", "Install 2.12 or newer.")
    yield Finding("ok", f"{names}, Python {sys.version.split()[0]}, {sys.prefix}")


def plugin_directories():
    """Returns the directories named tensorflow-plugins that TensorFlow's __init__.py
    searches, as it spells them."""
    places = []
    if site.ENABLE_USER_SITE and site.USER_SITE is not None:
        places.append(site.USER_SITE)
    places += [path for path in sys.path if "site-packages" in path]
    places += site.getsitepackages()
    for scheme in sysconfig.get_scheme_names():
        places += [sysconfig.get_path(name, scheme) for name in ("purelib", "platlib")]
    found = (os.path.join(place, "tensorflow-plugins") for place in set(places))
    return sorted(path for path in found if os.path.isdir(path))


def _shared_objects(directory):
    """Returns the files that TensorFlow loads: those named .so or .so.N."""
    return sorted(os.path.join(directory, name) for name in os.listdir(directory)
                  if re.search(r"\.so(\.\d[^/]*)?$", name))


def find_libraries():
    """Returns the files that TensorFlow loads, and Findings about their places."""
    findings, libraries = [], []
    directories = plugin_directories()
    by_place = collections.defaultdict(list)
    for directory in directories:
        by_place[os.path.realpath(directory)].append(directory)
    for names in by_place.values():
        if len(names) > 1:
            findings.append(Finding(
                "error", f"{' and '.join(names)} are one directory: TensorFlow loads "
                "each plug-in in it twice, and aborts.",
                "Install into an environment without such a link (python -m venv), or "
                "start Python with TF_PLUGGABLE_DEVICE_LIBRARY_PATH and an empty "
                "tensorflow-plugins."))
        libraries += _shared_objects(names[0])
    variable = os.environ.get("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", "")
    if variable and not os.path.exists(variable):
        findings.append(Finding(
            "error", f"TF_PLUGGABLE_DEVICE_LIBRARY_PATH names {variable}, which does "
            "not exist.", "Correct or unset the variable."))
    elif os.path.isdir(variable):
        libraries += _shared_objects(variable)
    elif variable:
        libraries.append(variable)
    for directory in directories:
        for name in os.listdir(directory):
            if name.endswith((".dylib", ".dll")):
                findings.append(Finding(
                    "warning", f"{os.path.join(directory, name)} is for another operating "
                    "system: TensorFlow does not load it here.",
                    "Install a wheel of the plug-in that is for Linux, if there is one."))
    if not libraries:
        where = ", ".join(directories) or os.path.join(
            sysconfig.get_path("platlib"), "tensorflow-plugins")
        findings.append(Finding(
            "warning", f"There is no plug-in in {where}.", "Install its wheel, or set "
            "TF_PLUGGABLE_DEVICE_LIBRARY_PATH to the library."))
    return libraries, findings


# ---- Trials in processes of their own ------------------------------------------

def _try(*libraries):
    """Returns what doctor_child.py printed, a dictionary, with "failure" set if it
    did not come to its end."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "1"}
    environment.pop("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", None)
    try:
        child = subprocess.run(
            # Without a folder, the loader would look the name up.
            [sys.executable, "-B", "-X", "faulthandler", str(_CHILD),
             *map(os.path.abspath, libraries)],
            text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
            timeout=_SECONDS, errors="replace")
    except subprocess.TimeoutExpired:
        return {"failure": f"it did not end within {_SECONDS} s"}
    result = {"log": logged(child.stderr)}
    for line in child.stdout.splitlines():
        if line.startswith("{"):
            result.update(json.loads(line))
    if child.returncode:
        result.setdefault("failure", what_happened(child.returncode, child.stderr,
                                                   libraries))
    return result


def check_named(path):
    """Yields what is wrong with the name of a library that need not be installed."""
    if os.path.isdir(path):
        inside = _shared_objects(path)
        yield Finding("error", f"{path} is a folder.", "Name a library" + (
            f", such as {inside[0]}." if inside else "; there is none in it."))
    elif not os.path.lexists(path):
        yield Finding("error", f"There is no file {path}.", "Name the library that the "
                      "build wrote, such as build/libmy_device.so.")
    elif os.path.exists(path) and not os.access(path, os.R_OK):
        yield Finding("error", f"{path} cannot be read.", f"chmod u+r {path}")


def check_library(library, is_installed=False):
    """Tries one plug-in. Returns Findings and its device types. TensorFlow loads those that
    are installed when it is imported."""
    fails = "`import tensorflow` fails" if is_installed else "TensorFlow cannot load it"
    if os.path.islink(library) and not os.path.exists(library):
        return [Finding("error", f"{library} is a link to {os.readlink(library)}, which "
                        f"does not exist: {fails}.",
                        "Remove the link, or install the package again.")], []
    problem, remedy = file_problem(library, is_installed)
    if problem:
        return [Finding("error", f"{library} {problem}: {fails}.", remedy)], []
    result = _try(library)
    findings = [Finding(level, f"{library}: {text}", advice)
                for level, text, advice in result.get("log", [])]
    types = result.get("types", [])
    if "failure" in result:
        findings.insert(0, _failure(library, result))
    elif not result.get("entry_points"):
        # TensorFlow works beside an installed one; whoever names one wants it to work.
        findings.append(Finding(
            "warning" if is_installed else "error", f"{library} exports none of TensorFlow's entry points "
            f"({', '.join(ENTRY_POINTS)}): TensorFlow loads it and nothing happens.",
            "Register the classes with tfplug's macros, such as TFPLUG_REGISTER_DEVICE, in "
            "a file that is linked into the library."))
    else:
        findings = [*_about_registration(library, result), *findings,
                    *_about_types(library, result), *_about_training(library, result)]
    return findings, types


def _failure(library, result):
    step = result.get("step", "import of TensorFlow")
    advice = remedy_for(result["failure"]) or (
        "Report it to the author of the plug-in, with this line and the release of "
        "TensorFlow. If you are the author: tfplug check tests it step by step, and the page "
        "\"Debug a plug-in\" of tfplug's documentation says what crashes most often."
        if step != "import of TensorFlow"
        else "Import TensorFlow without plug-ins first: python -c 'import tensorflow'.")
    return Finding("error", f"{library}: {step} failed: {result['failure']}", advice)


def _count(kernels):
    count = sum(kernels.values())
    return f"{count} kernel{'s' * (count != 1)}"


def _about_registration(library, result):
    devices = ", ".join(f"{name} x {count}" for name, count in result["devices"].items())
    text = (f"{library}: {', '.join(result['entry_points'])}; "
            f"{_count(result['kernels'])} in TensorFlow {result['release']}; ")
    if devices or "SE_InitPlugin" not in result["entry_points"]:
        yield Finding("ok", text + (f"devices: {devices}" if devices else
                                    "it adds no device"))
    else:
        yield Finding("warning", text + "no device", "A device appears only if its driver "
                      "reports one: see the driver's own tools.")


def _about_types(library, result):
    """Yields what is wrong with the device types of a library's parts."""
    types = result["types"]
    for name in _OWN_TYPES & set(types):
        yield Finding(
            "warning", f"{library}: the device type {name} is TensorFlow's own. A "
            f"TensorFlow that is built for {name}s has kernels for it, which then compute in "
            "this device's memory.", "Give Platform::kType a name of your own. Users whose "
            "code names GPUs set TFPLUG_DEVICE_TYPE=NAME=GPU: see the page \"What differs "
            "from a GPU\" of tfplug's documentation.")
    has_devices = types or "SE_InitPlugin" not in result["entry_points"]
    for name in sorted(set(result["kernels"]) - _OWN_TYPES - set(types)) * bool(has_devices):
        yield Finding(
            "warning", f"{library}: {_count({name: result['kernels'][name]})} for the device "
            f"type {name}, which the library does not add: unless another plug-in does, no op "
            "uses them.", "Link the file that registers the device (TFPLUG_REGISTER_DEVICE) "
            "into this library, or correct the type of the kernels.")
    if _passes_are_lost(result):
        yield Finding(
            "error", f"{library}: the graph passes are registered for the device type "
            f"{result['passes']}, and the device has the type {' and '.join(types)}: unless "
            "another plug-in has the former, the passes never run.",
            "Give TFPLUG_REGISTER_GRAPH_PASSES the text of Platform::kType; without tfplug, "
            "TP_OptimizerRegistrationParams::device_type that of SP_Platform::type.")


def _passes_are_lost(result):
    types = result["types"]
    return types and result.get("passes", "") not in ("", *_OWN_TYPES, *types)


def _about_training(library, result):
    for name in result["types"]:
        on_cpu = ", ".join(result["on_cpu"][name])
        problem = result["problems"].get(name, "")
        kind = result["trained"].get(name, "")
        if problem and on_cpu:
            # On whose kernels somebody works.
            yield Finding("warning", f"{library}: on {name}, {problem.rstrip('.?')}. The device "
                          f"has no kernel for {on_cpu}.", _FIRST_KERNELS)
        elif problem:
            remedy = remedy_for(problem) or _COVERAGE
            if _passes_are_lost(result) and "No JIT device" in problem:
                remedy = "Correct the type of the passes: the default ones turn XLA off."
            yield Finding("error", f"{library}: on {name}, {problem}", remedy)
        elif on_cpu:
            yield Finding("warning", f"{library}: Keras trains, but the CPU computes ops "
                          f"for which {name} has no kernel, such as {on_cpu} ({kind})",
                          _COVERAGE)
        else:
            yield Finding("ok", f"{library}: Keras trains on {name} ({kind})")


def check_together(working):
    """Tries the plug-ins that work alone in one process. `working` is
    {library: types}."""
    owners = collections.defaultdict(list)
    for library, types in working.items():
        for name in types:
            owners[name].append(library)
    for name, libraries in owners.items():
        if len(libraries) > 1:
            yield Finding("error", f"{' and '.join(libraries)} both register the device "
                          f"type {name}.", "Uninstall one of them.")
    if len(working) < 2 or any(len(each) > 1 for each in owners.values()):
        return
    result = _try(*working)
    if "failure" not in result:
        yield Finding("ok", f"{len(working)} plug-ins work in one process: " +
                      ", ".join(map(os.path.basename, working)))
        return
    culprits = next((pair for pair in itertools.combinations(working, 2)
                     if "failure" in _try(*pair)), tuple(working))
    yield Finding("error", f"{' and '.join(culprits)} do not work in one process: "
                  f"{result.get('step')} failed: {result['failure']}",
                  remedy_for(result["failure"]) or
                  "Uninstall one of them, or ask its author for a version built with "
                  "hidden symbols and default settings for TensorFlow's rewriters.")


# ---- The report ----------------------------------------------------------------

def examine(named=()):
    """Yields the findings, each as soon as it is known."""
    about_tensorflow = list(check_tensorflow())
    yield from about_tensorflow
    if any(each.level == "error" for each in about_tensorflow):
        return
    if named:
        libraries = []
        for path in named:
            about = list(check_named(path))
            yield from about
            libraries += [] if about else [path]
    else:
        libraries, about_places = find_libraries()
        yield from about_places
    working = {}
    for library in libraries:
        print(f"tfplug doctor: trying {library}, for at most {_SECONDS} s", file=sys.stderr,
              flush=True)
        about, types = check_library(library, is_installed=not named)
        yield from about
        if not any(each.level == "error" for each in about):
            working[library] = types
    yield from check_together(working)


def run(options):
    findings = []
    for each in examine(options.libraries):
        findings.append(each)
        if not options.json:
            print(f"{each.level:>7}  {each.text}")
            if each.remedy:
                print(f"{'':>7}  -> {each.remedy}")
            sys.stdout.flush()
    if options.json:
        print(json.dumps([dataclasses.asdict(each) for each in findings], indent=2))
    return int(any(each.level == "error" for each in findings))
