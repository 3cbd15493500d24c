# SPDX-License-Identifier: Apache-2.0
"""The command tfplug."""

import argparse
import os
import pathlib
import subprocess
import sys

import tfplug
from tfplug import doctor, new, sbom, wheel_file

_ROOT = pathlib.Path(tfplug.__file__).resolve().parent
# The tools in tools/, which parse their own arguments.
_TOOLS = {
    "coverage": "list the ops of a model that have no kernel on a device",
    "op-sweep": "compare kernels with TensorFlow's CPU kernels",
    "profile": "run a Python command under the profiler, and explain the profile",
}


def _built_abseil(build):
    """Returns the prefix of the Abseil in the cache, or "". Builds one first if
    `build`: see tools/lib/setup.sh."""
    command = 'find_abseil || { %s && find_abseil; }' % (
        "mkdir -p $CACHE && make_abseil" if build else "false")
    script = f'. "{_ROOT / "tools/setup.sh"}"; {command}'
    return subprocess.run(["bash", "-c", script], text=True, check=False,
                          stdout=subprocess.PIPE).stdout.strip()


def _abseil(options):
    prefix = _built_abseil(build=True)
    if not prefix:
        print("tfplug abseil: there is no Abseil for plug-ins. Meson fetches its source "
              "itself if subprojects/ has a wrap file (meson wrap install abseil-cpp), and "
              "CMake does without one.", file=sys.stderr)
        return 1
    if options.pkgconfigdir:
        prefix += "/lib/pkgconfig"
    print(prefix)
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
            ("--pkgconfigdir", tfplug.get_pkgconfig_dir(),
             "the directory for PKG_CONFIG_PATH"),
            ("--version", tfplug.__version__, "the version")):
        show.add_argument(option, dest="show", action="store_const", const=value,
                          help=f"print {meaning}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    abseil = commands.add_parser(
        "abseil", help="build an Abseil that plug-ins can contain",
        description="Builds a static, hidden, position-independent Abseil from the "
        "source package of a Debian or Ubuntu machine, once, in ~/.cache/tfplug, "
        "and prints its prefix.")
    abseil.add_argument("--pkgconfigdir", action="store_true",
                        help="print the directory for PKG_CONFIG_PATH instead")
    abseil.set_defaults(run=_abseil)

    new.add_parser(commands)
    doctor.add_parser(commands)
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
    if hasattr(options, "tool"):
        return _run_tool(options.tool, rest)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
