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
    """Controls the fault of this process; at most one is armed at a time.

    Construct it before TensorFlow is imported."""

    def __init__(self):
        path = pathlib.Path(os.environ["TFPLUG_SCRATCH"]) / "fault"
        path.write_bytes(bytes(struct.calcsize(_FORMAT)))
        os.environ["CPU_SIM_FAULT_FILE"] = str(path)
        with open(path, "r+b") as file:
            self._page = mmap.mmap(file.fileno(), 0)

    def arm(self, hook, kind="error", after=0, times=1):
        """Lets `after` calls of `hook` pass, then fails the next `times` calls."""
        self.disarm()
        body = struct.pack(_FORMAT, 1, KINDS.index(kind), after, times,
                           hook.encode())
        self._page[4:] = body[4:]
        self._page[:4] = body[:4]

    def disarm(self):
        self._page[:4] = bytes(4)

    @property
    def reached(self):
        """True once all `times` calls have failed."""
        return self._page[:4] == bytes(4)

    @property
    def after(self):
        """The number of calls that still pass before the first one fails."""
        return struct.unpack(_FORMAT, self._page[:])[2]
