# SPDX-License-Identifier: Apache-2.0
"""Runs a Python command under TensorFlow's profiler, without changes to it.

  child.py SETTINGS COMMAND...   SETTINGS: JSON, see main.py
"""

import importlib.util
import json
import os
import runpy
import shutil
import sys
import threading


class Recording:
    """A profile of this process, which starts when TensorFlow has been imported."""

    def __init__(self, settings):
        self._settings = settings
        self._lock = threading.Lock()
        self._state = "new"

    def begin(self):
        """Loads the plug-in and starts the profile, now or after a while."""
        if self._settings["plugin"]:
            from tensorflow.python.framework import load_library
            load_library.load_pluggable_device_library(self._settings["plugin"])
        if self._settings["after"]:
            self._later(self._settings["after"], self._start)
        else:
            self._start()

    def _start(self):
        import tensorflow as tf
        with self._lock:
            if self._state != "new":
                return
            tf.profiler.experimental.start(self._settings["folder"])
            self._state = "running"
        if self._settings["seconds"]:
            self._later(self._settings["seconds"], self.end)

    def end(self):
        """Stops the profile and writes it; does nothing if it does not run."""
        import tensorflow as tf
        with self._lock:
            if self._state == "running":
                tf.profiler.experimental.stop()
            self._state = "ended"

    @staticmethod
    def _later(seconds, function):
        timer = threading.Timer(seconds, function)
        timer.daemon = True
        timer.start()


class _AfterTensorFlow:
    """Calls a function when the package tensorflow has been imported."""

    def __init__(self, function):
        self._function = function

    def find_spec(self, name, path=None, target=None):
        del path, target
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            execute = spec.loader.exec_module

            def then(module):
                execute(module)
                self._function()
            spec.loader.exec_module = then
        return spec


def _run(command):
    """Runs `SCRIPT ARGUMENT...`, `-m MODULE ...` or `-c CODE ...` as Python would."""
    first, *rest = command
    if first == "-m":
        sys.argv = rest
        sys.path[0] = os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path[0] = ""
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        script = first if os.path.exists(first) else shutil.which(first) or first
        sys.argv = [script, *rest]
        sys.path[0] = os.path.dirname(os.path.abspath(script))
        runpy.run_path(script, run_name="__main__")


def main():
    recording = Recording(json.loads(sys.argv[1]))
    sys.meta_path.insert(0, _AfterTensorFlow(recording.begin))
    try:
        _run(sys.argv[2:])
    finally:
        if "tensorflow" in sys.modules:
            recording.end()


if __name__ == "__main__":
    main()
