# SPDX-License-Identifier: Apache-2.0
"""tfplug doctor reports plug-ins that work, fail or crash, and survives them."""

import argparse
import contextlib
import dataclasses
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import types
from unittest import mock

import harness
import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "packaging/python"
sys.path.insert(0, str(SOURCE))
import doctor as doctor_of_users  # noqa: E402

FOREIGN = pathlib.Path(__file__).with_name("plugins") / "foreign_optimizer.c"
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
    "crashes": """
namespace acme {
template <typename> struct Option {};
struct __attribute__((visibility("hidden"))) Device {  // as tfplug's classes
  template <typename... Options>
  __attribute__((noinline)) void Open(Options...) { *volatile_null = 1; }
  int* volatile volatile_null = nullptr;
};
}  // namespace acme
extern "C" void SE_InitPlugin(void*, void*) {
  using acme::Option;
  acme::Device().Open(Option<Option<int>>(), Option<char>(), Option<int>());
  asm volatile("");
}
""",
    "exits": """
#include <stdlib.h>
void SE_InitPlugin(void* params, void* status) { exit(3); }
""",
    "no_entry": "int some_function(void) { return 1; }",
    # As plug-ins of other vendors, it needs what libtensorflow_cc exports.
    "needs_cc": """
int TF_LoadPluggableDeviceLibrary(const char*, void*);
void TF_InitKernel(void) { if (TF_LoadPluggableDeviceLibrary == 0) __builtin_trap(); }
""",
    # Not all releases export their functions to every library.
    "no_device": """#define _GNU_SOURCE
#include <dlfcn.h>
static void* find(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  const char* const libraries[] = {"libtensorflow_framework.so.2",
                                   "lib_pywrap_tensorflow_common.so"};
  for (int i = 0; found == 0 && i < 2; ++i) {
    void* library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
    if (library != 0) found = dlsym(library, name);
  }
  return found;
}
void TF_InitKernel(void) {
  void* (*status)(void) = find("TF_NewStatus");
  void* (*make)(const char*, const char*, void*, void*, void*) = find("TF_NewKernelBuilder");
  void (*add)(const char*, void*, void*) = find("TF_RegisterKernelBuilder");
  for (const char** op = (const char*[]){"Relu", "Misspelt", 0}; *op != 0; ++op) {
    add(*op, make(*op, "LOST", 0, TF_InitKernel, 0), status());
  }
}
""",
}


@pytest.fixture(autouse=True, name="forks")
def _forks(monkeypatch):
    """Lets the doctor fork its children, which saves the import of TensorFlow."""
    def run(command, check, env, **options):
        script, *libraries = command[4:]  # after the options of Python
        if "LD_LIBRARY_PATH" in env:
            return subprocess.run(command, check=check, env=env, **options)
        env = {name: value for name, value in env.items() if os.environ.get(name) != value}
        env.pop("TF_CPP_MIN_LOG_LEVEL", None)  # as the harness has it
        return harness.run_script(script, *libraries, env=env)

    monkeypatch.setattr(doctor_of_users, "subprocess", types.SimpleNamespace(
        run=run, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired))


def examine(library_path="", directories=()):
    with mock.patch.dict(os.environ, TF_PLUGGABLE_DEVICE_LIBRARY_PATH=str(library_path)), \
            mock.patch.object(doctor_of_users, "plugin_directories",
                              lambda: list(map(str, directories))):  # others may be there
        return [dataclasses.asdict(each) for each in doctor_of_users.examine()]


def compile_library(path, source, *options):
    """Compiles C, or C++ if the source has a namespace."""
    path.parent.mkdir(parents=True, exist_ok=True)
    language = "c++" if "namespace" in source else "c"
    subprocess.run(["g++", "-x", language, "-shared", "-fPIC", "-O1", "-o", path, "-",
                    "-x", "none", *options], input=source, text=True, check=True)


def doctor(*libraries, directory=None):
    """Runs tfplug doctor on libraries that are not installed."""
    parser = argparse.ArgumentParser()
    doctor_of_users.add_parser(parser.add_subparsers())
    options = parser.parse_args(["doctor", *map(str, libraries)])
    output, before = io.StringIO(), os.getcwd()
    os.chdir(directory or before)
    try:
        with contextlib.redirect_stdout(output):
            status = options.run(options)
    finally:
        os.chdir(before)
    return subprocess.CompletedProcess(libraries, int(status or 0), output.getvalue())


def about(findings, name):
    return [each for each in findings if name in each["text"]]


def test_each_plugin_is_reported(tmp_path):
    for name, source in SOURCES.items():
        compile_library(tmp_path / f"lib{name}.so", source)
    whole = (tmp_path / "libno_entry.so").read_bytes()
    (tmp_path / "libhalf.so").write_bytes(whole[:len(whole) // 2])
    other = 183 if os.uname().machine == "x86_64" else 62  # aarch64 or x86_64
    (tmp_path / "libother.so").write_bytes(
        whole[:18] + other.to_bytes(2, "little") + whole[20:])
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
             "driver in SE_InitPlugin (libaborts.so)", "Report it to the author"),
            ("libcrashes.so", "error", "SIGSEGV in void acme::Device::Open<…>(…), called "
             "by SE_InitPlugin (libcrashes.so)", "Report it to the author"),
            ("libexits.so", "error", "ended the process with status 3", "Report it"),
            ("libhalf.so", "error", "is truncated", "install its package again"),
            ("libother.so", "error", "and this machine is", "wheel for this machine"),
            ("libno_entry.so", "warning", "none of TensorFlow's entry points",
             "TFPLUG_REGISTER_DEVICE"),
            ("libneeds_cc.so", "ok", "TF_InitKernel; 0 kernels in TensorFlow", ""),
            ("libdangles.so", "error", "a link to /nowhere/lib.so", "Remove the link"),
            ("libtext.so", "error", "not a shared library", "Remove it"),
            ("libshort.so.2", "error", "is truncated: it has 4 bytes",
             "install its package again"),
    ]:
        (found,) = about(findings, f"/{name}")
        assert found["level"] == level and text in found["text"], found
        assert remedy in found["remedy"], found
    no_device, kernels = about(findings, "/libno_device.so")
    assert no_device["level"] == "ok" and "TF_InitKernel; 1 kernel in" in no_device["text"]
    assert kernels["level"] == "warning" and "1 kernel for the device type LOST, " in (
        kernels["text"]), kernels
    assert "Link the file that registers the device" in kernels["remedy"]
    works, lacks = about(findings, f"/{plugin.name}")
    assert works["level"] == "ok" and "devices: SMALL x 1" in works["text"]
    # As one without kernels: both are steps of the guide to a first device.
    assert lacks["level"] == "warning" and "on SMALL, Keras cannot" in lacks["text"]
    assert "has no kernel for MatMul, Mul, " in lacks["text"], lacks
    assert "step 4" in lacks["remedy"], lacks
    for name in ("__init__.py", "notes.txt", "libthing", "__pycache__"):
        assert not about(findings, name)


# Stand-ins for the public plug-ins, of the shapes of their wheels: what is in
# site-packages, which libraries they need and where those are, what they register.
def make_zentf(site):
    """zentf 2.21: ops and passes for the CPU, OpenMP in a directory of its own."""
    compile_library(site / "_solib_k8/openmp/libiomp5.so", "int omp_start(void) {return 0;}")
    compile_library(
        site / "tensorflow-plugins/libamdcpu_plugin.so",
        "int omp_start(void);\nvoid TF_InitKernel(void) { omp_start(); }\n" +
        (FOREIGN.read_text()), f"-L{site}/_solib_k8/openmp", "-liomp5",
        "-Wl,-rpath,$ORIGIN/../_solib_k8/openmp")
    (site / "tensorflow-plugins/__init__.py").write_text("")
    return [("ok", "libamdcpu_plugin.so: TF_InitKernel, TF_InitGraph; 0 kernels in "
             "TensorFlow", "")]


def make_intel(site):
    """intel-extension-for-tensorflow-lib 2.15: a library in its Python package, and
    oneAPI's, which is not installed."""
    package = site / "intel_extension_for_tensorflow"
    compile_library(site / "libsycl.so.8", "int sycl(void) { return 0; }",
                    "-Wl,-soname,libsycl.so.8")
    compile_library(package / "libitex_common.so",
                    "int sycl(void); int itex(void) { return sycl(); }",
                    f"{site}/libsycl.so.8")
    compile_library(
        site / "tensorflow-plugins/libitex_gpu.so",
        "int itex(void); void SE_InitPlugin(void* a, void* b) { itex(); }",
        f"-L{package}", "-litex_common", f"-Wl,-rpath-link,{site}",
        "-Wl,-rpath,$ORIGIN/../intel_extension_for_tensorflow")
    (site / "libsycl.so.8").unlink()
    return [("error", "libsycl.so.8: cannot open", "Install the library that is named")]


def make_directml(site):
    """tensorflow-directml-plugin 0.4: for releases whose Python extension contains
    TensorFlow; its own library is in a directory below."""
    plugins = site / "tensorflow-plugins"
    compile_library(site / "_pywrap_tensorflow_internal.so", "int tf(void) { return 0; }",
                    "-Wl,-soname,_pywrap_tensorflow_internal.so")
    compile_library(plugins / "directml/libdirectml.d6f03b.so",
                    "int dml(void) { return 0; }")
    compile_library(
        plugins / "libtfdml_plugin.so",
        "int tf(void); void SE_InitPlugin(void* a, void* b) { tf(); }",
        site / "_pywrap_tensorflow_internal.so", "-Wl,-rpath,$ORIGIN/directml")
    (site / "_pywrap_tensorflow_internal.so").unlink()
    if harness.release() < (2, 21):  # TensorFlow has a library of this name.
        return [("error", "undefined symbol: tf", "")]
    return [("error", "_pywrap_tensorflow_internal.so: cannot open",
             "made for another release of TensorFlow")]


def make_metal(site):
    """tensorflow-metal 1.2: a library for macOS."""
    plugins = site / "tensorflow-plugins"
    (plugins / "tools/pip_package").mkdir(parents=True)
    for place in ("__init__.py", "tools/__init__.py", "tools/pip_package/setup.py"):
        (plugins / place).write_text("")
    (plugins / "libmetal_plugin.dylib").write_bytes(b"\xcf\xfa\xed\xfe" + bytes(60))
    return [("warning", "libmetal_plugin.dylib is for another operating system",
             "for Linux"), ("warning", "There is no plug-in in", "Install its wheel")]


@pytest.mark.parametrize("make", [make_zentf, make_intel, make_directml, make_metal])
def test_public_plugins(tmp_path, make):
    site = tmp_path / "site-packages"
    expected = make(site)
    tensorflow, *findings = examine(directories=[site / "tensorflow-plugins"])
    assert tensorflow["level"] == "ok"
    assert len(findings) == len(expected), findings
    for found, (level, text, remedy) in zip(findings, expected):
        assert found["level"] == level and text in found["text"], found
        assert remedy in found["remedy"], found


def test_a_plugin_that_aborts_on_devices_of_others(tmp_path):
    """As Intel's does in 2.15."""
    compile_library(tmp_path / "libforeign.so",
                    '#define FOREIGN_ABORTS_ON "/device:SIM"\n' + FOREIGN.read_text())
    shutil.copy(harness.plugin_path(), tmp_path)
    last = examine(tmp_path)[-1]
    assert last["level"] == "error" and "do not work in one process" in last["text"]
    assert "Unsupported device type: /device:SIM in " in last["text"]
    assert "libforeign.so" in last["text"]
    assert "'use_plugin_optimizers': False" in last["remedy"]


def test_remedies_name_commands_of_the_package():
    parser = (SOURCE / "cli.py").read_text() + "".join(
        path.read_text() for path in SOURCE.glob("*.py"))
    texts = "".join((SOURCE / f"{name}.py").read_text()
                    for name in ("doctor", "doctor_causes"))
    # A string goes on in the next line of the source.
    texts = re.sub(r'"\s*\n\s*"', "", texts)
    named = set(re.findall(r"tfplug ([a-z][a-z-]+) (?=lists|new|abseil|NAME)", texts))
    assert named == {"coverage"}
    for name in named:
        assert f'"{name}"' in parser
    assert "tools/" not in texts


@pytest.mark.parametrize("message, reason, remedy", [
    ("Graph execution error:\n\nDetected at node StatefulPartitionedCall defined at\n"
     "No JIT device registered for MY_DEVICE in this process\n\t [[{{node x}}]]\n"
     "0 successful operations.\n0 derived errors ignored.",
     "No JIT device registered for MY_DEVICE", "TFPLUG_REGISTER_GRAPH_PASSES"),
    ("2 root error(s) found.\n  (0) INVALID_ARGUMENT:  No JIT device registered for HAND\n"
     "\t [[StatefulPartitionedCall/_6]]\n0 successful operations.\n"
     "0 derived errors ignored. [Op:__inference_multi_step_on_iterator_967]",
     "No JIT device registered for HAND", "TFPLUG_REGISTER_GRAPH_PASSES"),
    ("Graph execution error:\n  (1) INVALID_ARGUMENT: the op wants a matrix with 2 columns\n",
     "the op wants a matrix", ""),
    ("Cannot assign a device for operation ReadVariableOp: [...]\nColocation Debug Info:\n"
     "AssignAddVariableOp: CPU \nReadVariableOp: SMALL CPU \n_Arg: SMALL CPU \n\n"
     "  AssignAddVariableOp_10 (AssignAddVariableOp) \n\n"
     "\t [[{{node ReadVariableOp}}]] [Op:__inference_train_function_715]",
     "only the CPU has a kernel for AssignAddVariableOp", ""),
    ("No registered 'AddV2' OpKernel for 'MY_DEVICE' devices compatible with node x\n"
     "\t (OpKernel was found, but attributes didn't match)\n\t.  Registered:  device='CPU'\n"
     "  device='DEFAULT'; T in [DT_INT32]\n", "No registered 'AddV2' OpKernel", ""),
    ("Check failed: Unsupported device type: MY_DEVICE in a pass",
     "Check failed: Unsupported device type", "use_plugin_optimizers"),
])
def test_the_reason_and_remedy_of_a_failed_training(monkeypatch, message, reason,
                                                    remedy):
    monkeypatch.syspath_prepend(SOURCE)
    import doctor
    import doctor_child
    found = doctor_child.reason(message)
    assert found.startswith(reason)
    assert remedy in doctor.remedy_for(found)


def test_passes_for_another_type_than_the_devices(tmp_path):
    """A misspelt type is the cause, whatever Keras says."""
    plugin = harness.small_plugin_path("small_kernels")
    for passes, is_wrong in (("SMLL", True), ("SMALL", False), ("CPU", False)):
        library = tmp_path / f"lib{passes}.so"
        compile_library(library, FOREIGN.read_text().replace('"CPU"', f'"{passes}"') + f"""
static void* find(const char* name) {{ return dlsym(dlopen("{plugin}", RTLD_NOW), name); }}
void SE_InitPlugin(void* params, void* status) {{
  ((void (*)(void*, void*))find("SE_InitPlugin"))(params, status);
}}
void TF_InitKernel(void) {{ ((void (*)(void))find("TF_InitKernel"))(); }}
""")
        found = about(examine(library), library.name)
        wrong = [each for each in found if "the passes never run" in each["text"]]
        assert len(wrong) == is_wrong, found
        if is_wrong:
            assert wrong[0]["level"] == "error" and "type SMLL, and" in wrong[0]["text"]
            assert "text of Platform::kType" in wrong[0]["remedy"]
        training = found[-1]
        assert training["level"] == "warning" and "Keras cannot" in training["text"]


def test_training_with_the_kernels_of_the_cpu(monkeypatch):
    """Soft placement hides that a device has few kernels."""
    library = harness.small_plugin_path("few_a")
    for kernels, level, text in (
            ("Mul Sub", "warning", "the CPU computes ops for which FEW_A has no kernel, such "
             "as MatMul, Relu, ReluGrad"),
            ("", "warning", "MatMul, Mul, Relu, ReluGrad, Sub")):
        monkeypatch.setenv("FEW_A_KERNELS", kernels)
        found = about(examine(library), library.name)[-1]
        assert found["level"] == level and text in found["text"], found


def test_what_the_plugin_logs(monkeypatch):
    """Kernels that it refuses, and kernels that no op can use."""
    monkeypatch.setenv("FEW_A_KERNELS", "Mul Rellu ArgMax")
    works, refused, unknown, _ = about(examine(harness.small_plugin_path("few_a")), "few_a")
    assert "; 1 kernel in TensorFlow 2." in works["text"], works
    assert refused["level"] == "error" and re.search(
        r"few_a.so: TF_InitKernel: TensorFlow's op ArgMax has no input or output "
        r'"reduction_indices", so its kernel is left out$', refused["text"]), refused
    assert refused["remedy"] == "It has [input, dimension, output]."
    assert unknown["level"] == "warning" and 'has no op "Rellu"' in unknown["text"]
    assert unknown["remedy"].startswith("Check the spelling")


@pytest.mark.parametrize("advice, remedy", (
    ("remove it", "Remove it."),
    ("tfplug/kernel/op_def.h has an example", "tfplug/kernel/op_def.h has an example."),
    ("ops::Abs is one", "ops::Abs is one.")))
def test_a_remedy_that_begins_with_a_name_keeps_it(monkeypatch, advice, remedy):
    monkeypatch.syspath_prepend(harness.ROOT / "packaging/python")
    import doctor_causes
    assert doctor_causes.logged(f"tfplug: TF_InitKernel: INTERNAL: no; {advice}") == [
        ("error", "TF_InitKernel: no", remedy)]


def test_check_counts_the_same_kernels():
    """In the release that is installed."""
    library = harness.plugin_path()
    found = about(examine(library), library.name)[0]["text"]
    count, release = re.search(r"(\d+ kernels) (in TensorFlow 2\.\d+);", found).groups()
    done = subprocess.run([sys.executable, "-B", SOURCE / "check.py", "--only", "kernels",
                           library], text=True, check=True, stdout=subprocess.PIPE)
    assert re.search(rf"{count} of \d+ ops {re.escape(release)}: Abs ", done.stdout), (
        found, done.stdout)


def test_a_refused_kernel_is_reported_once(monkeypatch):
    """Although tfplug check registers the kernels in a fake and in TensorFlow."""
    monkeypatch.setenv("FEW_A_KERNELS", "Mul ArgMax")
    checks = [f"--only={name}" for name in ("kernel-ops", "tensorflow")]
    for some, where in ((checks, "kernel-ops"), (checks[1:], "tensorflow")):
        done = subprocess.run(
            [sys.executable, "-B", SOURCE / "check.py", "--json", *some,
             harness.small_plugin_path("few_a")], text=True, check=False,
            stdout=subprocess.PIPE)
        refused = [each["name"] for each in json.loads(done.stdout)["checks"]
                   for found in each["findings"] if "its kernel is left out" in found["text"]]
        assert refused == [where], done.stdout


def test_a_device_that_is_called_gpu(monkeypatch):
    monkeypatch.setenv("TFPLUG_DEVICE_TYPE", "SIM=GPU")
    library = harness.plugin_path()
    found = about(examine(library), library.name)
    assert [each["level"] for each in found] == ["ok", "warning", "ok"], found
    assert "devices: GPU x" in found[0]["text"] and "trains on GPU" in found[2]["text"]
    assert "type GPU is TensorFlow's own" in found[1]["text"]
    assert "TFPLUG_DEVICE_TYPE=NAME=GPU" in found[1]["remedy"]


def test_libraries_that_are_not_installed(tmp_path):
    plugin = harness.plugin_path()
    shutil.copy(plugin, tmp_path / "libmine.so")
    done = doctor("libmine.so", directory=tmp_path)  # not a name for the loader to look up
    assert done.returncode == 0, done.stdout
    assert "  libmine.so: Keras trains on SIM (Keras " in done.stdout
    for path, text, remedy in (
            (tmp_path, "is a folder", "such as"), ("/nowhere/lib.so", "There is no file",
             "Name the library"), ("/etc", "is a folder", "there is none in it")):
        assert_only_error(doctor(path), text, remedy)


def assert_only_error(done, text, remedy):
    assert done.returncode == 1
    tensorflow, error, advice = done.stdout.splitlines()
    assert "ok" in tensorflow and error.startswith("  error") and text in error, error
    assert remedy in advice, advice


def test_named_files_that_are_no_plugin(tmp_path):
    compile_library(tmp_path / "libplain.so", SOURCES["no_entry"])
    subprocess.run(["cc", "-x", "c", "-c", "-o", tmp_path / "plain.o", "-"],
                   input=SOURCES["no_entry"], text=True, check=True)
    whole = (tmp_path / "libplain.so").read_bytes()
    for name, content in (("libhalf.so", whole[:len(whole) // 2]), ("libnone.so", b""),
                          ("libfew.so", whole[:20]), ("libtext.so", b"No library. " * 9),
                          ("device.cc", b"int main() {}\n"), ("libold.a", b"!<arch>\n"),
                          ("my_device-1.0-py3-none-any.whl", b"PK\3\4")):
        (tmp_path / name).write_bytes(content)
    for name, text, remedy in (
            ("libplain.so", "exports none of TensorFlow's entry points", "linked into"),
            ("libhalf.so", "is truncated: it has", "Copy it again, whole, or build it anew."),
            ("libfew.so", "is truncated: it has 20 bytes", "Copy it again"),
            ("libnone.so", "is truncated: it has 0 bytes", "Copy it again"),
            ("libtext.so", "is not a shared library for Linux: TensorFlow cannot load it",
             "Build the plug-in as a shared library"),
            ("device.cc", "is source code, not a shared library", "Build it, and name the "
             "library that the build writes, such as build/libmy_device.so."),
            ("plain.o", "is an object file or a program", "(-shared), and name the"),
            ("libold.a", "is a static library", "(-shared), and name the"),
            ("my_device-1.0-py3-none-any.whl", "is a wheel or another zip file",
             "pip install")):
        assert_only_error(doctor(tmp_path / name), text, remedy)


def test_a_missing_plugin_has_a_remedy(tmp_path):
    findings = examine(tmp_path / "nowhere.so")
    assert [each["level"] for each in findings] == ["ok", "error", "warning"]
    assert "unset the variable" in findings[1]["remedy"]
