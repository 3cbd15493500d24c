# SPDX-License-Identifier: Apache-2.0
"""The model of the ABI for the emitters: read from the history and validated."""

import json
import re

from c_types import CType

# Entry points, which a plug-in defines and TensorFlow calls.
ENTRY_POINTS = ("SE_InitPlugin", "TF_InitGraph", "TF_InitKernel",
                "TF_InitProfiler")

# Function types that the history names but does not define.
CALLBACKS = {
    "SE_StatusCallbackFn": "void (*)(void *const, TF_Status *const)",
    "TF_PayloadVisitor": "void (*)(const char *, const char *, void *)",
    "tstring_owner_ref_t": "void (*)(TStringOwnerCApi *)",
    "tstring_owner_unref_t": "bool (*)(TStringOwnerCApi *)",
}
HANDLES = ("SP_Stream", "SP_Event", "SP_Timer")

# Enums that became an alias of another library's enum, which the history does
# not contain.
_RENAMED = ("TF_Code",)

# Structs that share one header, because they belong together.
_HEADER_OF = {name: "tf_tstring" for name in (
    "TStringOwnerCApi", "TF_TString", "TF_TString_Large", "TF_TString_Offset",
    "TF_TString_Raw", "TF_TString_Small", "TF_TString_View")}
_HEADER_OF.update((name, "tf_rendezvous") for name in (
    "TFDevice_AllocatorAttributes", "TF_DeviceContext",
    "TF_RendezvousArgsStruct", "TF_RendezvousAsyncRecv_Params",
    "TF_RendezvousDoneCallbackImpl", "TF_RendezvousDoneCallback_Params",
    "TF_RendezvousParsedKey", "TF_RendezvousSend_Params",
    "TF_RendezvousThunk"))

# The members of the one anonymous union.
_UNIONS = {("TF_TString", "u"): (
    ("TF_TString_Small", "smll"), ("TF_TString_Large", "large"),
    ("TF_TString_Offset", "offset"), ("TF_TString_View", "view"),
    ("TF_TString_Raw", "raw"))}

_SIZE_MACROS = {"SP_AllocatorStats": "SP_ALLOCATORSTATS_STRUCT_SIZE",
                "SP_StreamExecutor": "SP_STREAMEXECUTOR_STRUCT_SIZE",
                "TF_InputRange_Args": "TF_InputRange_Args_STRUCT_SIZE"}


def release(version):
    """Returns '2.10' for '2.10.1'."""
    return ".".join(version.split(".")[:2])


def snake(name):
    """Returns 'sp_stream_executor' for 'SP_StreamExecutor'."""
    parts = []
    for part in name.split("_"):
        parts += re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+", part)
    return "_".join(parts).lower()


def normal(text):
    """Translates a type of the history to the names in our headers."""
    text = text.replace("unsigned char", "TF_Bool")
    return text.replace("TSL_PayloadVisitor", "TF_PayloadVisitor")


class Field:
    def __init__(self, struct, raw):
        self.name, self.offset, self.size, text = raw
        self.union = _UNIONS.get((struct, self.name))
        self.type = CType(normal(text))


class Layout:
    """A layout of a struct in a range of releases."""

    def __init__(self, struct, raw, struct_size):
        self.since, self.until = release(raw["since"]), release(raw["until"])
        self.sizeof = raw["size"]
        self.struct_size = struct_size
        self.fields = [Field(struct, f) for f in raw["fields"]]
        self.suffix = self.since.replace(".", "_")

    def key(self):
        return [(f.name, f.offset, f.type.text) for f in self.fields]


class Struct:
    def __init__(self, name, raws, macros):
        self.name = name
        macro = _SIZE_MACROS.get(name, snake(name).upper() + "_STRUCT_SIZE")
        self.size_macro = macro if macro in macros else None
        self.layouts = []
        for raw in raws:
            size = _value_at(macros, macro, raw["since"]) or raw["size"]
            self.layouts.append(Layout(name, raw, size))
        self.header = _HEADER_OF.get(name, snake(name))

    @property
    def newest(self):
        return self.layouts[-1]

    def at(self, version):
        """Returns the layout in `version`, or None if it lacks the struct."""
        for layout in self.layouts:
            if _order(layout.since) <= _order(version) <= _order(layout.until):
                return layout
        return None

    def is_prefix(self, layout):
        """Returns whether the newest layout begins with `layout`."""
        return self.newest.key()[:len(layout.fields)] == layout.key()

    def field_since(self, name):
        for layout in self.layouts:
            if any(f.name == name for f in layout.fields):
                return layout.since
        raise KeyError(name)


class Enum:
    def __init__(self, name, raws):
        self.name = None if "unnamed" in name else name
        self.values = raws[-1]["values"]
        self.raws = raws

    def at(self, version):
        """Returns the values in `version`; empty if it lacks the enum."""
        if self.name in _RENAMED:
            return self.values
        raw = raw_at(self.raws, version)
        return raw["values"] if raw else {}


class Function:
    """A function that TensorFlow exports; `since`..`last` are the releases whose
    libraries export it, except those in `gap`, a pair or None."""

    def __init__(self, name, raws, exports, newest):
        self.name, self.header, self.raws = name, raws[-1]["header"], raws
        self.type = CType(normal(raws[-1]["type"]))
        self.exports = [(release(e["since"]), release(e["until"]),
                         e["libraries"]) for e in exports if e["libraries"]]
        self.since, self.last = self.exports[0][0], self.exports[-1][1]
        if self.last == release(newest):
            self.last = None
        self.gap = None  # Set by Model, which knows the releases.
        # Earlier types that differ by more than const: (type, since, until).
        self.old_types = []
        for raw in raws[:-1]:
            kind = CType(normal(raw["type"]))
            if _unqualified(kind) != _unqualified(self.type):
                self.old_types.append((kind, release(raw["since"]),
                                       release(raw["until"])))

    def at(self, version):
        """Returns the type that `version` declares, or None."""
        raw = raw_at(self.raws, version)
        return CType(normal(raw["type"])) if raw else None

    def spans(self):
        """Returns the ranges of releases that export the function, as pairs; the
        last ends with None if the newest release has it."""
        if not self.gap:
            return [(self.since, self.last)]
        before = max((u for _, u, _ in self.exports
                      if _order(u) < _order(self.gap[0])), key=_order)
        after = min((s for s, _, _ in self.exports
                     if _order(s) > _order(self.gap[1])), key=_order)
        return [(self.since, before), (after, self.last)]

    def exported(self, version):
        """Returns the libraries of `version` that export the function."""
        for since, until, libraries in self.exports:
            if _order(since) <= _order(version) <= _order(until):
                return libraries
        return []


def _unqualified(kind):
    return re.sub(r"\bconst\b|\s", "", kind.spell())


def raw_at(raws, version):
    """Returns the entry of the history for `version`, or None."""
    for raw in raws:
        if _order(raw["since"]) <= _order(version) <= _order(raw["until"]):
            return raw
    return None


def _value_at(macros, macro, version):
    raw = raw_at(macros.get(macro, ()), version)
    return raw["value"] if raw else None


def _order(version):
    return [int(p) for p in re.findall(r"\d+", version)[:2]]


class Model:
    def __init__(self, history_path):
        with open(history_path, encoding="utf-8") as file:
            history = json.load(file)
        self.versions = history["versions"]
        self.newest = release(self.versions[-1])
        macros = history["macros"]
        self.structs = {n: Struct(n, r, macros)
                        for n, r in sorted(history["structs"].items())}
        self.enums = [Enum(n, r) for n, r in sorted(history["enums"].items())]
        self.versions_macros = {
            n: r[-1]["value"] for n, r in sorted(macros.items())
            if n.endswith(("_MAJOR", "_MINOR", "_PATCH"))}
        self.functions = [
            Function(n, r, history["exported_by"][n], self.versions[-1])
            for n, r in sorted(history["functions"].items())
            if n not in ENTRY_POINTS]
        # A plug-in defines these; no library of TensorFlow exports them.
        self.entry_points = {n: history["functions"][n] for n in ENTRY_POINTS}
        self.macros = macros
        self._find_gaps()
        self.opaque = self._opaque()

    def _find_gaps(self):
        names = [release(v) for v in self.versions]
        for function in self.functions:
            have = set()
            for since, until, _ in function.exports:
                have.update(range(names.index(since), names.index(until) + 1))
            lack = sorted(set(range(min(have), max(have) + 1)) - have)
            if not lack:
                continue
            if function.last or lack != list(range(lack[0], lack[-1] + 1)):
                raise SystemExit(
                    f"the releases that export {function.name} have two gaps, of "
                    "which FunctionReleases in codegen/templates/"
                    "function_info.h.in can represent only one")
            function.gap = names[lack[0]], names[lack[-1]]

    def _opaque(self):
        """Returns the types that are used but have no definition."""
        used = set()
        for struct in self.structs.values():
            for field in struct.newest.fields:
                used |= field.type.identifiers()
        for function in self.functions:
            used |= function.type.identifiers()
        known = set(self.structs) | {e.name for e in self.enums}
        known |= set(HANDLES) | set(CALLBACKS) | {"TF_Bool"}
        return sorted(n for n in used - known
                      if n.startswith(("TF_", "TFE_")))

    def enum_names(self):
        return {e.name for e in self.enums if e.name}
