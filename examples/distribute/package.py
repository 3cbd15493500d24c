# SPDX-License-Identifier: Apache-2.0
"""Finds tfplug.distribute: that of the installed package, or of this source tree."""

import importlib
import importlib.util
import pathlib
import sys
import types

_SOURCES = pathlib.Path(__file__).resolve().parents[2] / "packaging/python"


def distribute():
    """Returns the module tfplug.distribute."""
    if "tfplug" not in sys.modules and importlib.util.find_spec("tfplug") is None:
        package = types.ModuleType("tfplug")  # __init__.py needs the installed one
        package.__path__ = [str(_SOURCES)]
        sys.modules["tfplug"] = package
    return importlib.import_module("tfplug.distribute")
