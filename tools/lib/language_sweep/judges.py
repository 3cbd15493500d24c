# SPDX-License-Identifier: Apache-2.0
"""The compilers of the languages of generated kernels."""

import dataclasses
import functools
import pathlib
import re
import shutil
import subprocess
import tempfile

import nvrtc

_LIBRARY = pathlib.Path(__file__).with_name("metal_stdlib")
_DEVICE_LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode")
_HAS_DOUBLES = re.compile(rb"^(?!#|ARRAY|typedef).*\b(array_)?f64\b", re.M)


@dataclasses.dataclass(frozen=True)
class Judge:
    """A compiler. `{}` in its command is the source's path, `{out}` that of a file in a
    temporary folder, and {folder} a folder that prepare() fills."""

    name: str
    language: str
    extension: str
    version: str  # a command, whose first line with a number is printed
    command: str
    package: str  # that has it
    few: int = 24  # sources in a test
    has_doubles: bool = True
    prepare: object = None  # a function of a folder

    def find_version(self):
        """Returns the compiler's version, or None if the machine lacks it."""
        done = subprocess.run(self.version, shell=True, check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            return None
        return next((line.strip() for line in done.stdout.splitlines()
                     if re.search(r"\d", line)), "?")

    def reads(self, source):
        return self.has_doubles or not _HAS_DOUBLES.search(source)

    def refusals(self, path, folder):
        """Returns the compiler's messages for a source that it refuses, else nothing."""
        with tempfile.TemporaryDirectory(prefix="language_sweep_") as out:
            command = self.command.replace("{}", str(path)).replace(
                "{out}", f"{out}/out").replace("{folder}", str(folder))
            done = subprocess.run(command, shell=True, check=False, text=True,
                                  errors="replace", stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        return [done.stdout] if done.returncode else []


class NvrtcJudge(Judge):
    """NVRTC, for three architectures."""

    def find_version(self):
        found = nvrtc.find_library()
        if found is None:
            return None
        compiler = nvrtc.Nvrtc(found)
        return f"NVRTC {compiler.version}, " + ", ".join(
            f"sm_{each}" for each in compiler.architectures)

    def refusals(self, path, folder):
        return _compiler().refusals(path.read_bytes())


@functools.lru_cache(maxsize=None)
def _compiler():
    return nvrtc.Nvrtc(nvrtc.find_library())


def _add_gfx1100(folder):
    """Makes the libraries of devices for gfx1100. Those of Debian 12 are older than it,
    but differ between devices by one constant only."""
    shutil.copytree(_DEVICE_LIBRARIES, folder, dirs_exist_ok=True)
    missing = folder / "oclc_isa_version_1100.bc"
    if not missing.exists():
        subprocess.run(
            ["clang-15", "-x", "cl", "-Xclang", "-cl-std=CL2.0", "-target",
             "amdgcn-amd-amdhsa", "-nogpulib", "-emit-llvm", "-c", "-o", missing, "-"], check=True,
            input=b"const __constant int __oclc_ISA_version = 11000;\n")


def _hip(device, libraries, prepare=None):
    # As hipcc calls it, and with the option that the guide demands.
    return Judge(
        f"hip-{device}", "HIP", ".cu",
        f"[ -e /usr/include/hip/hip_runtime.h ] && [ -e {_DEVICE_LIBRARIES} ] && "
        "clang-15 --version",
        f"clang++-15 -x hip --offload-arch={device} --rocm-path=/usr "
        f"--rocm-device-lib-path={libraries} -include hip/hip_runtime.h "
        "--cuda-device-only -std=c++17 -O1 -ffp-contract=off -w -c -o {out} {}",
        "hipcc", few=3, prepare=prepare)


_C = "cc -std=c99 -pedantic -Wall -Werror -Wno-unused {bits} -c -o {out} {}"
_CHECK_32 = "echo 'long x;' | cc -m32 -x c -c -o /dev/null - && cc --version"
_SPIRV = ("glslangValidator --target-env vulkan1.2 -o {out} {} && "
          "spirv-val --target-env vulkan1.2 {out}")

JUDGES = [
    Judge("clang", "OpenCL C", ".cl", "clang --version",
          "clang -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -Dcl_khr_fp64 "
          "-target spir64 -emit-llvm -c -o {out} {}", "clang", few=12),
    NvrtcJudge("nvrtc", "CUDA C++", ".cu", "", "", "nvidia-cuda-nvrtc, of PyPI", few=3),
    _hip("gfx906", _DEVICE_LIBRARIES),
    _hip("gfx1100", "{folder}", _add_gfx1100),
    Judge("g++", "C++17", ".cc", "g++ --version",
          "g++ -std=c++17 -w -c -o {out} {}", "g++"),
    Judge("gcc", "plain C", ".c", "cc --version", _C.replace("{bits}", ""), "gcc"),
    Judge("gcc-m32", "plain C", ".c", _CHECK_32, _C.replace("{bits}", "-m32"), "gcc"),
    Judge("glslang", "GLSL", ".comp",
          "spirv-val --version > /dev/null && glslangValidator --version", _SPIRV,
          "glslang-tools and spirv-tools"),
    # A comparison: Metal made of GLSL, and our Metal as C++. No compiler of Metal.
    Judge("spirv-cross", "Metal, of GLSL's SPIR-V", ".comp",
          "command -v spirv-cross > /dev/null && "
          "dpkg-query -W -f '${Package} ${Version}' spirv-cross",
          _SPIRV + " && spirv-cross --msl --msl-version 20400 {out}", "spirv-cross",
          has_doubles=False),
    Judge("clang++", "Metal, as C++", ".metal", "clang++ --version",
          "clang++ -x c++ -std=c++14 -w -c -o {out} -I {folder} {}", "clang",
          has_doubles=False, prepare=lambda folder: shutil.copy(_LIBRARY, folder)),
]
