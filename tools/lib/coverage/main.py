# SPDX-License-Identifier: Apache-2.0
"""Lists the ops of a model that have no kernel on a device: see tools/coverage."""

import argparse
import json
import os
import pathlib
import sys
import traceback

# For the modules of this package.
sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import installed_plugins

PROGRAM = os.environ.get("TFPLUG_PROGRAM", "tools/coverage")
DEFAULT = "; default: examples/cpu_sim" * PROGRAM.startswith("tools/")


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description="Lists each op and type of a "
        "model's functions, and whether the plug-in, the DEFAULT device, only "
        "the CPU or no device has a kernel for it. The model is not run, except "
        "with --regions.",
        epilog="Exit status: 0 every op has a kernel; 1 some op has none; "
        "2 any other failure.")
    parser.add_argument("model", metavar="MODEL", help="FILE.py[:FUNCTION] "
                        "(default: model; the page \"Find ops without a kernel\" of "
                        "tfplug's documentation describes what it returns), or the "
                        "directory of a SavedModel")
    parser.add_argument("--plugin", type=pathlib.Path, metavar="FILE.so",
                        help="the plug-in" + DEFAULT)
    parser.add_argument("--installed", action="store_true",
                        help="use the plug-ins installed in TensorFlow's "
                        "environment instead of --plugin")
    parser.add_argument("--device", metavar="TYPE", help="the device type, such "
                        "as SIM; default: that of the plug-in")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="also write the report to FILE; - writes it to "
                        "standard output instead of the table")
    parser.add_argument("--missing", action="store_true",
                        help="list only ops that are missing or have a warning")
    parser.add_argument("--strict", action="store_true",
                        help="also exit with 1 if there is a warning")
    parser.add_argument("--regions", action="store_true",
                        help="also run each function once, with TFPLUG_REGIONS=1, "
                        "and report its regions and why they end")
    options = parser.parse_args(arguments)
    if options.plugin and options.installed:
        parser.error("--plugin and --installed exclude each other")
    return options


def is_model(path):
    """Returns whether the path can be a model, before TensorFlow is imported."""
    file = pathlib.Path(path.partition(":")[0])
    return ((pathlib.Path(path) / "saved_model.pb").is_file() or
            file.suffix == ".py" and file.is_file())


def plugin_files(options):
    files = [options.plugin]
    if options.installed:
        files = sorted({file for directory in installed_plugins.DIRECTORIES
                        for file in pathlib.Path(directory).glob("*.so")})
    return [str(file.resolve()) for file in files]


def load_plugins(options, tf):
    """Loads the plug-ins after TensorFlow's context has listed its devices, so that
    the ops that build a model run on the CPU."""
    from tensorflow.python.framework import load_library  # pylint: disable=C0415
    tf.config.list_logical_devices()
    for file in plugin_files(options):
        load_library.load_pluggable_device_library(file)


def fail(message):
    print(f"{PROGRAM}: {message}", file=sys.stderr)
    return 2


def device_type_of(options, kernels):
    """Returns the device type of the report; raises ValueError if there is none."""
    types = kernels.plugin_device_types()
    if options.device:
        if options.device not in {*types, *kernels.BUILT_IN}:
            raise ValueError(f"No kernel is registered for {options.device}. "
                             "Device types of plug-ins: "
                             f"{', '.join(types) or 'none'}.")
        return options.device
    if len(types) != 1:
        raise ValueError(
            f"Select one of {', '.join(types)} with --device." if types else
            "No plug-in has registered a kernel: --plugin FILE.so names one that is not "
            "installed.")
    return types[0]


def main(arguments=None):
    options = parse(arguments)
    if not options.installed and options.plugin is None:
        return fail("Name a plug-in: --plugin FILE.so, or --installed.")
    if options.plugin and not options.plugin.is_file():
        return fail(f"The file {options.plugin} does not exist.")
    if not is_model(options.model):
        return fail(f"{options.model} is neither FILE.py[:FUNCTION] nor the "
                    "directory of a SavedModel.")
    # TensorFlow loads no plug-in by itself.
    installed_plugins.hide()
    os.environ.pop("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", None)
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    load_plugins(options, tf)

    from coverage import construct, graph, kernels, model, regions, report
    try:
        device_type = device_type_of(options, kernels)
    except ValueError as error:
        return fail(error)
    try:
        functions, layers = model.load(options.model)
    except model.ModelError as error:
        return fail(error)
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()
        return fail(f"{options.model} raised the exception above.")
    nodes = {name: graph.nodes_of(function, name, layers)
             for name, function in functions.items()}
    constructor = construct.Constructor(device_type)
    found = report.document(
        report.collect(nodes, device_type, constructor),
        tensorflow=tf.__version__, constructed=bool(constructor.device),
        model=options.model, device_type=device_type,
        plugin=str(options.plugin) if options.plugin else None,
        functions={name: len(each) for name, each in nodes.items()})
    if options.regions:
        found["regions"] = regions.find(options.model, device_type,
                                        plugin_files(options))
    if options.json:
        text = json.dumps(found, indent=1) + "\n"
        if str(options.json) == "-":
            sys.stdout.write(text)
        else:
            options.json.write_text(text, encoding="utf-8")
    if str(options.json) != "-":
        print(report.table(found, only_bad=options.missing))
    return 1 if found["missing"] or (options.strict and
                                     found["warnings"]) else 0


if __name__ == "__main__":
    sys.exit(main())
