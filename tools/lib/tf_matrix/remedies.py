# SPDX-License-Identifier: Apache-2.0
"""Whether an error message is one of tfplug's and names a remedy."""

import functools
import pathlib
import re

ERRORS = pathlib.Path(__file__).resolve().parents[3] / "docs/reference/errors.md"

# An imperative at the beginning of a clause, or an alternative.
REMEDY = re.compile(
    r"(^|[.;:,(] *|\bor |\bthen )(add|align|build|call|define|give|implement|install|keep|"
    r"leave|load|make|name|pass|provide|rebuild|register|remove|return|set|use)\b|"
    r"instead of", re.IGNORECASE)


CPU_SIM = "is not implemented on this device; use NHWC"


@functools.lru_cache(maxsize=None)
def remedies():
    """Returns the parts with a remedy of the messages in docs/reference/errors.md,
    where an ellipsis stands for the variable parts of a message."""
    found = {CPU_SIM}
    for line in ERRORS.read_text(encoding="utf-8").splitlines():
        if line.startswith("| ") and line.count(" | ") >= 2:
            message = re.sub(r"\\(.)", r"\1", line[2:].rsplit(" | ", 2)[0])
            found.update(part for part in message.split("\u2026")
                         if len(part) >= 20 and REMEDY.search(part))
    return sorted(found)


def names_remedy(message):
    """Returns whether the message contains a remedy of tfplug or cpu_sim."""
    return any(remedy in message for remedy in remedies())
