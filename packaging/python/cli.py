# SPDX-License-Identifier: Apache-2.0
"""The command tfplug."""

import argparse
import os
import pathlib
import re
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
    """Prints the options of compiler and linker for a plug-in: those of tfplug's files for
    pkg-config, which need not be installed, and Abseil's."""
    try:
        prefix = abseil.build()
    except abseil.Error as error:
        print(f"tfplug {options.flags[0]}: {error}", file=sys.stderr)
        return 1
    found = {"Cflags": [], "Libs": []}
    for name in ("tfplug-plugin", "tfplug"):
        values = {"pcfiledir": tfplug.get_pkgconfig_dir()}
        path = pathlib.Path(tfplug.get_pkgconfig_dir(), f"{name}.pc")
        for line in path.read_text(encoding="utf-8").splitlines():
            variable, sign, value = re.match(r"(\w*)([=:]?) ?(.*)", line).groups()
            value = re.sub(r"\$\{(\w+)\}", lambda each: values[each[1]], value)
            if sign == "=":
                values[variable] = os.path.normpath(value)
            elif variable in found:
                found[variable] += value.split()
    found["Cflags"].append(f"-I{prefix}/include")
    found["Libs"].append(f"-L{prefix}/lib")
    if (prefix / "lib/libtfplug.a").exists():
        found["Cflags"].append("-DTFPLUG_SEPARATE")
        found["Libs"].append("-ltfplug")
    found["Libs"] += ["-labsl", "-pthread"]
    names = {"--cflags": "Cflags", "--libs": "Libs"}
    print(*dict.fromkeys(flag for option in options.flags for flag in found[names[option]]))
    return 0


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
            ("--bazelrules", str(_ROOT / "bazel_rules"),
             "the directory with stand-ins for what Bazel downloads"),
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
