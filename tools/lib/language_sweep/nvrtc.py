# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's compiler NVRTC, which needs no GPU."""

import ctypes
import os
import pathlib
import sysconfig

# As examples/cuda_like/driver/driver.cc.
OPTIONS = ("--fmad=false", "--std=c++17", "-default-device")
_OLD_ARCHITECTURES = (75, 90)


def find_library():
    """Returns the path of libnvrtc.so of the package nvidia-cuda-nvrtc, in this
    environment or in TFPLUG_VENV, or of CUDA_HOME; or None."""
    sites = [pathlib.Path(sysconfig.get_path("purelib")),
             *pathlib.Path(os.environ.get("TFPLUG_VENV", "/none")).glob(
                 "lib/python3*/site-packages")]
    folders = [site / "nvidia" / name for site in sites
               for name in ("cu13/lib", "cuda_nvrtc/lib")]
    folders.append(pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "lib64")
    return next((p for f in folders for p in f.glob("libnvrtc.so.1?")), None)


class Nvrtc:
    """The compiler in a library."""

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

    def refusals(self, source):
        """Returns the messages for each architecture whose compilation fails."""
        results = [(each, *self.compile(source, each)) for each in self.architectures]
        return [f"sm_{each}: {log}" for each, size, log in results if size == 0]
