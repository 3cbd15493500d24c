# SPDX-License-Identifier: Apache-2.0
"""The plug-ins that tools/distribute runs, all on this machine's processor."""

import dataclasses
import os
import pathlib

BUILD = pathlib.Path(os.environ.get("TFPLUG_BUILD") or
                     pathlib.Path(__file__).resolve().parents[3] / "build/gcc")


@dataclasses.dataclass(frozen=True)
class Plugin:
    """One of the examples."""

    name: str
    type: str  # of its devices

    @property
    def path(self):
        return BUILD / f"examples/{self.name}/libtfplug_{self.name}.so"

    def environment(self, devices):
        """Returns the variables with which a process has `devices` devices."""
        result = {"TFPLUG_TEST_TYPE": self.type, "TFPLUG_CPU_SIM": str(self.path),
                  "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(self.path)}
        if self.name == "cpu_sim":
            # Threads of several processes would only wait for each other.
            result.update(CPU_SIM_DEVICES=str(devices), CPU_SIM_THREADS="1")
        elif self.name == "cuda_like":
            result.update(CUDA_LIKE_DEVICES=str(devices), CUDA_LIKE_DRIVER=str(
                BUILD / "examples/cuda_like/libcuda_like.so"))
        elif self.name == "opencl":
            # PoCL has as many devices as it is told to.
            result.update(POCL_DEVICES=" ".join(["pthread"] * devices))
        return result


PLUGINS = {each.name: each for each in (
    Plugin("cpu_sim", "SIM"), Plugin("opencl", "OPENCL"),
    Plugin("cuda_like", "CUDA_LIKE"))}
