# SPDX-License-Identifier: Apache-2.0
"""Device memory: both kinds of allocator, exhaustion, and leaks."""

import harness
import pytest


def run_out(strategy):
    """Allocates until the memory is exhausted, frees it and continues."""
    import gc
    import numpy as np
    import tensorflow as tf
    if strategy == "growth":
        for device in tf.config.list_physical_devices("SIM"):
            tf.config.experimental.set_memory_growth(device, True)
    tf.config.set_soft_device_placement(False)
    kept, seen = [], ""
    with tf.device("/device:SIM:0"):
        one = tf.constant(np.ones(4 << 20, np.float32))  # 16 MiB
        for _ in range(100):
            try:
                kept.append(one + one)
            except tf.errors.ResourceExhaustedError as error:
                seen = str(error)
                break
        full = len(kept)
        del kept[-1]
        gc.collect()
        still = (tf.constant([1.0]) + 1.0).numpy().tolist()
        del kept[len(kept) // 2:]
        gc.collect()
        again = (one + one).numpy()
    return {"seen": seen, "full": full, "still": still,
            "again": float(again.min() + again.max())}


@pytest.mark.parametrize("bfc,strategy", [("1", ""), ("1", "growth"), ("0", "")])
def test_out_of_memory_is_an_error_and_the_device_still_works(bfc, strategy):
    result = harness.run(run_out, strategy, env={
        "CPU_SIM_BFC": bfc, "CPU_SIM_MEMORY": "512M"})
    assert result.ok, result
    value = result.value
    assert "OOM when allocating tensor with shape[4194304]" in value["seen"]
    assert 8 <= value["full"] <= 31, "32 such tensors would fill the device"
    assert value["still"] == [2.0] and value["again"] == 4.0


def memory_info(growth):
    """Returns the bytes that TensorFlow reports as in use before, during and after
    the lifetime of more tensors."""
    import gc
    import numpy as np
    import tensorflow as tf
    if growth:
        for device in tf.config.list_physical_devices("SIM"):
            tf.config.experimental.set_memory_growth(device, True)
    with tf.device("/device:SIM:0"):
        base = tf.constant(np.ones(1 << 18, np.float32))  # 1 MiB
        info = [tf.config.experimental.get_memory_info("SIM:0")["current"]]
        kept = [base + base for _ in range(5)]
        info.append(tf.config.experimental.get_memory_info("SIM:0")["current"])
        kept[0].numpy()
        del kept
        gc.collect()
        info.append(tf.config.experimental.get_memory_info("SIM:0")["current"])
    return info


@pytest.mark.parametrize("growth", [False, True])
def test_memory_info(growth):
    # TensorFlow has figures only for its own allocator; it does not query the
    # plug-in's.
    result = harness.run(memory_info, growth)
    assert result.ok, result
    before, during, after = result.value
    assert before == after >= 1 << 20
    assert during - before == 5 << 20


def many_ops(count):
    """Returns the bytes in use on the device and the resident bytes of the process,
    after a fifth of the ops and after all of them."""
    import gc
    import os
    import numpy as np
    import tensorflow as tf

    def used():
        gc.collect()
        with open("/proc/self/statm", encoding="ascii") as statm:
            pages = int(statm.read().split()[1])
        return [tf.config.experimental.get_memory_info("SIM:0")["current"],
                pages * os.sysconf("SC_PAGE_SIZE")]

    with tf.device("/device:SIM:0"):
        x = tf.constant(np.ones((32, 32), np.float32))
        y = x
        figures = []
        for i in range(count):
            y = (y + x if i % 3 == 0 else tf.matmul(y, x) if i % 3 == 1
                 else y / 64.0)
            if i % 100 == 0:
                y.numpy()
            if i in (2001, count - 1):  # both after an addition
                y.numpy()
                figures.append(used())
    return figures


def test_ten_thousand_ops_leak_nothing():
    # With the plug-in's own allocator, a leak soon exhausts the memory.
    leaky = harness.run(many_ops, 10000, env={"CPU_SIM_BFC": "0",
                                              "CPU_SIM_MEMORY": "2M"})
    assert leaky.ok, leaky
    result = harness.run(many_ops, 10000)
    assert result.ok, result
    for (device, resident), (device_after, resident_after) in (
            leaky.value, result.value):
        assert device_after == device
        assert resident_after - resident < 8 << 20, "host memory grows"
