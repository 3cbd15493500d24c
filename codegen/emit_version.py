# SPDX-License-Identifier: Apache-2.0
"""Generates include/tfplug/base/version.h from the version in meson.build."""

import pathlib
import re
import string

_TEMPLATE = pathlib.Path(__file__).parent / "templates/version.h.in"


def version(meson_build):
    text = re.search(r"^  version: '([0-9]+\.[0-9]+\.[0-9]+)'",
                     meson_build.read_text(encoding="utf-8"), re.M).group(1)
    major, minor, patch = map(int, text.split("."))
    return string.Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        version=text, number=10000 * major + 100 * minor + patch)
