# SPDX-License-Identifier: Apache-2.0
"""Builds the opponents of graph_opponents/ as libraries that graph.cc loads.

  wheel  the protobuf that TensorFlow's wheel contains and exports
  upb    the C library in Python's protobuf package, whose source is downloaded
         and compared with the hash in graph_opponents/protobuf.txt
"""

import concurrent.futures
import os
import re
import sys
import tarfile

import building

HERE = building.ROOT / "benchmarks/graph_opponents"
FLAGS = ["-std=c++17", "-O2", "-g1", "-DNDEBUG", "-fPIC", "-shared",
         "-fvisibility=hidden", "-Wl,--no-undefined"]
UPB_FOLDERS = ["base", "hash", "mem", "message", "mini_descriptor",
               "mini_table", "port", "wire"]


def build_wheel(folder):
    """Returns the library, and the version of the wheel's protobuf."""
    include = building.tensorflow_include()
    if include is None:
        raise SystemExit("TensorFlow's wheel contains no headers")
    header = (include / "google/protobuf/stubs/common.h").read_text()
    version = int(re.search(r"GOOGLE_PROTOBUF_VERSION (\d+)", header).group(1))
    library = folder / "libwheel.so"
    building.run(*building.CXX, *FLAGS, "-isystem", include,
                 HERE / "protobuf_wheel.cc",
                 include.parent / "libtensorflow_framework.so.2",
                 f"-Wl,-rpath,{include.parent}", "-o", library)
    return library, f"{version // 10**6}.{version // 1000 % 1000}.{version % 1000}"


def fetch_upb(folder):
    """Downloads and unpacks the source; returns its directory."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    tools = folder / "setuptools"
    building.run(*pip, "install", "--require-hashes", "--no-deps",
                 "--only-binary", ":all:", "--target", tools, "-r",
                 HERE / "setuptools.txt")
    building.run("env", f"PYTHONPATH={tools}", *pip, "download",
                 "--require-hashes", "--no-deps", "--no-build-isolation",
                 "--no-binary", ":all:", "-d", folder, "-r",
                 HERE / "protobuf.txt")
    archive, = folder.glob("protobuf-*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(folder)
    return folder / archive.name.removesuffix(".tar.gz")


def build_upb(folder):
    """Returns the library, and the version of the package."""
    source = fetch_upb(folder)
    units = [unit for name in UPB_FOLDERS
             for unit in sorted((source / "upb" / name).rglob("*.c"))]
    units += sorted((source / "utf8_range").glob("*.c"))

    def compile(numbered):
        number, unit = numbered
        output = folder / f"upb{number}.o"
        building.run(os.environ.get("CC", "gcc"), "-O2", "-g1", "-DNDEBUG",
                     "-fPIC", "-fvisibility=hidden", "-I", source, "-I",
                     source / "utf8_range", "-c", unit, "-o", output)
        return output

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile, enumerate(units)))
    abseil = building.run("pkg-config", "--static", "--cflags", "--libs",
                          "absl_hash").split()
    library = folder / "libupb.so"
    building.run(*building.CXX, *FLAGS, "-I", source, HERE / "upb.cc",
                 *objects, "-o", library, *abseil, "-pthread")
    return library, source.name.removeprefix("protobuf-")
