# SPDX-License-Identifier: Apache-2.0
"""Which op of a model has no kernel on a device? tools/coverage runs this."""

import argparse
import json
import os
import pathlib
import sys
import sysconfig
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

# Where TensorFlow looks for plug-ins.
PLUGIN_FOLDERS = {os.path.join(sysconfig.get_path(name), "tensorflow-plugins")
                  for name in ("purelib", "platlib")}


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="tools/coverage", description="Lists each op and type of a "
        "model's functions, and who has a kernel for it: the plug-in, the "
        "DEFAULT device, only the CPU, or nobody. Nothing is run on the device.",
        epilog="Exit status: 0 every op has a kernel; 1 some op has none; "
        "2 the command or the model is wrong.")
    parser.add_argument("model", metavar="MODEL", help="FILE.py[:FUNCTION] "
                        "(FUNCTION defaults to model; docs/guide/coverage.md says "
                        "what it returns), or the folder of a SavedModel")
    parser.add_argument("--plugin", type=pathlib.Path, metavar="FILE.so",
                        help="the plug-in; default: examples/cpu_sim, built "
                        "first")
    parser.add_argument("--installed", action="store_true",
                        help="the plug-ins that are installed in TensorFlow's "
                        "environment, instead of --plugin")
    parser.add_argument("--device", metavar="TYPE", help="the device type, as "
                        "SIM; default: the plug-in's")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write the report there too; - for standard "
                        "output, instead of the table")
    parser.add_argument("--missing", action="store_true",
                        help="list only what is missing or warned of")
    parser.add_argument("--strict", action="store_true",
                        help="exit with 1 for a warning, too")
    options = parser.parse_args(arguments)
    if options.plugin and options.installed:
        parser.error("--plugin and --installed exclude each other")
    return options


def is_model(path):
    """Whether there is something to load, before TensorFlow takes its time."""
    file = pathlib.Path(path.partition(":")[0])
    return ((pathlib.Path(path) / "saved_model.pb").is_file() or
            file.suffix == ".py" and file.is_file())


def load_plugins(options, tf):
    """Loads the plug-ins, not as devices: those of TensorFlow's context are
    settled by then, and whatever a model does while it is made, the CPU does."""
    from tensorflow.python.framework import load_library  # pylint: disable=C0415
    tf.config.list_logical_devices()
    files = [options.plugin]
    if options.installed:
        files = sorted({file for folder in PLUGIN_FOLDERS
                        for file in pathlib.Path(folder).glob("*.so")})
    for file in files:
        load_library.load_pluggable_device_library(str(file.resolve()))


def fail(message):
    print(f"tools/coverage: {message}", file=sys.stderr)
    return 2


def device_type_of(options, kernels):
    """Which device is asked about; a ValueError that says why not."""
    types = kernels.plugin_device_types()
    if options.device:
        if options.device not in {*types, *kernels.BUILT_IN}:
            raise ValueError(f"no kernel is registered for {options.device}; "
                             f"there are: {', '.join(types) or 'no plug-ins'}")
        return options.device
    if len(types) != 1:
        raise ValueError("say --device TYPE: " + (
            f"there are {', '.join(types)}" if types else
            "no plug-in has registered a kernel"))
    return types[0]


def main(arguments=None):
    options = parse(arguments)
    if not options.installed and options.plugin is None:
        return fail("say --plugin FILE.so or --installed")
    if options.plugin and not options.plugin.is_file():
        return fail(f"there is no {options.plugin}")
    if not is_model(options.model):
        return fail(f"{options.model}: neither FILE.py[:FUNCTION] nor the folder "
                    "of a SavedModel")
    # Keeps TensorFlow from loading them by itself.
    exists = os.path.exists
    os.path.exists = lambda path: path not in PLUGIN_FOLDERS and exists(path)
    os.environ.pop("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", None)
    import tensorflow as tf  # pylint: disable=import-outside-toplevel
    load_plugins(options, tf)

    import coverage_graph as graph
    import coverage_kernels as kernels
    import coverage_model as model
    import coverage_report as report
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
        return fail(f"{options.model} raised the exception above")
    nodes = {name: graph.nodes_of(function, name, layers)
             for name, function in functions.items()}
    found = report.document(
        report.collect(nodes, device_type), tensorflow=tf.__version__,
        model=options.model, device_type=device_type,
        plugin=str(options.plugin) if options.plugin else None,
        functions={name: len(each) for name, each in nodes.items()})
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
