# SPDX-License-Identifier: Apache-2.0
"""Compiles each CUDA source that an op sweep generates with NVIDIA's compiler NVRTC, for
sm_75, sm_90 and the newest architecture that it has. It needs no GPU."""

import argparse
import collections
import ctypes
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile

# As examples/cuda_like/driver/driver.cc.
OPTIONS = ("--fmad=false", "--std=c++17", "-default-device")
_OLD_ARCHITECTURES = (75, 90)
_LIB = pathlib.Path(__file__).resolve().parent


def find_library():
    """Returns the path of libnvrtc.so in this environment or in CUDA_HOME, or None."""
    folders = [pathlib.Path(sysconfig.get_path("purelib")) / "nvidia/cu13/lib",
               pathlib.Path(sysconfig.get_path("purelib")) / "nvidia/cuda_nvrtc/lib",
               pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "lib64"]
    return next((p for f in folders for p in f.glob("libnvrtc.so.1?")), None)


class Nvrtc:
    """NVIDIA's compiler."""

    def __init__(self, path):
        self._library = ctypes.CDLL(str(path))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"
        count = ctypes.c_int()
        self._library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        known = (ctypes.c_int * count.value)()
        self._library.nvrtcGetSupportedArchs(known)
        self.architectures = sorted({*_OLD_ARCHITECTURES, max(known)})

    def compile(self, source, architecture):
        """Returns the size of the binary, 0 if the source does not compile, and the
        compiler's messages."""
        library, program = self._library, ctypes.c_void_p()
        library.nvrtcCreateProgram(ctypes.byref(program), source, b"tfplug.cu", 0, None,
                                   None)
        words = [f"--gpu-architecture=sm_{architecture}", *OPTIONS]
        options = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        size = ctypes.c_size_t()
        result = library.nvrtcCompileProgram(program, len(words), options)
        if result == 0:
            result = library.nvrtcGetCUBINSize(program, ctypes.byref(size))
        binary_size = size.value if result == 0 else 0
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value + 1)
        library.nvrtcGetProgramLog(program, log)
        library.nvrtcDestroyProgram(ctypes.byref(program))
        return binary_size, log.value.decode(errors="replace")


_nvrtc = None  # of a process


def _start(path):
    global _nvrtc  # pylint: disable=global-statement
    _nvrtc = Nvrtc(path)


def _check(path):
    """Returns the kernel's name and a message for each architecture that fails."""
    source = path.read_bytes()
    name = re.search(rb"__global__[^{;]*?\bvoid\b[^{;]*?(\w+)\s*\(", source)
    failures = []
    for architecture in _nvrtc.architectures:
        size, log = _nvrtc.compile(source, architecture)
        if size == 0:
            failures.append(f"{path}: sm_{architecture}:\n{log}")
    return name[1].decode() if name else "?", failures


def check_folder(folder, library, jobs):
    """Compiles all sources; returns the lines of a report, the number of sources and
    the number of those that fail."""
    paths = sorted(folder.glob("*.cu"))
    kernels, wrong, lines = collections.Counter(), 0, []
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, _start, [str(library)]) as pool:
        for name, failures in pool.imap_unordered(_check, paths, chunksize=4):
            kernels[name] += 1
            wrong += bool(failures)
            lines += failures
    nvrtc = Nvrtc(library)
    names = ", ".join(f"{count} {name}" for name, count in sorted(kernels.items()))
    targets = ", ".join(f"sm_{a}" for a in nvrtc.architectures)
    lines.append(f"{len(paths)} sources ({names}): NVRTC {nvrtc.version} compiles "
                 f"{len(paths) - wrong} for each of {targets}")
    return lines, len(paths), wrong


def record(build, folder, arguments):
    """Runs the op sweep on the emulated driver, which stores the sources in `folder`."""
    example = build / "examples/cuda_like"
    command = [sys.executable, "-B", str(_LIB / "op_sweep/main.py"), "--plugin",
               str(example / "libtfplug_cuda_like.so"), *arguments]
    sweep = subprocess.run(command, check=False, text=True, capture_output=True, env={
        **os.environ, "CUDA_LIKE_DRIVER": str(example / "libcuda_like.so"),
        "CUDA_LIKE_SOURCES": str(folder), "TFPLUG_CACHE_DIR": ""})
    if sweep.returncode == 125:
        sys.exit(f"the op sweep failed:\n{sweep.stdout}{sweep.stderr}")
    return sweep.stdout.splitlines()[-1]


def main():
    parser = argparse.ArgumentParser(
        prog="tools/nvrtc-sweep", description=__doc__.split("\n\n")[0],
        epilog="Other options are those of tools/op-sweep.")
    parser.add_argument("--build", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--nvrtc", type=pathlib.Path, default=find_library(),
                        metavar="FILE", help="libnvrtc.so; default: that of the package "
                        "nvidia-cuda-nvrtc, or of CUDA_HOME")
    parser.add_argument("--sources", type=pathlib.Path, metavar="FOLDER",
                        help="compile the sources in this folder, without a sweep")
    parser.add_argument("--compilers", type=int, default=os.cpu_count(), metavar="N",
                        help="processes that compile")
    options, others = parser.parse_known_args()
    if options.nvrtc is None:
        parser.error("there is no NVRTC: install nvidia-cuda-nvrtc of PyPI, or name the "
                     "library with --nvrtc")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.sources or pathlib.Path(temporary)
        if not options.sources:
            print(record(options.build, folder, others), flush=True)
        lines, count, wrong = check_folder(folder, options.nvrtc, options.compilers)
    print("\n".join(lines))
    sys.exit(min(wrong, 100) if count else 125)


if __name__ == "__main__":
    main()
