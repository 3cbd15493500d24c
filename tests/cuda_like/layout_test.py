# SPDX-License-Identifier: Apache-2.0
"""Compares the declarations of examples/cuda_like/driver with cuda.h, nvrtc.h and
cublas_v2.h.

Generates a C++ file that includes them (ours are in a namespace) and consists of
static_asserts: each enumerator, type and function. Skipped (exit status 77) if
NVIDIA's toolkit is not installed; CUDA_HOME names its directory.
"""

import os
import pathlib
import re
import subprocess
import sys

SKIPPED = 77
DRIVER = pathlib.Path(sys.argv[1])  # examples/cuda_like/driver
COMPILER = sys.argv[2:]

START = """
#include <type_traits>
#include "driver/functions.h"
#include "driver/types.h"
#include <cublas_v2.h>
#include <cuda.h>
#include <nvrtc.h>
#define SAME_FUNCTION(result, name, parameters) \\
  static_assert(std::is_same_v<decltype(name), result parameters>, #name);
#define SAME_DRIVER(name, suffix, parameters) \\
  SAME_FUNCTION(CUresult, name##suffix, parameters)
#define SAME_COMPILER(name, suffix, parameters) \\
  SAME_FUNCTION(nvrtcResult, name##suffix, parameters)
#define SAME_BLAS(name, parameters) \\
  SAME_FUNCTION(cublasStatus_t, name, parameters)
#define SAME_BLAS_TEXT(name, result, parameters) \\
  SAME_FUNCTION(result, name, parameters)
CUDA_LIKE_DRIVER_FUNCTIONS(SAME_DRIVER)
CUDA_LIKE_BLAS_FUNCTIONS(SAME_BLAS)
CUDA_LIKE_BLAS_TEXTS(SAME_BLAS_TEXT)
CUDA_LIKE_COMPILER_FUNCTIONS(SAME_COMPILER)
#define cuGetProcAddress cuGetProcAddress_v2
SAME_FUNCTION(CUresult, cuGetProcAddress,
              (const char*, void**, int, cuuint64_t,
               CUdriverProcAddressQueryResult*))
static_assert(std::is_same_v<CUstreamCallback,
                             void (*)(CUstream, CUresult, void*)>);
static_assert(CUDA_VERSION >= 12000);
"""


def assertions(text):
    """Yields a static_assert for each enumerator and type in types.h."""
    for name, value in re.findall(r"^  (\w+) = (-?\d+),", text, re.M):
        yield f'static_assert({name} == {value}, "{name}");'
    for name in re.findall(r"^enum (\w+) {", text, re.M):
        yield f"static_assert(std::is_enum_v<{name}>);"
        yield f"static_assert(sizeof({name}) == sizeof(cuda_like::{name}));"
    for name in re.findall(r"^using (\w+) = ", text, re.M):
        ours = f"cuda_like::{name}"
        yield f'static_assert(sizeof({name}) == sizeof({ours}), "{name}");'
        yield (f"static_assert(std::is_pointer_v<{name}> == "
               f'std::is_pointer_v<{ours}>, "{name}");')
    for name in ("CUdevice", "CUdeviceptr", "cuuint64_t"):
        yield (f"static_assert(std::is_unsigned_v<{name}> == "
               f'std::is_unsigned_v<cuda_like::{name}>, "{name}");')


def toolkit():
    """Returns the directory of NVIDIA's headers, or None."""
    homes = [os.environ.get("CUDA_HOME"), "/usr/local/cuda", "/usr"]
    for include in (pathlib.Path(h) / "include" for h in homes if h):
        if all((include / name).is_file()
               for name in ("cuda.h", "nvrtc.h", "cublas_v2.h")):
            return include
    return None


def compiles(source, include):
    return subprocess.run(
        [*COMPILER, "-std=c++17", "-fsyntax-only", "-x", "c++",
         f"-I{DRIVER.parent}", f"-isystem{include}", "-"],
        input=source, text=True, capture_output=True, check=False)


def main():
    include = toolkit()
    if include is None:
        print("no cuda.h: set CUDA_HOME to the directory of NVIDIA's toolkit")
        return SKIPPED
    lines = list(assertions((DRIVER / "types.h").read_text()))
    print(f"{len(lines)} assertions about types, with {include}/cuda.h")
    assert len(lines) > 100, "types.h was not understood"
    source = START + "\n".join(lines) + "\n"
    result = compiles(source, include)
    print(result.stderr)
    if result.returncode != 0:
        return 1
    # The comparison itself must be able to fail.
    for right, wrong in (("size_t * free, size_t * total", "int* free, int* total"),
                         ("CUDA_ERROR_NO_DEVICE = 100", "CUDA_ERROR_NO_DEVICE = 99"),
                         ("int64_t ldc", "int ldc")):
        text = START.replace(
            '#include "driver/functions.h"',
            (DRIVER / "functions.h").read_text().replace(right, wrong))
        types = (DRIVER / "types.h").read_text().replace(right, wrong)
        text = text.replace('#include "driver/types.h"', types)
        text += "\n".join(assertions(types))
        if compiles(text, include).returncode == 0:
            print(f"a change is not detected: {wrong}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
