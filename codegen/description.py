# SPDX-License-Identifier: Apache-2.0
"""Reads device_api.ini or graph_api.ini and checks it against the model."""

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
        """(struct, field) of everything described."""
        return [tuple(n.split(".")) for n in self._entries if "." in n]

    def get(self, name, default=None):
        return self._entries.get(name, default)

    def is_required(self, name, version):
        """Whether core of `version` refuses a plug-in that leaves it null."""
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


def read_description(path, model):
    """The description; exits with what is missing or unknown in it."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",),
                                       comment_prefixes=("#",))
    parser.optionxform = str
    with open(path, encoding="utf-8") as file:
        parser.read_file(file)
    entries, wrong = {}, []
    given = {s: {k: " ".join(v.split()) for k, v in parser[s].items()}
             for s in parser.sections()}
    threads = given.pop("threads")
    described = [s for s in given if "." not in s]
    for name in described:
        if name not in model.structs:
            wrong.append(f"[{name}]: the ABI has no such struct")
            continue
        entries[name] = given.pop(name)
        for field in model.structs[name].newest.fields:
            own = f"{name}.{field.name}"
            entry = given.pop(own, None) or given.get(f"*.{field.name}")
            if entry is None:
                wrong.append(f"[{own}]: missing")
                continue
            wrong += [f"[{own}]: no `{k}`" for k in KEYS if not entry.get(k)]
            wrong += [f"[{own}]: unknown key `{k}`" for k in entry
                      if k not in KEYS]
            entries[own] = entry
    wrong += [f"[{s}]: nothing of that name in the ABI" for s in given
              if not s.startswith("*.")]
    if wrong:
        raise SystemExit(f"{path.name}:\n  " + "\n  ".join(wrong))
    return Description(entries, threads)
