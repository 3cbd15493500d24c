# SPDX-License-Identifier: Apache-2.0
"""Generated kernels in plain C for 32 bits compute as TensorFlow's CPU, and a language's
compiler refuses a source with a mistake (tools/language-sweep)."""

import json
import platform
import subprocess
import sys

import harness
import pytest

LIB = harness.ROOT / "tools/lib"
# An op of each primitive, and the functions that plain C lacks.
OPS = ("Conv2D,Cumsum,Erf,Exp,FloorMod,Lgamma,MatMul,MaxPoolGrad,Pow,ScatterNd,"
       "Softmax,StatelessRandomNormalV2,Sum,Tan,TfplugFusedMapV2,TopKV2")
JUDGES = {".cl": "clang", ".cu": "nvrtc,hip-gfx906,hip-gfx1100", ".cc": "g++",
          ".c": "gcc,gcc-m32", ".comp": "glslang,spirv-cross", ".metal": "clang++"}


def run(tool, *arguments):
    return subprocess.run([sys.executable, "-B", str(LIB / tool), *map(str, arguments)],
                          check=False, text=True, capture_output=True)


def has_32_bits():
    """Returns whether the C compiler links its own functions for 32 bits, such as that
    which divides 64-bit integers. Without them, it names those for 64 bits."""
    program = "long long f(long long a) { return a / 3; } void _start(void) { f(1); }"
    command = ["cc", "-m32", "-O0", "-nostdlib", "-static", "-x", "c", "-", "-o",
               "/dev/null", "-lgcc"]
    return platform.machine() == "x86_64" and subprocess.run(
        command, input=program, text=True, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not has_32_bits(), reason="cc -m32 has no libgcc: install lib32gcc-*-dev")
def test_plain_c_without_a_library_computes_as_the_cpu(tmp_path):
    result = harness.run_script(
        LIB / "op_sweep/main.py", "--plugin", harness.small_plugin_path("plain_c"), "--op",
        OPS, "--cases", "1", "--seconds", "300", "--json", "-",
        env={"TFPLUG_LANGUAGE_SOURCES": str(tmp_path), "TFPLUG_CACHE_DIR": ""})
    report = json.loads(result.stdout)
    assert not report["mismatches"], json.dumps(report["mismatches"], indent=1)
    assert report["ops"] == len(OPS.split(",")) and not report["not_reached"]
    # Each language has the sources.
    counts = {extension: len(list(tmp_path.glob("*" + extension))) for extension in JUDGES}
    assert min(counts.values()) > 50, counts


@pytest.mark.parametrize("extension", JUDGES)
def test_a_source_with_a_mistake_is_refused(extension, tmp_path):
    for name in ("good", "bad"):
        text = "void f() { undeclared = 1; }\n" if name == "bad" else ""
        if extension == ".comp":
            text = ("#version 460\nlayout(local_size_x = 1) in;\n" + text +
                    "void main() { }\n")
        elif not text:
            text = "typedef int i32;\n"
        (tmp_path / (name + extension)).write_text(text)
    for judge in JUDGES[extension].split(","):
        result = run("language_sweep/main.py", "--sources", tmp_path, "--judge", judge)
        if "no compiler for" in result.stdout:
            pytest.skip(result.stdout.strip())
        assert result.returncode == 1, result
        assert f"{judge} refuses {tmp_path}/bad{extension}" in result.stdout
        assert "undeclared" in result.stdout
        assert "2 of 2 sources, 1 refused" in result.stdout
