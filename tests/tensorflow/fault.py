# SPDX-License-Identifier: Apache-2.0
"""Arms faults of cpu_sim in the middle of a run: see FaultControl in
examples/cpu_sim/runtime/fault.h."""

import mmap
import os
import pathlib
import struct

KINDS = ("error", "oom", "throw", "bad_alloc", "unknown")
_FORMAT = "IIII48s"  # armed, kind, after, times, hook


class Faults:
    """Make one before TensorFlow is imported; at most one fault at a time."""

    def __init__(self):
        path = pathlib.Path(os.environ["TFPLUG_SCRATCH"]) / "fault"
        path.write_bytes(bytes(struct.calcsize(_FORMAT)))
        os.environ["CPU_SIM_FAULT_FILE"] = str(path)
        with open(path, "r+b") as file:
            self._page = mmap.mmap(file.fileno(), 0)

    def arm(self, hook, kind="error", after=0, times=1):
        """The next call but `after` of `hook` fails, `times` times."""
        self.disarm()
        body = struct.pack(_FORMAT, 1, KINDS.index(kind), after, times,
                           hook.encode())
        self._page[4:] = body[4:]
        self._page[:4] = body[:4]

    def disarm(self):
        self._page[:4] = bytes(4)

    @property
    def reached(self):
        """Whether the fault has failed all the calls that it should."""
        return self._page[:4] == bytes(4)

    @property
    def after(self):
        """How many calls are still to pass before the fault."""
        return struct.unpack(_FORMAT, self._page[:])[2]
