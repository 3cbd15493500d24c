# SPDX-License-Identifier: Apache-2.0
"""Finds the error messages in the headers.

A message is the text of an absl::…Error(…), of a LogError(…) or LogWarning(…),
or of a static_assert, or an entry of the lists of mistakes that a macro asserts,
that begins with "tfplug: ". Every part that is not a string literal becomes an
ellipsis.
"""

import dataclasses
import re

# Skips comments and character literals, finds strings and the calls above.
_TOKEN = re.compile(r"""
    //[^\n]* | /\*.*?\*/ | '(?:\\.|[^'\\\n])+'
  | (?P<string>"(?:\\.|[^"\\\n])*")
  | (?P<call>\babsl::(?P<code>\w+)Error\( | \b(?P<log>LogError|LogWarning)\(
           | \bstatic_assert\( | \bX\( | \bTFPLUG_INTERNAL_REFUSE\w*\()
  | (?P<open>\babsl::StrCat\( | [(\[{]) | (?P<close>[)\]}]) | (?P<comma>,)
  | (?P<space>(?:\s|\\\n)+) | (?P<other>\+|[\w:.*&>!=<?-]+|.)
""", re.X | re.S)


@dataclasses.dataclass(frozen=True)
class Message:
    text: str    # "the struct … has … bytes"
    kind: str    # "InvalidArgument", "log" or "compile time"
    header: str  # "device/stream.h"
    offset: int  # of the call in the header


def _unescape(literal):
    return literal[1:-1].replace('\\"', '"').replace("\\n", " ").replace(
        "\\\\", "\\")


def _join(parts):
    """Returns the text of an argument list; `parts`: literals, or None for other
    expressions."""
    text = ""
    for part in parts:
        if part is None:
            text += "" if text.endswith("…") else "…"
        else:
            text += part
    return re.sub(r"\s+", " ", text).strip()


def find_messages(source, header):
    """Returns the messages of one header, in order."""
    found = []
    calls = []  # [kind, depth, parts, offset]
    depth = 0
    for token in _TOKEN.finditer(source):
        if token["call"]:
            depth += 1
            kind = token["code"] or ("log" if token["log"] else "compile time")
            calls.append([kind, depth, [], token.start()])
        elif token["open"]:
            depth += 1
        elif token["close"]:
            if calls and calls[-1][1] == depth:
                kind, _, parts, offset = calls.pop()
                message = Message(_join(parts), kind, header, offset)
                if _is_message(message):
                    found.append(message)
                if calls:
                    calls[-1][2].append(None)
            depth -= 1
        elif calls:
            call = calls[-1]
            if token["comma"] and call[1] == depth:
                # Only the last argument of a log or an assertion is the text.
                if call[0] in ("log", "compile time"):
                    call[2] = []
            elif token["string"]:
                if call[2] and call[2][-1] is not None:
                    call[2][-1] += _unescape(token["string"])
                else:
                    call[2].append(_unescape(token["string"]))
            elif token["other"] and token["other"] != "+":
                call[2].append(None)
    return found


def _is_message(message):
    if not re.search(r"[a-z]{3}", message.text):
        return False
    return message.kind != "compile time" or message.text.startswith("tfplug: ")
