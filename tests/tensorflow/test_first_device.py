# SPDX-License-Identifier: Apache-2.0
"""The first steps of docs/guide/first_device.md, command by command: from the device of
the README to a Keras model that trains on it."""

import os
import re
import subprocess

import harness
import pytest

pytest.importorskip("mesonpy")


def _blocks(page, language):
    text = (harness.ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def _steps():
    """Returns the text of each step of the guide, by its number."""
    text = (harness.ROOT / "docs/guide/first_device.md").read_text(encoding="utf-8")
    return {int(number): step for number, step in re.findall(
        r"^## (\d)\. (.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)}


def _commands(step):
    """Returns the commands of a step: indented ones, and those of Python in sentences."""
    return re.findall(r"^    ((?:g\+\+|tfplug) .*)$|`((?:TFPLUG_\w+=1 )?python \w+\.py)`",
                      step, re.MULTILINE)


def test_from_the_readme_to_keras(tmp_path):
    python = harness.package_environment(tmp_path / "environment")

    def run(command, status=0):
        """Runs a command of the guide, without the compiler's optimization."""
        done = subprocess.run(
            command.replace(" -O2 ", " -O0 "), shell=True, cwd=tmp_path, text=True,
            check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}",
                 "TF_CPP_MIN_LOG_LEVEL": "1"})
        assert done.returncode == status, f"{command}\n{done.stdout[-3000:]}"
        return done.stdout

    steps = _steps()
    source = tmp_path / "my_device.cc"
    device, kernel, *_ = _blocks("README.md", "cpp")
    load, fit = _blocks("docs/guide/first_device.md", "py")
    (tmp_path / "load.py").write_text(load)
    (tmp_path / "fit.py").write_text(fit)
    (compile_it, _), (_, load_it) = _commands(steps[1])

    source.write_text(device)
    run(compile_it)
    found = run(load_it, status=1)
    assert "Could not satisfy device specification" in found and "Op:Relu" in found
    source.write_text(device + kernel)
    run(compile_it)
    found = run(load_it)
    for line in re.findall(r"^    \W?(PhysicalDevice.*\)|tf\.Tensor.*)", steps[2],
                           re.MULTILINE):
        assert line in found, found

    (doctor, _), (_, fit_it) = _commands(steps[4])
    found = run(doctor)
    assert "1 kernel in TensorFlow" in found and "Keras cannot train" in found, found
    assert 'step 4 of the page "Your first device in 20 minutes"' in found

    source.write_text(source.read_text() + _blocks("docs/guide/backend.md", "cpp")[0])
    run(compile_it)
    found = run(doctor)
    building = (harness.ROOT / "docs/guide/building.md").read_text(encoding="utf-8")
    [(kernels, release)] = re.findall(r"(\d+) kernels in TensorFlow ([\d.]+)", found)
    for page in (steps[4], building):
        [(expected, tested)] = re.findall(r"(\d+) kernels in TensorFlow ([\d.]+)", page)
        assert kernels == expected or release != tested and int(kernels) > 600
    assert "Keras trains on MY_DEVICE (Keras " in found
    lines = run(fit_it).splitlines()
    losses = {line.split()[0]: [float(each) for each in re.findall(r"\d\.\d+", line)]
              for line in lines if re.match(r"\w+:0 \[", line)}
    assert len(losses["CPU:0"]) == 3 and losses["CPU:0"][2] < losses["CPU:0"][0]
    assert losses["MY_DEVICE:0"] == pytest.approx(losses["CPU:0"], rel=1e-5)
    assert not [line for line in lines if line.startswith("tfplug: ")], lines
