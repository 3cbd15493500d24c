# SPDX-License-Identifier: Apache-2.0
"""Checks that a plug-in exports its entry points and nothing else, and needs libc,
libm, libstdc++ and libgcc_s and nothing else:

  symbols_test.py PLUGIN.so [--expect ENTRY_POINT]... [--without-flags]

A plug-in shares a process with TensorFlow, which exports tens of thousands of C++
symbols. A symbol that the plug-in exports or leaves undefined may be bound to one
of those, and a library that it needs may already be loaded in another version.

A plug-in built --without-flags also exports its own classes and Abseil's. Only the
symbols of namespace tfplug are errors.
"""

import argparse
import re
import subprocess
import sys

ENTRY_POINTS = {
    "SE_InitPlugin",
    "TF_InitKernel",
    "TF_InitGraph",
    "TF_InitGraphPlugin",
    "TF_InitProfiler",
}
NEEDED = re.compile(r"(libc|libm|libstdc\+\+|libgcc_s|ld-linux[\w-]*)\.so\.\d+")
# Symbols that a self-contained plug-in contains itself or looks up at run time.
FOREIGN = re.compile(r"^(TF_|TFE_|SE_|SP_|TSL_|TP_)|absl|google|protobuf|Eigen")
# A mangled name in namespace tfplug: of a function, variable, type, or of a local
# variable, virtual table or guard.
OURS = re.compile(r"_Z(GV|T[VTISCHW]|Z)*N[KVrRO]*6tfplug")


def output(*command):
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def symbols(plugin, which):
    lines = output("nm", "-D", which, plugin).splitlines()
    return [line.split()[-1].split("@")[0] for line in lines if line.strip()]


def problems(plugin, expected, without_flags):
    defined = set(symbols(plugin, "--defined-only"))
    for name in sorted(defined - ENTRY_POINTS):
        if without_flags and not OURS.match(name):
            continue
        yield f"exports {name}, which is not an entry point"
    if not defined & ENTRY_POINTS:
        yield "exports no entry point: TensorFlow would not call it"
    for name in sorted(expected - defined):
        yield f"does not export {name}"

    if without_flags:
        return

    for name in symbols(plugin, "--undefined-only"):
        if FOREIGN.search(name):
            yield f"leaves {name} undefined"

    dynamic = output("readelf", "-d", plugin)
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not NEEDED.fullmatch(name):
            yield f"needs {name}"
    if re.search(r"\((TEXTREL|RPATH|RUNPATH)\)", dynamic):
        yield "has text relocations or a library search path"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plugin")
    parser.add_argument("--expect", action="append", default=[])
    parser.add_argument("--without-flags", action="store_true")
    args = parser.parse_args()
    found = list(problems(args.plugin, set(args.expect), args.without_flags))
    for problem in found:
        print(f"{args.plugin} {problem}")
    if found:
        print(
            "Remedy: link the plug-in with the Meson dependency tfplug-plugin or"
            " the flags of tfplug-plugin.pc, and with static libraries only."
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
