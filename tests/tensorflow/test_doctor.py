# SPDX-License-Identifier: Apache-2.0
"""tfplug doctor: it reports plug-ins that work, fail or crash, and survives them."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import harness

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "packaging/python"
CRASH = """
#include <stdlib.h>
void SE_InitPlugin(void* params, void* status) { abort(); }
"""
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
    (tmp_path / "notes.txt").write_text("TensorFlow loads every file here." * 9)
    (tmp_path / "crash.c").write_text(CRASH)
    subprocess.run(["g++", "-x", "c", "-shared", "-fPIC", "-o", "libcrash.so",
                    "crash.c"], cwd=tmp_path, check=True)
    (tmp_path / "crash.c").unlink()
    shutil.copy(harness.small_plugin_path("small_kernels"),
                tmp_path)
    findings = examine(tmp_path)

    (notes,) = about(findings, "notes.txt")
    assert notes["level"] == "error" and "Remove it" in notes["remedy"]
    (crash,) = about(findings, "libcrash.so")
    assert crash["level"] == "error" and "SIGABRT" in crash["text"]
    works, lacks = about(findings, "libtfplug_small_kernels.so")
    assert works["level"] == "ok" and "devices: SMALL x 1" in works["text"]
    assert lacks["level"] == "warning" and "on SMALL, Keras cannot" in lacks["text"]
    assert "coverage" in lacks["remedy"]


def test_a_missing_plugin_has_a_remedy(tmp_path):
    findings = examine(tmp_path / "nowhere.so")
    assert [each["level"] for each in findings] == ["ok", "error", "warning"]
    assert "unset the variable" in findings[1]["remedy"]
