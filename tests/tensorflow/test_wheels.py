# SPDX-License-Identifier: Apache-2.0
"""Wheels of the examples, made by `tfplug wheel` and installed beside stock TensorFlow
in an environment of their own: one process trains on all of them."""

import json
import os
import subprocess
import sys
import sysconfig

import harness
import pytest

pytest.importorskip("mesonpy")
EXAMPLES = harness.plugin_path().parents[1]
TYPES = {"cpu_sim": "SIM", "opencl": "OPENCL", "vulkan": "VULKAN",
         "cuda_like": "CUDA_LIKE"}
TRAIN = """
import json, os, sys
exists, hidden = os.path.exists, sys.argv[1]  # plug-ins that tools/demo installed
os.path.exists = lambda path: path != hidden and exists(path)
import numpy as np
import tensorflow as tf

def train(device):
    tf.keras.utils.set_random_seed(1)
    with tf.device(f"/device:{device}:0"):
        model = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="relu"),
                                     tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        x = np.linspace(-1, 1, 256, dtype=np.float32).reshape(64, 4)
        return model.fit(x, x[:, :1], epochs=2, verbose=0).history["loss"]

print(json.dumps({device: train(device) for device in sys.argv[2:]}))
"""


def run(*command, **variables):
    done = subprocess.run(
        list(map(str, command)), text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, **variables})
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module", name="environment")
def _environment(tmp_path_factory):
    return harness.package_environment(tmp_path_factory.mktemp("wheels") / "environment")


@pytest.mark.parametrize("build_system", ["meson", "cmake"])
def test_new_projects_link_the_compiled_library(environment, tmp_path, build_system):
    path = {"PATH": f"{environment.parent}:{os.environ['PATH']}"}

    def tfplug(*arguments):
        return run(environment.parent / "tfplug", *arguments, **path).strip()

    project, build = tmp_path / "acme", tmp_path / "acme/build"
    tfplug("new", "acme", "--build", build_system, "--directory", project)
    if build_system == "meson":
        run(os.environ.get("MESON", "meson"), "setup", "-Doptimization=0", build, project,
            PKG_CONFIG_PATH=f"{tfplug('--pkgconfigdir')}:{tfplug('abseil', '--pkgconfigdir')}")
    else:
        run("cmake", "-G", "Ninja", "-S", project, "-B", build, "-DCMAKE_BUILD_TYPE=Debug",
            f"-Dtfplug_DIR={tfplug('--cmakedir')}", **path)
    commands = run("ninja", "-C", build, "-t", "commands", "libacme.so", "conformance")
    assert commands.count("libtfplug.a") >= 2 and "separate/" not in commands, commands
    run("ninja", "-C", build, "libacme.so")
    if build_system == "meson":
        run("ninja", "-C", build, "conformance")
        run(build / "conformance")
    entries = ("SE_InitPlugin", "TF_InitKernel", "TF_InitGraph", "TF_InitGraphPlugin",
               "TF_InitProfiler")
    run(sys.executable, harness.ROOT / "tests/symbols_test.py", build / "libacme.so",
        *(word for name in entries for word in ("--expect", name)))


def test_a_library_that_cannot_be_linked_is_compiled(environment, tmp_path):
    package = next(environment.parents[1].glob("lib*/python*/site-packages/tfplug"))
    prefix = run(environment.parent / "tfplug", "abseil").strip()
    assert prefix.startswith(f"{package}/compiled/")
    (library,) = package.glob("compiled/*/lib/libtfplug.a")
    contents = library.read_bytes()
    try:
        library.write_bytes(contents[:len(contents) // 2])
        done = subprocess.run([environment.parent / "tfplug", "abseil", "--cached"],
                              text=True, capture_output=True, check=True)
        assert "cannot link the compiled library of this package" in done.stderr
        assert str(package) not in done.stdout
        project = tmp_path / "acme"
        run(environment.parent / "tfplug", "new", "acme", "--build", "cmake",
            "--directory", project)
        run("cmake", "-G", "Ninja", "-S", project, "-B", tmp_path / "build",
            f"-Dtfplug_DIR={package / 'share/cmake/tfplug'}")
        commands = run("ninja", "-C", tmp_path / "build", "-t", "commands", "libacme.so")
        assert "libtfplug.a" not in commands and "unity" in commands, commands
    finally:
        library.write_bytes(contents)


def test_wheels_of_the_examples(environment, tmp_path):
    python = environment
    place, bin_path = python.parents[1], python.parent
    site = next(place.glob("lib*/python*/site-packages"))
    pip = [sys.executable, "-m", "pip", "-q", "--python", python]
    before = set(place.rglob("*"))

    names = [name for name in TYPES
             if (EXAMPLES / name / f"libtfplug_{name}.so").exists()]
    wheels = [run(bin_path / "tfplug", "wheel", EXAMPLES / name / f"libtfplug_{name}.so",
                  "--name", f"Test-{name}", "--version", "1.2",
                  "--directory", tmp_path / "dist").strip() for name in names]
    run(*pip, "install", "--no-deps", "--no-index", *wheels)
    plugins = {each.name for each in (site / "tensorflow-plugins").iterdir()}
    assert plugins == {f"libtfplug_{name}.so" for name in names}
    document = json.loads(
        (site / "test_cpu_sim-1.2.dist-info/sboms/test_cpu_sim.spdx.json").read_text())
    contained = {each["name"] for each in document["packages"]}
    assert contained == {"libtfplug_cpu_sim.so", "tfplug", "abseil-cpp", "eigen"}

    losses = json.loads(run(
        python, "-B", "-c", TRAIN,
        os.path.join(sysconfig.get_path("purelib"), "tensorflow-plugins"), "CPU", *(TYPES[name] for name in names),
        CUDA_LIKE_DRIVER=str(EXAMPLES / "cuda_like/libcuda_like.so"),
        TFPLUG_CACHE_DIR=str(tmp_path)).splitlines()[-1])
    assert len(losses) == 1 + len(names) and losses["CPU"][1] < losses["CPU"][0]
    for device, values in losses.items():
        assert values == pytest.approx(losses["CPU"], rel=1e-5), device

    run(*pip, "uninstall", "-y", *(f"test-{name}" for name in names))
    assert set(place.rglob("*")) == before, "the wheels left files behind"
