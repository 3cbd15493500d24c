# SPDX-License-Identifier: Apache-2.0
"""Compiles and links the programs and plug-ins that are measured."""

import os
import pathlib
import resource
import shlex
import subprocess
import sys
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parents[1]
BY_HAND = ROOT / "benchmarks/by_hand"
CXX = shlex.split(os.environ.get("CXX", "g++"))

COMPILE = ["-std=c++17", "-O2", "-Wall", "-Wextra"]
# The flags of tfplug_plugin_dep in meson.build.
COMPILE_PLUGIN = COMPILE + [
    "-fPIC",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-ffunction-sections",
    "-fdata-sections",
]
LINK_PLUGIN = [
    "-shared",
    f"-Wl,--version-script={ROOT}/include/tfplug/plugin.map",
    "-Wl,--exclude-libs,ALL",
    "-Wl,--gc-sections",
]
INCLUDE = ["-I", str(ROOT / "include")]


def say(text):
    print(text, file=sys.stderr, flush=True)


def row(cells):
    """Returns a line of a Markdown table after printing it to standard error."""
    line = "| " + " | ".join(str(cell) for cell in cells) + " |"
    say(line)
    return line


def run(*command):
    command = [str(word) for word in command]
    result = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if result.returncode != 0:
        raise SystemExit(
            f"Failed: {shlex.join(command)}\n{result.stdout}{result.stderr}"
        )
    return result.stdout


def abseil(*query):
    modules = ["absl_any_invocable", "absl_cord", "absl_status"]
    modules += ["absl_statusor", "absl_strings"]
    return run("pkg-config", "--static", *query, *modules).split()


def tensorflow_include():
    """Returns the directory of the wheel's C headers, or None."""
    include = pathlib.Path(sysconfig.get_path("purelib"), "tensorflow/include")
    return include if include.is_dir() else None


def compile(source, output, flags=COMPILE_PLUGIN):
    run(*CXX, *flags, *INCLUDE, *abseil("--cflags"), "-c", source, "-o", output)
    return output


def link_plugin(objects, output, libraries=()):
    run(*CXX, *LINK_PLUGIN, *objects, "-o", output, *libraries)
    return output


def build_plugins(folder):
    """Builds and returns the plug-ins of benchmarks/by_hand: (by hand, framework)."""
    objects = {
        name: compile(BY_HAND / f"{name}.cc", folder / f"{name}.o")
        for name in (
            "driver",
            "by_hand",
            "kernels_by_hand",
            "framework",
            "kernels_framework",
        )
    }
    by_hand = link_plugin(
        [objects["by_hand"], objects["kernels_by_hand"], objects["driver"]],
        folder / "by_hand.so",
    )
    framework = link_plugin(
        [objects["framework"], objects["kernels_framework"], objects["driver"]],
        folder / "framework.so",
        ["-Wl,--no-undefined", *abseil("--libs"), "-ldl"],
    )
    return by_hand, framework


def build_minimal(folder):
    """Builds and returns the stripped library of a minimal device."""
    unit = compile(ROOT / "tests/consumer/minimal_device.cc",
                   folder / "minimal.o")
    libraries = ["-Wl,--no-undefined", *abseil("--libs"), "-ldl", "-s"]
    return link_plugin([unit], folder / "minimal.so", libraries)


def build_example(name, library=None):
    """Builds and returns an example's plug-in, or another library of it, in the build
    folder. TFPLUG_CPU_SIM, TFPLUG_CUDA_LIKE and so on name other plug-ins."""
    named = os.environ.get(f"TFPLUG_{name.upper()}")
    if named and not library:
        return pathlib.Path(named).resolve()
    build = pathlib.Path(os.environ["TFPLUG_BUILD"]).resolve()
    target = f"examples/{name}/{library or f'libtfplug_{name}.so'}"
    run("ninja", "-C", build, target)
    return build / target


def build_program(sources, output, flags=(), libraries=()):
    run(
        *CXX,
        *COMPILE,
        *INCLUDE,
        *abseil("--cflags"),
        *flags,
        *sources,
        "-o",
        output,
        *libraries,
        *abseil("--libs"),
        "-ldl",
        "-pthread",
    )
    return output


def generate_messages(folder):
    """Generates and returns the sources of the messages of tfplug/proto/proto.h.
    Compile with -I folder to include their headers."""
    protos = (ROOT / "include/tfplug/proto").glob("*.proto")
    run("protoc", f"--proto_path={ROOT / 'include'}", f"--cpp_out={folder}",
        *sorted(protos))
    return sorted((folder / "tfplug/proto").glob("*.pb.cc"))


def compile_seconds(source, flags):
    """Returns the processor time of one compilation, which depends little on other
    load."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(*CXX, *COMPILE_PLUGIN, *flags, "-c", source, "-o", "/dev/null")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (
        before.ru_utime + before.ru_stime
    )
