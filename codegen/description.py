# SPDX-License-Identifier: Apache-2.0
"""Reads device_api.ini or graph_api.ini and validates it against the ABI model."""

import configparser
import re

KEYS = ("by", "required", "hook", "default", "thread", "failure", "contract")


def _minor(version):
    return int(version.split(".")[1])


class Description:
    def __init__(self, entries, threads):
        self._entries, self.threads = entries, threads

    def merged_with(self, other):
        return Description(self._entries | other._entries,
                           self.threads | other.threads)

    def structs(self):
        return [n for n in self._entries if "." not in n]

    def fields(self):
        """Returns (struct, field) of every described field."""
        return [tuple(n.split(".")) for n in self._entries if "." in n]

    def get(self, name, default=None):
        return self._entries.get(name, default)

    def is_required(self, name, version):
        """Returns whether TensorFlow `version` rejects a plug-in whose field is null."""
        text = self._entries[name]["required"]
        if self._entries[name]["by"] != "plug-in":
            return False
        until = re.match(r"until (\d+\.\d+)", text)
        since = re.match(r"yes, from (\d+\.\d+)", text)
        if until:
            return _minor(version) <= _minor(until.group(1))
        if since:
            return _minor(version) >= _minor(since.group(1))
        return text.startswith(("yes", "where"))

    def filled(self, name):
        """Returns when tfplug sets a pointer that the plug-in fills: "always",
        "if overridden" or "never"."""
        entry = self._entries[name]
        if not entry["default"].startswith("null"):
            return "always"
        return ("never" if entry["hook"].startswith("none") else
                "if overridden")


def read_description(path, model):
    """Returns the description; exits with a list of its gaps and errors."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",),
                                       comment_prefixes=("#",))
    parser.optionxform = str
    with open(path, encoding="utf-8") as file:
        parser.read_file(file)
    entries, errors = {}, []
    given = {s: {k: " ".join(v.split()) for k, v in parser[s].items()}
             for s in parser.sections()}
    threads = given.pop("threads")
    described = [s for s in given if "." not in s]
    for name in described:
        if name not in model.structs:
            errors.append(f"[{name}]: the ABI has no such struct")
            continue
        entries[name] = given.pop(name)
        defaults = {k: v for k, v in entries[name].items() if k != "about"}
        for field in model.structs[name].newest.fields:
            own = f"{name}.{field.name}"
            entry = given.pop(own, None)
            if entry is not None:
                entry = defaults | entry
            else:
                entry = given.get(f"*.{field.name}")
            if entry is None:
                errors.append(f"[{own}]: missing")
                continue
            errors += [f"[{own}]: no `{k}`" for k in KEYS if not entry.get(k)]
            errors += [f"[{own}]: unknown key `{k}`" for k in entry
                       if k not in KEYS]
            entries[own] = entry | {"hook": entry.get("hook", "").replace(
                "{field}", field.name)}
    errors += [f"[{s}]: the ABI has nothing of that name" for s in given
               if not s.startswith("*.")]
    if errors:
        raise SystemExit(f"{path.name}:\n  " + "\n  ".join(errors))
    return Description(entries, threads)
