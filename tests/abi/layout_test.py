# SPDX-License-Identifier: Apache-2.0
"""Compares include/tfplug/abi/ with the headers of a TensorFlow wheel.

Generates a C++ file that includes both (ours are in a namespace) and consists of
static_asserts: every size, offset, field type, enum value, size macro and function
signature of that release. The release passes if this file compiles.

A failure means that codegen/abi_history.json does not describe the ABI of this
TensorFlow: add the release to the history, run codegen/generate.py, and review
every use of the declarations that changed.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "codegen"))

from c_types import CType  # noqa: E402
from model import HANDLES, Model, normal, raw_at, release  # noqa: E402

HEADERS = (
    "c_api.h", "c_api_experimental.h", "kernels.h", "kernels_experimental.h",
    "logging.h", "ops.h", "tf_buffer.h", "tf_status.h", "tf_tensor.h",
    "tf_tstring.h", "experimental/grappler/grappler.h",
    "experimental/pluggable_profiler/pluggable_profiler.h",
    "experimental/stream_executor/stream_executor.h",
    # kernels.h uses its types without including it.
    "../core/common_runtime/next_pluggable_device/c/tf_device_context_c_api.h")

# Maps a type of TensorFlow to our type of the same name, also in pointers, arrays
# and function types. A type that is not mapped matches none of ours.
MAPPING = """
template <class T> struct Ours { using type = T; };
template <class T> using ours = typename Ours<T>::type;
template <class T> struct Ours<const T> { using type = const ours<T>; };
template <class T> struct Ours<T*> { using type = ours<T>*; };
template <class T, std::size_t n> struct Ours<T[n]> {
  using type = ours<T>[n];
};
template <class R, class... A> struct Ours<R(A...)> {
  using type = ours<R>(ours<A>...);
};
template <class R, class... A> struct Ours<R(A..., ...)> {
  using type = ours<R>(ours<A>..., ...);
};
template <class Wheel, class Tfplug>
inline constexpr bool same = std::is_same_v<ours<Wheel>, Tfplug>;
"""


def detect_release(include):
    """Returns the release of a wheel's include directory."""
    for name in ("release_version.h", "version.h"):
        path = include / "tensorflow/core/public" / name
        if path.exists():
            text = path.read_text(encoding="utf-8")
            parts = [re.search(rf"#define TF_{p}_VERSION (\d+)", text)
                     for p in ("MAJOR", "MINOR")]
            if all(parts):
                return ".".join(p.group(1) for p in parts)
    # Newer wheels do not contain the version; take it from pip's metadata.
    for path in include.parent.parent.glob("t*f*-*.dist-info"):
        found = re.match(r"(?:tensorflow|tf_nightly)(?:_cpu)?-(\d+\.\d+)",
                         path.name)
        if found:
            return found.group(1)
    raise SystemExit(f"{include}: unknown release; pass --release")


class LayoutTest:
    """Generates the C++ file for one release."""

    def __init__(self, model, include, tfplug, version):
        self.model, self.version = model, version
        self.include, self.tfplug = include, tfplug
        self.lines, self.checks = [], 0
        self.write()

    def check(self, condition, message):
        self.lines.append(f'static_assert({condition}, "{message}");')
        self.checks += 1

    def text(self):
        return "\n".join(self.lines) + "\n"

    def write(self):
        self.includes()
        self.mapping()
        for struct in self.model.structs.values():
            if struct.at(self.version):
                self.struct(struct)
        for enum in self.model.enums:
            self.enum(enum)
        for function in self.model.functions:
            self.function(function.name, function.at(self.version),
                          function.type)
        for name, raws in self.model.entry_points.items():
            raw = raw_at(raws, self.version)
            self.function(name, raw and CType(normal(raw["type"])), None)

    def includes(self):
        add = self.lines.append
        add("#include <cstddef>\n#include <cstdint>\n#include <type_traits>")
        for header in HEADERS:
            if (self.include / "tensorflow/c" / header).exists():
                add(f'#include "tensorflow/c/{header}"')
        # Our headers define constants with the names of the size macros.
        for macro in self.model.macros:
            if macro.startswith("GO_") or not self.macro_value(macro):
                continue
            add(f"constexpr auto wheel_{macro} = {macro};\n#undef {macro}")
        for path in sorted((self.tfplug / "tfplug/abi").glob("*.h")):
            # These assertions do not need a wheel.
            if path.name != "static_assertions.h":
                add(f'#include "tfplug/abi/{path.name}"')
        for macro in self.model.macros:
            value = self.macro_value(macro)
            if value and not macro.startswith("GO_"):
                self.check(f"wheel_{macro} == {value[0]}",
                           f"{macro} differs from the history")
                if value[1]:
                    self.check(f"wheel_{macro} == tfplug::capi::{macro}",
                               f"{macro} differs from ours")

    def macro_value(self, macro):
        """Returns (value in this release, whether the newest release has it), or None."""
        raws = self.model.macros[macro]
        raw = raw_at(raws, self.version)
        return raw and (raw["value"], raw is raws[-1])

    def mapping(self):
        self.lines.append(MAPPING)
        names = [n for n, s in self.model.structs.items() if s.at(self.version)]
        names += [e.name for e in self.model.enums
                  if e.name and e.at(self.version)]
        names += [n for n in self.model.opaque if self.mentioned(n)]
        names += [f"{h}_st" for h in HANDLES]
        for name in names:
            self.lines.append(f"template <> struct Ours<::{name}> "
                              f"{{ using type = tfplug::capi::{name}; }};")

    def mentioned(self, name):
        layouts = (s.at(self.version) for s in self.model.structs.values())
        types = [field.type for layout in layouts if layout
                 for field in layout.fields]
        types += [f.at(self.version) for f in self.model.functions
                  if f.at(self.version)]
        return any(name in t.identifiers() for t in types)

    def struct(self, struct):
        layout = struct.at(self.version)
        name = struct.name
        mine = name
        if not struct.is_prefix(layout):
            mine = f"{name}_{layout.suffix}"
        mine = f"tfplug::capi::{mine}"
        self.check(f"sizeof(::{name}) == {layout.sizeof}",
                   f"sizeof({name}) differs from the history")
        if layout is struct.newest or not struct.is_prefix(layout):
            self.check(f"sizeof(::{name}) == sizeof({mine})",
                       f"sizeof({name}) differs from ours")
        for field in layout.fields:
            where = f"{name}::{field.name}"
            for other, whose in ((str(field.offset), "the history"),
                                 (f"offsetof({mine}, {field.name})", "ours")):
                self.check(f"offsetof(::{name}, {field.name}) == {other}",
                           f"the offset of {where} differs from {whose}")
            members = ([f"{field.name}.{n}" for _, n in field.union]
                       if field.union else [field.name])
            for member in members:
                # A member of a union needs an object.
                access = "::" if member == field.name else "{}."
                self.check(f"same<decltype(::{name}{access}{member}), "
                           f"decltype({mine}{access}{member})>",
                           f"the type of {name}::{member} differs from ours")

    def enum(self, enum):
        values = enum.at(self.version)
        for name, value in values.items():
            self.check(f"static_cast<int>(::{name}) == {value}",
                       f"{name} differs from the history")
            self.check(f"static_cast<int>(tfplug::capi::{name}) == {value}",
                       f"our {name} is wrong")
        if enum.name and values:
            # With -Werror=switch, an unknown enumerator is an error.
            cases = " ".join(f"case ::{n}:" for n in
                             {v: n for n, v in values.items()}.values())
            self.lines.append(
                f"inline int all_of_{enum.name}(::{enum.name} value) "
                f"{{ switch (value) {{ {cases} return 0; }} return 1; }}")

    def function(self, name, declared, newest):
        if declared is None:
            return
        if newest and declared.canonical() == newest.canonical():
            self.check("std::is_same_v<decltype(tfplug::capi::Functions::"
                       f"{name}), ours<decltype(::{name})>*>",
                       f"the signature of {name} differs from ours")
        self.lines.append(f"namespace tfplug::capi {{ using declared_{name} = "
                          f"{declared.declare('')}; }}")
        self.check(f"same<decltype(::{name}), tfplug::capi::declared_{name}>",
                   f"the signature of {name} differs from the history")


def compile_text(text, include, tfplug, compiler):
    """Compiles `text` and returns the errors."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "layout_test.cc"
        source.write_text(text, encoding="utf-8")
        run = subprocess.run(
            [compiler, "-std=c++17", "-fsyntax-only", "-Werror=switch",
             "-Wno-invalid-offsetof", "-isystem", str(include),
             "-I", str(tfplug), str(source)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False)
    if run.returncode == 0:
        return []
    lines = [re.sub(r"^\S*?([\w.]+:\d+):\d+: ", r"\1: ", line)
             for line in run.stdout.splitlines() if "error:" in line]
    return lines or [run.stdout or "the compiler failed without a message"]


def run(include, version=None, tfplug=ROOT / "include", compiler="g++"):
    """Returns the release, the LayoutTest and the compiler's errors."""
    include = pathlib.Path(include).resolve()
    version = release(version) if version else detect_release(include)
    model = Model(ROOT / "codegen/abi_history.json")
    known = [release(v) for v in model.versions]
    if version not in known:
        print(f"{version} is not in codegen/abi_history.json; comparing with "
              f"{known[-1]}, the newest there")
        version = known[-1]
    tfplug = pathlib.Path(tfplug).resolve()
    test = LayoutTest(model, include, tfplug, version)
    return version, test, compile_text(test.text(), include, tfplug, compiler)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--include", required=True,
                        help="the wheel's tensorflow/include directory")
    parser.add_argument("--release",
                        help="such as 2.21; detected by default")
    parser.add_argument("--tfplug", default=ROOT / "include",
                        help="the directory of our headers")
    parser.add_argument("--cxx", default="g++", help="the compiler")
    parser.add_argument("--write", help="also write the C++ file here")
    args = parser.parse_args()
    version, test, complaints = run(args.include, args.release, args.tfplug,
                                    args.cxx)
    if args.write:
        pathlib.Path(args.write).write_text(test.text(), encoding="utf-8")
    if complaints:
        print("\n".join(complaints))
        print(f"\nTensorFlow {version}: {len(complaints)} error(s) in "
              f"{test.checks} checks. If the release is new, add it to "
              "codegen/abi_history.json and run: python3 codegen/generate.py")
        return 1
    print(f"TensorFlow {version}: {test.checks} checks of layout, enums and "
          "signatures passed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
