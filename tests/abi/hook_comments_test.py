# SPDX-License-Identifier: Apache-2.0
"""Checks the comments of the hooks against the description of the C API.

  hook_comments_test.py [ROOT]

codegen/device_api.ini and graph_api.ini describe each C field and name its
hook. The comment of that hook in the author's class must name the C field, and
must agree about the default and the thread.
"""

import pathlib
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "codegen"))

from description import read_description  # noqa: E402
from model import Model  # noqa: E402

# The headers with the author's classes, and with the explanation of the threads.
CLASSES = {
    "Allocator": "device/allocator.h",
    "Device": "device/device.h",
    "Event": "device/event.h",
    "Platform": "device/platform.h",
    "Stream": "device/stream.h",
    "Timer": "device/timer.h",
    "GraphPass": "graph/graph_pass.h",
}
OPTIONS = {
    "AllocatorStats": "device/allocator.h",
    "PlatformOptions": "device/platform.h",
    "StreamOptions": "device/stream.h",
    "OptimizerSettings": "graph/optimizer_settings.h",
}
LEGEND = "device.h"
# Hooks that tfplug calls for its own profiles.
WITHOUT_FIELD = {("Device", "GetTime"), ("Timer", "GetTimes")}


def plain(comment):
    """Returns a comment's text in one line."""
    return " ".join(re.sub(r"^\s*//", "", line) for line in
                    comment.splitlines()).strip()


def squeezed(text):
    return " ".join(text.split())


class Hook:
    def __init__(self, comment, declaration):
        self.comment = squeezed(plain(comment))
        self.is_pure = bool(re.search(r"= 0;", declaration))

    def value(self, key):
        """Returns the text of `Key: text.` in the comment, or None if it has none."""
        match = re.search(rf"\b{key}: (.*?)\.(?: |$)", self.comment)
        return match.group(1) if match else None


def parse_class(text, name):
    """Returns (comment of the class, {hook: Hook}). A comment applies to all hooks
    that follow it without a blank line."""
    match = re.search(rf"((?:^//[^\n]*\n)+)(?:template[^\n]*\n)?class {name}\b",
                      text, re.M)
    end = text.index("\n};", match.end())
    hooks, comment, declaration, comment_goes_on = {}, "", "", False
    for line in text[match.end():end].splitlines():
        stripped = line.strip()
        if not stripped:
            comment = ""
        elif line.startswith("  //"):
            comment = (comment if comment_goes_on else "") + stripped + "\n"
        elif line.startswith("  virtual ") or declaration:
            declaration += stripped + " "
            if re.search(r"[;{]$", stripped) or stripped.endswith("}"):
                found = re.search(r"(\w+)\(", declaration)
                if found and "~" not in declaration:
                    hooks[found.group(1)] = Hook(comment, declaration)
                declaration = ""
        comment_goes_on = line.startswith("  //")
    return squeezed(plain(match.group(1))), hooks


def check(root):
    """Returns a list of disagreements."""
    include = root / "include/tfplug"
    model = Model(ROOT / "codegen/abi_history.json")
    device = read_description(root / "codegen/device_api.ini", model)
    graph = read_description(root / "codegen/graph_api.ini", model)
    classes = {name: parse_class((include / header).read_text(), name)
               for name, header in CLASSES.items()}
    errors, described = [], set()
    both = device.merged_with(graph)
    for struct, field in both.fields():
        entry = both.get(f"{struct}.{field}")
        for class_name, hook_name in re.findall(r"\b(\w+)::(\w+)",
                                                entry["hook"]):
            where = f"{struct}.{field}: {class_name}::{hook_name}"
            if class_name in OPTIONS and not entry["hook"].startswith("none"):
                errors += check_option(include, where, class_name, hook_name,
                                       entry["default"])
            elif class_name in classes:
                errors += check_hook(classes[class_name], where, class_name,
                                     hook_name, field, entry)
                described.add((class_name, hook_name))
    for name, (_, hooks) in classes.items():
        errors += [f"{name}::{hook}: no field in the description names it"
                   for hook in hooks
                   if (name, hook) not in described | WITHOUT_FIELD]
    errors += check_legend((include / LEGEND).read_text(), device.threads)
    return errors


def check_hook(parsed, where, class_name, hook_name, field, entry):
    class_comment, hooks = parsed
    if hook_name in ("kName", "kType"):
        ok = re.search(rf"{hook_name}\[\]", class_comment)
        return [] if ok else [f"{where}: the class's comment lacks it"]
    hook = hooks.get(hook_name)
    if hook is None:
        return [f"{where}: {class_name} has no such hook"]
    if entry["hook"] != f"{class_name}::{hook_name}":
        return []  # Several hooks, or text around the hook, describe the field.
    errors = []
    if not re.search(rf"\b{field}\b", hook.comment.split(":")[0]):
        errors.append(f"{where}: its comment does not begin with the C field")
    is_pure = entry["default"].startswith("none: pure virtual")
    if is_pure != hook.is_pure:
        errors.append(f"{where}: pure virtual only in the header or only in the "
                      "description")
    if not is_pure and hook.value("Default") != entry["default"]:
        errors.append(f"{where}: its comment has the default "
                      f"{hook.value('Default')!r}, the description has "
                      f"{entry['default']!r}")
    of_class = re.search(r"Threads: (first use|\w+)", class_comment)
    thread = hook.value("Thread") or (of_class and of_class.group(1))
    if class_name == "GraphPass":  # Its class comment describes the thread.
        return errors
    if thread != entry["thread"]:
        errors.append(f"{where}: its comment has the thread {thread!r}, the "
                      f"description has {entry['thread']!r}")
    return errors


def check_option(include, where, struct, member, default):
    text = (include / OPTIONS[struct]).read_text()
    body = re.search(rf"^struct {struct} {{\n(.*?)^}};", text, re.M | re.S)
    found = re.search(rf"^  [\w:<>]+ {member}(?: = ([\w:]+))?;", body.group(1),
                      re.M)
    if not found:
        return [f"{where}: {struct} has no such member"]
    value = (found.group(1) or "not set").replace("Toggle::", "")
    if not default.startswith(value):
        return [f"{where}: its default is {value!r} in the header, "
                f"{default!r} in the description"]
    return []


def check_legend(text, threads):
    legend = squeezed(plain("\n".join(re.findall(r"^//.*", text, re.M))))
    return [f"[threads] {name}: {LEGEND} explains it differently"
            for name, meaning in threads.items()
            if f"{name} {meaning}" not in legend]


class HookCommentsTest(unittest.TestCase):
    def check_with(self, name, old, new):
        """Returns the errors after one edit of a copy of headers and descriptions."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            files = {f"include/tfplug/{h}" for h in
                     [*CLASSES.values(), *OPTIONS.values(), LEGEND]}
            for file in files | {"codegen/device_api.ini",
                                 "codegen/graph_api.ini"}:
                text = (ROOT / file).read_text()
                if file == name:
                    self.assertIn(old, text)
                    text = text.replace(old, new, 1)
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_text(text)
            return check(root)

    def test_comments_agree_with_the_description(self):
        self.assertEqual(check(ROOT), [])

    def test_wrong_c_field_is_found(self):
        errors = self.check_with("include/tfplug/device/stream.h",
                                 "// record_event:", "// record_mark:")
        self.assertEqual(errors, ["SP_StreamExecutor.record_event: "
                                  "Stream::RecordEvent: its comment does not "
                                  "begin with the C field"])

    def test_other_default_is_found(self):
        errors = self.check_with("include/tfplug/device/device.h",
                                 "Default: 0.", "Default: -1.")
        self.assertEqual(len(errors), 1)
        self.assertIn("Device::NumaNode: its comment has the default '-1'",
                      errors[0])

    def test_other_thread_is_found(self):
        errors = self.check_with("codegen/device_api.ini",
                                 "thread = polling; must not block",
                                 "thread = any; must not block")
        self.assertEqual(len(errors), 1)
        self.assertIn("Event::Poll: its comment has the thread "
                      "'polling; must not block'", errors[0])

    def test_hook_that_became_optional_is_found(self):
        errors = self.check_with(
            "include/tfplug/device/event.h",
            "virtual absl::Status BlockHost() = 0;",
            "virtual absl::Status BlockHost() { return {}; }")
        self.assertEqual(len(errors), 1)
        self.assertIn("Event::BlockHost: pure virtual only in", errors[0])

    def test_hook_without_a_field_is_found(self):
        errors = self.check_with("include/tfplug/device/event.h",
                                 "virtual absl::Status BlockHost() = 0;",
                                 "virtual absl::Status BlockHost() = 0;\n"
                                 "  virtual void Pause() {}")
        self.assertEqual(errors, ["Event::Pause: no field in the description "
                                  "names it"])

    def test_other_default_of_an_option_is_found(self):
        errors = self.check_with("include/tfplug/device/platform.h",
                                 "use_bfc_allocator = true",
                                 "use_bfc_allocator = false")
        self.assertEqual(len(errors), 1)
        self.assertIn("PlatformOptions::use_bfc_allocator: its default is "
                      "'false'", errors[0])

    def test_other_meaning_of_a_thread_is_found(self):
        errors = self.check_with("include/tfplug/device.h",
                                 "TensorFlow's polling thread", "A thread")
        self.assertEqual(errors, ["[threads] polling: device.h explains it "
                                  "differently"])


if __name__ == "__main__":
    unittest.main()
