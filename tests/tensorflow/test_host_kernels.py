# SPDX-License-Identifier: Apache-2.0
"""Kernels in host memory (TFPLUG_REGISTER_HOST_KERNELS) on a device that has no other
kernels, and whose memory the host cannot access: an access would crash."""

import harness

DEVICE = "/device:SMALL:0"


def compute_on_device():
    """Returns {op: (found, expected, device)} of int32 ops without soft placement, and
    the arguments that are not in host memory."""
    import tensorflow as tf
    from tensorflow.python.framework import kernels, op_def_registry
    tf.config.set_soft_device_placement(False)
    x = tf.constant([[1, 2, 3], [4, 5, 6]])
    calls = {
        "Transpose": lambda: tf.transpose(x),
        "Tile": lambda: tf.tile(x, [2, 1]),
        "ReverseV2": lambda: tf.reverse(x, [1]),
        "Roll": lambda: tf.roll(x, 1, 1),
        "PadV2": lambda: tf.pad(x, [[1, 0], [0, 2]], constant_values=7),
        "GatherV2": lambda: tf.gather(x, [2, 0], axis=1),
        "Cumsum": lambda: tf.cumsum(x, 1),
        "Prod": lambda: tf.reduce_prod(x, 0),
    }
    results = {}
    for op, call in calls.items():
        with tf.device("/device:CPU:0"):
            expected = call().numpy().tolist()
        for run in (call, tf.function(call)):
            with tf.device(DEVICE):
                found = run()
            results[f"{op} {'eager' if run is call else 'graph'}"] = (
                found.numpy().tolist(), expected, found.device)
    elsewhere = []
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type != "SMALL":
            continue
        op = op_def_registry.get(kernel.op)
        names = {arg.name for arg in [*op.input_arg, *op.output_arg]}
        if set(kernel.host_memory_arg) != names:
            elsewhere.append(kernel.op)
    return results, elsewhere


def test_int32_on_the_host():
    result = harness.run(
        compute_on_device, plugin=False,
        env={"TF_PLUGGABLE_DEVICE_LIBRARY_PATH":
             str(harness.small_plugin_path("host_kernels"))})
    assert result.ok, result
    results, elsewhere = result.value
    assert not elsewhere
    assert len(results) == 16
    for name, (found, expected, device) in results.items():
        assert found == expected, name
        assert device.endswith(DEVICE), (name, device)
