# SPDX-License-Identifier: Apache-2.0
"""cpu_sim's devices in stock TensorFlow: discovery, copies, memory, fork."""

import shutil
import signal

import harness
import pytest


def list_devices():
    import tensorflow as tf
    return [[d.name for d in tf.config.list_physical_devices("SIM")],
            [d.name for d in tf.config.list_logical_devices("SIM")],
            float((tf.constant(1.0) + 1.0).numpy())]


@pytest.mark.parametrize("count", [None, 0, 1, 3])
def test_devices_are_listed(count):
    env = {} if count is None else {"CPU_SIM_DEVICES": str(count)}
    result = harness.run(list_devices, env=env)
    wanted = range(2 if count is None else count)
    assert result.ok, result
    assert result.value == [[f"/physical_device:SIM:{i}" for i in wanted],
                            [f"/device:SIM:{i}" for i in wanted], 2.0]


def poll_delay():
    import tensorflow as tf
    from tensorflow.python.eager import context

    tf.config.list_physical_devices()  # loads the plug-in
    config = context.context().config
    if hasattr(config, "pluggable_device_options"):
        return config.pluggable_device_options.polling_active_delay_usecs
    return config.gpu_options.polling_active_delay_usecs


def test_the_platform_says_how_often_events_are_polled():
    assert harness.run(poll_delay).value == 200
    assert harness.run(poll_delay, plugin=False).value == 0


def test_invalid_setting_gives_no_device_and_a_log_line():
    result = harness.run(list_devices, env={"CPU_SIM_DEVICES": "many"})
    assert result.ok and result.value[0] == [], result
    assert "CPU_SIM_DEVICES=many is invalid; expected a number from 0 to 64" in result.log


def test_found_in_site_packages(tmp_path):
    """Plug-ins that pip has installed are found without any setting."""
    folder = tmp_path / "site-packages/tensorflow-plugins"
    folder.mkdir(parents=True)
    shutil.copy(harness.plugin_path(), folder)
    result = harness.run(list_devices, plugin=False,
                         env={"PYTHONPATH": str(folder.parent)})
    assert result.ok and len(result.value[0]) == 2, result
    without = harness.run(list_devices, plugin=False)
    assert without.ok and without.value[0] == [], without


def use_two_plugins():
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    placed = []
    value = tf.constant([1.0, 2.0, 3.0])
    for device in ("SIM:0", "MINIMAL:0", "SIM:1"):
        with tf.device("/device:" + device):
            value = tf.identity(value)
        placed.append(value.device.rsplit("device:", 1)[1])
    return placed, value.numpy().tolist()


def test_two_plugins_in_one_process(tmp_path):
    """Two libraries that register one device type each."""
    other = harness.plugin_path().parents[2] / "consumer/libminimal_device.so"
    if not other.exists():
        pytest.skip(f"{other.name} is built by the consumer test (part unit)")
    folder = tmp_path / "site-packages/tensorflow-plugins"
    folder.mkdir(parents=True)
    shutil.copy(harness.plugin_path(), folder)
    shutil.copy(other, folder)
    result = harness.run(use_two_plugins, plugin=False,
                         env={"PYTHONPATH": str(folder.parent)})
    assert result.ok, result
    assert result.value == [["SIM:0", "MINIMAL:0", "SIM:1"], [1.0, 2.0, 3.0]]


def load_again(path, other):
    """Returns the error of loading another build of a loaded library."""
    import tensorflow as tf
    from tensorflow.python.framework import load_library
    for _ in range(2):
        load_library.load_pluggable_device_library(path)
    try:
        load_library.load_pluggable_device_library(other)
    except RuntimeError as error:
        return [str(error), float(tf.constant(1.0) + 1.0)]
    return "loaded"


def test_a_library_that_is_loaded_twice(tmp_path):
    """TensorFlow aborts if a platform is registered twice."""
    path = harness.small_plugin_path("few_a")
    for other in (tmp_path / "libother.so", tmp_path / path.name):
        shutil.copy(path, other)
        result = harness.run(load_again, str(path), str(other), plugin=False)
        assert result.ok, result
        message, value = result.value
        assert str(other) in message and f"{path} has registered" in message
        assert "the platform FEW_A" in message and value == 2.0
    # A library of that name with another platform is loaded.
    shutil.copy(harness.small_plugin_path("few_b"), other)
    result = harness.run(load_again, str(path), str(other), plugin=False)
    assert result.ok and result.value == "loaded", result


# ---- Copies ------------------------------------------------------------------


def copy_round_trips(dtypes, sizes):
    import numpy as np
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    random = np.random.default_rng(1)
    count = 0
    for name in dtypes:
        dtype = tf.dtypes.as_dtype(name)
        for size in sizes:
            data = random.integers(0, 256, size * dtype.size, np.uint8)
            data = (data % 2 if name == "bool" else data).view(
                dtype.as_numpy_dtype)
            with tf.device("/device:CPU:0"):
                host = tf.constant(data)
            on_device = host
            for device in ("SIM:0", "SIM:1", "SIM:0"):
                with tf.device("/device:" + device):
                    on_device = tf.identity(on_device)
                assert on_device.device.endswith(device), on_device.device
            back = on_device.numpy()
            assert back.tobytes() == data.tobytes(), f"{name}, {size}"
            count += 1
    return count


def test_copies_keep_every_byte():
    dtypes = ["float32", "float64", "float16", "bfloat16", "int8", "uint8",
              "int16", "uint16", "int64", "uint64", "bool", "complex64",
              "complex128"]
    sizes = [0, 1, 2, 3, 7, 63, 64, 65, 255, 256, 257, 1000, 4095, 4096, 4097,
             65537, 1000003]
    result = harness.run(copy_round_trips, dtypes, sizes)
    assert result.ok and result.value == len(dtypes) * len(sizes), result


def copy_from_threads(threads, repetitions):
    import concurrent.futures
    import numpy as np
    import tensorflow as tf

    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(repetitions):
            data = random.normal(size=random.integers(1, 5000))
            with tf.device(f"/device:SIM:{seed % 2}"):
                x = tf.constant(data)
            with tf.device(f"/device:SIM:{1 - seed % 2}"):
                y = tf.identity(x)
            assert (y.numpy() == data).all(), (seed, data.size)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    return threads


def test_copies_from_several_threads():
    result = harness.run(copy_from_threads, 8, 100)
    assert result.ok and result.value == 8, result


# ---- Strict memory -----------------------------------------------------------


def touch_device_memory():
    """Reads device memory on the host."""
    import ctypes
    import tensorflow as tf
    with tf.device("/device:SIM:0"):
        tf.fill([1000], 7.0).numpy()
    # A forked child inherits none of the device memory (flag "dc"). In strict mode,
    # TensorFlow's addresses are the largest of these mappings, guards included.
    found = []
    for line in open("/proc/self/smaps", encoding="ascii"):
        fields = line.split()
        if "-" in fields[0]:
            mapping = [int(word, 16) for word in fields[0].split("-")]
        elif fields[0] == "VmFlags:" and "dc" in fields:
            found.append(mapping)
    first, end = max(found, key=lambda mapping: mapping[1] - mapping[0])
    return len(ctypes.string_at((first + end) // 2, 4))


def test_strict_memory_crashes_on_a_stray_access():
    result = harness.run(touch_device_memory)
    assert result.died == -signal.SIGSEGV, result


def test_lenient_memory_allows_a_stray_access():
    result = harness.run(touch_device_memory, env={"CPU_SIM_STRICT": "0"})
    assert result.ok and result.value == 4, result


def use_after_fork(device):
    """Returns the messages of the errors in a forked child, in order."""
    import os
    import signal
    import time
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device(f"/device:{device}"):
        x = tf.constant([1.0, 2.0])
        assert (x + x).numpy().tolist() == [2.0, 4.0]
        # TensorFlow's own threads come to rest: a lock that one of them holds at the
        # time of the fork would never be released in the child.
        time.sleep(0.3)
        readable, writable = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            for work in (lambda: x + x, lambda: tf.matmul([x], [x], False, True)):
                try:
                    work()
                    os.write(writable, b"no error\n")
                except tf.errors.FailedPreconditionError as error:
                    os.write(writable, str(error).replace("\n", " ").encode() + b"\n")
            os._exit(0)
        os.close(writable)
        status = os.waitpid(child, 0)[1]
        with open(readable, encoding="utf-8") as pipe:
            messages = pipe.read().splitlines()
        return [os.waitstatus_to_exitcode(status), messages,
                (x + x).numpy().tolist()]


def expect_errors_after_fork(result):
    """Asserts what use_after_fork() returns on a device that refuses forks."""
    exit_code, messages, after = result
    assert exit_code == 0, "the child hangs"
    assert len(messages) == 2 and after == [2.0, 4.0]
    for message in messages:
        assert "the process was forked" in message


def test_use_after_fork_is_an_error():
    result = harness.run(use_after_fork, "SIM:0")
    assert result.ok, result
    expect_errors_after_fork(result.value)


def update_in_place():
    """TensorFlow's own kernel would access a device address on the host; cpu_sim's
    kernel returns an error instead."""
    import tensorflow as tf
    tf.config.set_soft_device_placement(False)
    with tf.device("/device:SIM:0"):
        v = tf.Variable([3.0, 4.0])
        for update in (v.assign_add, v.assign_sub):
            try:
                update([1.0, 1.0])
            except tf.errors.UnimplementedError as error:
                assert "v.assign(" in str(error)
            else:
                return "updated"
        v.assign(v - 1.0)
    return v.numpy().tolist()


def test_update_in_place_raises():
    result = harness.run(update_in_place, env={"TFPLUG_PYTHON_UPDATES": "0"})
    if harness.lets_kernels_update_variables():
        assert result.value == "updated", result
        return
    assert result.ok and result.value == [2.0, 3.0], result
