# SPDX-License-Identifier: Apache-2.0
"""The plug-ins that are installed in this Python environment."""

import os
import sysconfig

# The directories where TensorFlow looks for plug-ins.
DIRECTORIES = {os.path.join(sysconfig.get_path(name), "tensorflow-plugins")
               for name in ("purelib", "platlib")}


def hide():
    """Keeps TensorFlow from loading these plug-ins when it is imported. (It has no
    option for that.)"""
    exists = os.path.exists
    os.path.exists = lambda path: path not in DIRECTORIES and exists(path)
