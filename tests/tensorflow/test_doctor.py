# SPDX-License-Identifier: Apache-2.0
"""tfplug doctor reports plug-ins that work, fail or crash, and survives them."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import harness
import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "packaging/python"
# Each with what it does to TensorFlow.
SOURCES = {
    "aborts": """
#include <stdio.h>
#include <stdlib.h>
void SE_InitPlugin(void* params, void* status) {
  fputs("F0000 00:00:00.000000 1 device.cc:7] no driver\\nI0000 a later line\\n", stderr);
  abort();
}
""",
    "no_entry": "int some_function(void) { return 1; }",
    # As plug-ins of other vendors, it needs what libtensorflow_cc exports.
    "needs_cc": """
int TF_LoadPluggableDeviceLibrary(const char*, void*);
void TF_InitKernel(void) { if (TF_LoadPluggableDeviceLibrary == 0) __builtin_trap(); }
""",
}
REPORT = """
import dataclasses, json, sys
sys.path.insert(0, sys.argv[1])
import doctor
doctor.plugin_directories = lambda: []  # Others may be installed here.
print(json.dumps([dataclasses.asdict(each) for each in doctor.examine()]))
"""


def examine(library_path):
    run = subprocess.run(
        [sys.executable, "-c", REPORT, str(SOURCE)], text=True, check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(library_path)})
    return json.loads(run.stdout)


def about(findings, name):
    return [each for each in findings if name in each["text"]]


def test_each_plugin_is_reported(tmp_path):
    for name, source in SOURCES.items():
        (tmp_path / "a.c").write_text(source)
        subprocess.run(["g++", "-x", "c", "-shared", "-fPIC", "-o", f"lib{name}.so",
                        "a.c"], cwd=tmp_path, check=True)
    (tmp_path / "a.c").unlink()
    (tmp_path / "libdangles.so").symlink_to("/nowhere/lib.so")
    (tmp_path / "libtext.so").write_text("This is no library. " * 9)
    (tmp_path / "libshort.so.2").write_bytes(b"\x7fELF")
    plugin = harness.small_plugin_path("small_kernels")
    shutil.copy(plugin, tmp_path)
    # TensorFlow ignores these.
    (tmp_path / "__pycache__").mkdir()
    for name in ("__init__.py", "notes.txt", "libthing.so.txt"):
        (tmp_path / name).write_text("Not a library.")
    findings = examine(tmp_path)

    for name, level, text, remedy in [
            ("libaborts.so", "error", "SIGABRT. F0000 00:00:00.000000 1 device.cc:7] no "
             "driver", "Report it to the author"),
            ("libno_entry.so", "warning", "none of TensorFlow's entry points",
             "TFPLUG_REGISTER_DEVICE"),
            ("libneeds_cc.so", "ok", "TF_InitKernel; 0 kernels; it adds no device", ""),
            ("libdangles.so", "error", "a link to /nowhere/lib.so", "Remove the link"),
            ("libtext.so", "error", "not a shared library", "Remove it"),
            ("libshort.so.2", "error", "file too short", "Install its package again"),
    ]:
        (found,) = about(findings, f"/{name}")
        assert found["level"] == level and text in found["text"], found
        assert remedy in found["remedy"], found
    works, lacks = about(findings, f"/{plugin.name}")
    assert works["level"] == "ok" and "devices: SMALL x 1" in works["text"]
    assert lacks["level"] == "warning" and "on SMALL, Keras cannot" in lacks["text"]
    assert ("coverage" in lacks["remedy"] or
            "TFPLUG_REGISTER_GRAPH_PASSES" in lacks["remedy"]), lacks
    for name in ("__init__.py", "notes.txt", "libthing", "__pycache__"):
        assert not about(findings, name)


@pytest.mark.parametrize("message, reason, remedy", [
    ("Graph execution error:\n\nDetected at node StatefulPartitionedCall defined at\n"
     "No JIT device registered for MY_DEVICE in this process\n\t [[{{node x}}]]\n"
     "0 successful operations.\n0 derived errors ignored.",
     "No JIT device registered for MY_DEVICE", "TFPLUG_REGISTER_GRAPH_PASSES"),
    ("2 root error(s) found.\n  (0) INVALID_ARGUMENT:  No JIT device registered for HAND\n"
     "\t [[StatefulPartitionedCall/_6]]\n0 successful operations.\n"
     "0 derived errors ignored. [Op:__inference_multi_step_on_iterator_967]",
     "No JIT device registered for HAND", "TFPLUG_REGISTER_GRAPH_PASSES"),
    ("Check failed: Unsupported device type: MY_DEVICE in a pass",
     "Unsupported device type", "use_plugin_optimizers"),
])
def test_the_reason_and_remedy_of_a_failed_training(monkeypatch, message, reason,
                                                    remedy):
    monkeypatch.syspath_prepend(SOURCE)
    import doctor
    import doctor_child
    found = doctor_child.reason(message)
    assert reason in found
    assert remedy in doctor.remedy_for(found)


def test_a_missing_plugin_has_a_remedy(tmp_path):
    findings = examine(tmp_path / "nowhere.so")
    assert [each["level"] for each in findings] == ["ok", "error", "warning"]
    assert "unset the variable" in findings[1]["remedy"]
