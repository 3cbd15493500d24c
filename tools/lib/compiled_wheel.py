# SPDX-License-Identifier: Apache-2.0
"""Adds tfplug's library, compiled, and its Abseil to a wheel of the Python package.

  compiled_wheel.py WHEEL BUILD ABSEIL

Writes a wheel for the objects' processor beside WHEEL, and prints its path. BUILD is the
directory in which Meson compiled tfplug/separate/, ABSEIL the prefix that
`tfplug abseil` printed, with which it was compiled. A new project links them
instead of compiling them.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from wheel.wheelfile import WheelFile

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "packaging/python"))
import doctor_causes  # noqa: E402

_PKG_CONFIG = """\
prefix=${{pcfiledir}}/../..
Name: tfplug-compiled
Description: tfplug's op kernels, graph passes and computation on the host, compiled
Version: {version}
Cflags: -DTFPLUG_SEPARATE
Libs: -L${{prefix}}/lib -ltfplug -labsl -ldl -pthread
"""
_BAZEL = """\
cc_library(
    name = "tfplug",
    srcs = ["lib/libtfplug.a"],
    visibility = ["//visibility:public"],
    deps = [":absl"],
)
"""


def main(pure, build, abseil):
    files = sorted(build.glob("libtfplug_separate_*.a.p/*.o"))
    machine = doctor_causes.machine_of(files[0].read_bytes()[:64])
    # Objects name functions of the C library without versions, and the one that links them
    # has them: the tag is that of the oldest Linux that pip knows.
    tag = f"py3-none-manylinux_2_17_{machine}"
    inside = f"tfplug/compiled/{machine}"
    path = pure.with_name(pure.name.replace("py3-none-any", tag))
    with WheelFile(pure) as source, WheelFile(path, "w") as result, \
            tempfile.TemporaryDirectory() as directory:
        archive = pathlib.Path(directory) / "libtfplug.a"
        subprocess.run(["ar", "rcsD", archive, *files], check=True)
        record = f"{source.dist_info_path}/RECORD"
        for name in source.namelist():
            text = source.read(name)
            if name == f"{source.dist_info_path}/WHEEL":
                text = re.sub(rb"(?m)^Tag: .*$", f"Tag: {tag}".encode(), text)
                text = text.replace(b"Root-Is-Purelib: true", b"Root-Is-Purelib: false")
            if name != record:
                result.writestr(source.getinfo(name), text)
        result.write(archive, f"{inside}/lib/libtfplug.a")
        result.writestr(f"{inside}/lib/pkgconfig/tfplug-compiled.pc", _PKG_CONFIG.format(
            version=source.parsed_filename.group("ver")))
        for each in sorted(abseil.rglob("*")):
            place = each.relative_to(abseil).as_posix()
            if place == "BUILD.bazel":
                result.writestr(f"{inside}/{place}", each.read_text() + _BAZEL)
            elif each.is_file() and place != "manifest":
                result.write(each, f"{inside}/{place}")
    print(path)


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
