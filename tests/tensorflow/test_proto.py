# SPDX-License-Identifier: Apache-2.0
"""A plug-in with its own copy of libprotobuf, and the .proto files."""

import os
import pathlib
import shutil

import harness
import pytest

CODEGEN = harness.ROOT / "codegen"
PROTOS = harness.ROOT / "include/tfplug/proto"


def plugin_path():
    named = os.environ.get("TFPLUG_MESSAGE_PASS")
    if named:
        return pathlib.Path(named).resolve()
    build = pathlib.Path(os.environ.get("TFPLUG_BUILD") or
                         harness.ROOT / "build/gcc")
    return build / "tests/proto/libtfplug_message_pass.so"


def round_numbers():
    """Returns the results of a function with Rint, and checks that TensorFlow's own
    protobuf, in C++ and Python, works while the plug-in is loaded."""
    import tensorflow as tf

    @tf.function(jit_compile=False)
    def rint(x, y):
        return tf.raw_ops.Rint(x=x), tf.raw_ops.Rint(x=x * y)

    @tf.function(jit_compile=False)
    def rejected(x):
        return tf.math.cosh(x) + tf.raw_ops.Rint(x=x)

    x, y = tf.constant([1.2, 2.5, -0.7]), tf.constant(-1.0)
    result = {"rint": [z.numpy().tolist() for z in rint(x, y)],
              "rejected": rejected(tf.zeros([1])).numpy().tolist()}
    graph = rint.get_concrete_function(x, y).graph.as_graph_def()
    again = type(graph).FromString(graph.SerializeToString())
    assert again == graph and len(again.node) > 3
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(tf.ones([4, 2]), tf.ones([4, 1]), verbose=0)
    return result


def test_message_pass_in_tensorflow():
    path = plugin_path()
    assert path.is_file(), f"build {path}, or name it in TFPLUG_MESSAGE_PASS"
    result = harness.run(round_numbers, plugin=False, env={
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(path),
        "TF_CPP_MIN_LOG_LEVEL": "0"})
    assert result.ok, result
    # Rint would give [1, 2, -1] and [-1, -2, 1]. It became Ceil, and the Ceil of a
    # product became Floor.
    assert result.value["rint"] == [[2.0, 3.0, 0.0], [-2.0, -3.0, 0.0]]
    # The log names a pass that fails, and the graph is unchanged.
    assert result.value["rejected"] == [1.0]
    assert "RintToCeil" in result.log and "rejects Cosh" in result.log


# ---- The .proto files --------------------------------------------------------


def dump_protos(root, *arguments):
    run = harness.run_script(root / "codegen/dump_protos.py", *arguments)
    return run.returncode, run.stdout


def test_protos_equal_those_of_the_installed_tensorflow():
    code, output = dump_protos(harness.ROOT, "--check")
    if code == 77:
        pytest.skip(output)
    assert code == 0, output


def test_check_finds_wrong_protos(tmp_path):
    (tmp_path / "codegen").mkdir()
    shutil.copy(CODEGEN / "dump_protos.py", tmp_path / "codegen")
    folder = tmp_path / "include/tfplug/proto"
    shutil.copytree(PROTOS, folder)
    node_def = folder / "node_def.proto"
    text = node_def.read_text()
    node_def.write_text(text.replace("string device = 4", "string device = 8"))
    (folder / "left_over.proto").write_text("")
    code, output = dump_protos(tmp_path, "--check")
    if code == 77:
        pytest.skip(output)
    assert code == 1
    assert "-  string device = 8;" in output
    assert "left_over.proto: nothing generates this file" in output
    assert "python3 codegen/dump_protos.py" in output
    assert dump_protos(tmp_path)[0] == 0
    assert node_def.read_text() == text
