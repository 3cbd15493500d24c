# SPDX-License-Identifier: Apache-2.0
"""TensorFlow plug-ins as C++ classes: where the headers and build files are."""

import importlib.metadata
import pathlib

__version__ = importlib.metadata.version("tfplug")

_ROOT = pathlib.Path(__file__).resolve().parent


def get_include():
    """Returns the directory that contains tfplug/plugin.h."""
    return str(_ROOT / "include")


def get_cmake_dir():
    """Returns the directory of tfplugConfig.cmake."""
    return str(_ROOT / "share/cmake/tfplug")


def get_pkgconfig_dir():
    """Returns the directory of tfplug.pc and tfplug-plugin.pc."""
    return str(_ROOT / "share/pkgconfig")
