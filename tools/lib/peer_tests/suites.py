# SPDX-License-Identifier: Apache-2.0
"""The suites of tests that others wrote."""

import hashlib
import importlib.metadata
import importlib.util
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

from peer_tests import runner

# Where the tests of ops are in TensorFlow's sources. Elsewhere, most tests are of
# compilers, of other devices, or of Python code.
_TENSORFLOW = ("tensorflow/python/kernel_tests", "tensorflow/python/ops",
               "tensorflow/python/eager", "tensorflow/python/training",
               "tensorflow/python/data/kernel_tests", "tensorflow/python/distribute",
               "tensorflow/python/ops/ragged", "tensorflow/python/saved_model")


# What tests of Keras import besides the requirements of Keras and TensorFlow. (PyTorch is
# too large; tests that need it fail on the CPU, too, and so do not count.)
_PACKAGES_OF_KERAS = ("jax", "jaxlib", "opt_einsum", "pandas", "python-dateutil",
                      "scikit-learn", "narwhals")
if importlib.util.find_spec("tensorboard") is None:  # TensorFlow 2.21 does not require it.
    _PACKAGES_OF_KERAS += ("tensorboard", "tensorboard-data-server", "markdown", "werkzeug")


def _pip(*arguments):
    subprocess.run([sys.executable, "-m", "pip", *arguments, "--quiet", "--no-deps",
                    "--disable-pip-version-check"], check=True)


def _install_packages(cache):
    """Returns a folder with packages for the tests only, apart from the environment."""
    name = " ".join([sys.version, *_PACKAGES_OF_KERAS])
    folder = cache / f"peer-packages-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as new:
            _pip("install", "--target", f"{new}/packages", *_PACKAGES_OF_KERAS)
            os.rename(f"{new}/packages", folder)
    return folder


def _download_keras(cache):
    """Returns the folder of the sources of the installed Keras."""
    try:
        version = importlib.metadata.version("keras")
    except importlib.metadata.PackageNotFoundError:
        sys.exit("keras-nightly does not distribute its tests; install a release of Keras, "
                 "or another release of TensorFlow")
    folder = cache / f"keras-{version}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        _pip("download", "--no-binary", "keras", "--dest", str(cache),
             f"keras=={version}")
        with tarfile.open(cache / f"keras-{version}.tar.gz") as archive:
            archive.extractall(cache, filter="data")
    return folder


def keras(cache):
    """The tests of the installed Keras: its wheel has them since 3.4; for others, the
    source distribution is downloaded."""
    root = pathlib.Path(importlib.util.find_spec("keras").origin).parents[1]
    if not (root / "keras/src/layers/core/dense_test.py").exists():
        root = _download_keras(cache)
    files = sorted((root / "keras/src").rglob("*_test.py"))
    return runner.Suite(root, [str(f.relative_to(root)) for f in files],
                        imports=["keras"], packages=_install_packages(cache))


def tensorflow(folder):
    """The tests of ops in a checkout of TensorFlow's sources."""
    files = {file for under in _TENSORFLOW
             for file in (folder / under).rglob("*_test.py")}
    if not files:
        raise FileNotFoundError(
            f"{folder} has no tests such as tensorflow/python/kernel_tests/*_test.py; "
            "name a checkout of TensorFlow's sources")
    return runner.Suite(folder, sorted(str(f.relative_to(folder)) for f in files),
                        imports=["tensorflow.python.platform.test"])


def tf_keras(folder):
    """The tests in a checkout of the sources of tf_keras, which is Keras 2."""
    files = sorted((folder / "tf_keras").rglob("*_test.py"))
    if not files or not (folder / "tf_keras/protobuf/versions_pb2.py").is_file():
        raise FileNotFoundError(
            f"{folder} is no checkout of tf_keras's sources in which `protoc --python_out=. "
            "tf_keras/protobuf/*.proto` was run")
    return runner.Suite(folder, [str(f.relative_to(folder)) for f in files],
                        imports=["tf_keras"], packages=folder)
