# SPDX-License-Identifier: Apache-2.0
"""The command tfplug."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

import tfplug
from tfplug import abseil, check, doctor, new, run_graph, sbom, wheel_file

_ROOT = pathlib.Path(tfplug.__file__).resolve().parent
# The tools in tools/, which parse their own arguments.
_TOOLS = {
    "coverage": "list the ops of a model that have no kernel on a device",
    "op-sweep": "compare kernels with TensorFlow's CPU kernels",
    "profile": "run a Python command under the profiler, and explain the profile",
}


def _flags(options):
    """Prints the options of compiler and linker for a plug-in."""
    program = shutil.which("pkg-config") or shutil.which("pkgconf-pypi")
    if not program:
        print("tfplug --cflags: needs pkg-config: pip install pkgconf", file=sys.stderr)
        return 1
    try:
        prefix = abseil.build()
    except abseil.Error as error:
        print(f"tfplug --cflags: {error}", file=sys.stderr)
        return 1
    path = ":".join(filter(None, (tfplug.get_pkgconfig_dir(), f"{prefix}/lib/pkgconfig",
                                  os.environ.get("PKG_CONFIG_PATH"))))
    return subprocess.run([program, *options.flags, "tfplug-plugin"], check=False,
                          env={**os.environ, "PKG_CONFIG_PATH": path}).returncode


def _run_tool(command, arguments):
    """Replaces this process by a tool, which needs TensorFlow in the same
    environment."""
    main = _ROOT / "tools" / command.replace("-", "_") / "main.py"
    os.environ["TFPLUG_PROGRAM"] = f"tfplug {command}"
    os.execv(sys.executable, [sys.executable, "-B", str(main), *arguments])


def _parser():
    parser = argparse.ArgumentParser(
        prog="tfplug", description="Builds and checks TensorFlow plug-ins.")
    show = parser.add_mutually_exclusive_group()
    for option, value, meaning in (
            ("--includes", f"-I{tfplug.get_include()}",
             "the compiler's option for the headers"),
            ("--cmakedir", tfplug.get_cmake_dir(),
             "the directory for CMake's tfplug_DIR"),
            ("--bazeldir", str(_ROOT), "the directory of Bazel's repository tfplug"),
            ("--pkgconfigdir", tfplug.get_pkgconfig_dir(),
             "the directory for PKG_CONFIG_PATH"),
            ("--version", tfplug.__version__, "the version")):
        show.add_argument(option, dest="show", action="store_const", const=value,
                          help=f"print {meaning}")
    for option, meaning in (("--cflags", "compiler's"), ("--libs", "linker's")):
        parser.add_argument(option, dest="flags", action="append_const", const=option,
                            help=f"print the {meaning} options for a plug-in; builds "
                            "Abseil first")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND",
                                      dest="command")

    abseil.add_parser(commands)
    new.add_parser(commands)
    doctor.add_parser(commands)
    check.add_parser(commands)
    run_graph.add_parser(commands)
    sbom.add_parser(commands)
    wheel_file.add_parser(commands)

    # Their options, also --help, are their own.
    for name, text in _TOOLS.items():
        commands.add_parser(name, help=text, add_help=False).set_defaults(tool=name)
    return parser


def main(arguments=None):
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if options.show:
        print(options.show)
        return 0
    if options.flags:
        return _flags(options)
    if hasattr(options, "tool"):
        return _run_tool(options.tool, rest)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        return options.run(options)
    except OSError as error:
        if error.filename is None:
            raise
        print(f"tfplug {options.command}: {error.filename}: {error.strerror}",
              file=sys.stderr)
        return 1


def check_main():
    """Runs the command tfplug-check."""
    return main(["check", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
