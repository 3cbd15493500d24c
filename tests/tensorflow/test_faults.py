# SPDX-License-Identifier: Apache-2.0
"""Failures of the driver in each hook that TensorFlow calls: the error that Python
gets, and whether the process, its memory and the next step survive.

docs/measured/tensorflow_behavior.md describes the failures on which TensorFlow
itself aborts.
"""

import gc

import harness
import pytest
from fault import KINDS, Faults

CODES = {"error": "InternalError", "oom": "ResourceExhaustedError",
         "throw": "InternalError", "bad_alloc": "ResourceExhaustedError",
         "unknown": "InternalError"}
OUT_OF_MEMORY = dict.fromkeys(KINDS, "ResourceExhaustedError")
SWALLOWED = dict.fromkeys(KINDS, "")
# TensorFlow replaces the status of this hook with its own.
INTERNAL = dict.fromkeys(KINDS, "InternalError")

# hook -> (action that makes TensorFlow call it, error in Python for each kind of failure)
HOOKS = {
    "allocate": ("fill_much", OUT_OF_MEMORY),
    "memcpy_htod": ("to_device", CODES),
    "memcpy_dtoh": ("to_host", CODES),
    "memcpy_dtod": ("to_other_device", CODES),
    "launch": ("add", CODES),
    "create_stream_dependency": ("to_device", CODES),
    "host_callback": ("step", CODES),
    "record_event": ("to_host", SWALLOWED),
    "get_event_status": ("to_host", SWALLOWED),
    "synchronize_all_activity": ("to_host", INTERNAL),
}
# Nothing in Python calls these hooks of a pluggable device; unit tests do.
NEVER_CALLED = [
    "unified_memory_allocate", "unified_memory_deallocate",
    "host_memory_allocate", "sync_memcpy_htod", "sync_memcpy_dtoh",
    "sync_memcpy_dtod", "mem_zero", "memset", "memset32", "wait_for_event",
    "block_host_until_done", "nanoseconds"]
# 2.22 waits with another one before it copies a result.
if harness.release() >= (2, 22):
    del HOOKS["synchronize_all_activity"]
    HOOKS["block_host_until_done"] = ("to_host", CODES)
    NEVER_CALLED.remove("block_host_until_done")
_state = {}


def setup():
    """Returns the actions, which the first call in a process creates and warms up."""
    if _state:
        return _state
    faults = Faults()
    import numpy as np
    import tensorflow as tf
    for device in tf.config.list_physical_devices("SIM"):
        tf.config.experimental.set_memory_growth(device, True)
    tf.config.set_soft_device_placement(False)
    data = np.arange(1000, dtype=np.float32)
    with tf.device("/device:SIM:0"):
        one, two = tf.constant(data), tf.constant(data + 1)

    def on_device(action):
        def run():
            with tf.device("/device:SIM:0"):
                return action()
        return run

    def to_other_device():
        with tf.device("/device:SIM:0"):
            three = one + two  # a new tensor: TensorFlow caches copies of old ones
        with tf.device("/device:SIM:1"):
            return tf.identity(three)

    @tf.function
    def step(x, y):
        with tf.device("/device:SIM:0"):
            z = x + y
        with tf.device("/device:CPU:0"):
            z = tf.sqrt(z)
        with tf.device("/device:SIM:0"):
            return z * x

    _state.update(
        faults=faults, tf=tf, np=np,
        actions={
            "add": on_device(lambda: one + two),
            "fill": on_device(lambda: tf.fill([10**7], 1.0)),
            # Needs more than is free in the blocks from the driver, but less than the
            # device has.
            "fill_much": on_device(
                lambda: [tf.fill([10**7], 1.0) for _ in range(12)]),
            "to_device": on_device(lambda: tf.constant(data + 2)),
            "to_host": lambda: (one + two).numpy(),
            "to_other_device": to_other_device,
            "step": lambda: step(one, two)},
        expected=np.sqrt(data + data + 1) * data)
    check_step()
    return _state


def check_step():
    """Checks that a step on all devices still computes the correct result."""
    np = _state["np"]
    result = _state["actions"]["step"]().numpy()
    assert np.allclose(result, _state["expected"], rtol=1e-6), "wrong result"
    other = _state["actions"]["to_other_device"]().numpy()
    assert (other == 2 * np.arange(1000) + 1).all(), "wrong copy"


def bytes_in_use():
    gc.collect()
    config = _state["tf"].config.experimental
    return [config.get_memory_info(f"SIM:{i}")["current"] for i in (0, 1)]


def fail(hook, kind):
    """Runs the hook's action with a fault. Returns the error in Python, whether the
    fault was reached, and the bytes leaked on each device."""
    state = setup()
    action = state["actions"][HOOKS[hook][0]]
    check_step()
    warm_up = state["actions"]["fill"] if hook == "allocate" else action
    warm_up()
    before = bytes_in_use()
    seen, message = "", ""
    # After a failure, the allocator retries with a smaller size.
    times = 10**6 if hook == "allocate" else 1
    state["faults"].arm(hook, kind, times=times)
    try:
        result = action()
        if hook in ("record_event", "get_event_status"):
            assert (result == 2 * state["np"].arange(1000) + 1).all()
        del result
    except state["tf"].errors.OpError as error:
        seen, message = type(error).__name__, str(error)
    reached = times > 1 or state["faults"].reached
    state["faults"].disarm()
    check_step()
    leaked = [b - a for a, b in zip(before, bytes_in_use())]
    return {"reached": reached, "seen": seen, "message": message,
            "leaked": leaked}


def count_calls(hook):
    """Returns the number of times that a step calls the hook."""
    state = setup()
    state["faults"].arm(hook, after=10**6)
    check_step()
    calls = 10**6 - state["faults"].after
    state["faults"].disarm()
    return calls


@pytest.fixture(scope="module", name="failures")
def _failures():
    # TensorFlow's allocator retries for 10 s before it fails, so it gets one kind
    # of failure only; the plug-in's own allocator gets the others.
    cases = [[hook, kind] for hook in HOOKS for kind in KINDS
             if (hook, kind) != ("allocate", "throw")]
    direct = [c for c in cases if c[0] == "allocate"]
    cases = [c for c in cases if c not in direct] + [["allocate", "throw"]]
    results = harness.run_each(fail, cases)
    results += harness.run_each(fail, direct, env={"CPU_SIM_BFC": "0"})
    return {tuple(case): result
            for case, result in zip(cases + direct, results)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hook", HOOKS)
def test_failure_reaches_python(failures, hook, kind):
    result = failures[hook, kind]
    assert result.ok, result
    value = result.value
    assert value["reached"], "TensorFlow did not call it"
    assert value["seen"] == HOOKS[hook][1][kind], value["message"]
    thrown = kind in ("bad_alloc", "unknown")  # their messages do not come from tfplug
    in_kernel = hook in ("launch", "host_callback")
    if HOOKS[hook][1] is CODES and not (in_kernel and thrown):
        assert hook in value["message"], "the message does not name the hook"
    # Nothing tells when the copy before the refused task is done.
    assert value["leaked"] == [0, 0] or hook == "host_callback"


def test_hooks_that_tensorflow_never_calls():
    results = harness.run_each(count_calls, [[h] for h in NEVER_CALLED] +
                               [["launch"]])
    assert all(r.ok for r in results), next(r for r in results if not r.ok)
    assert [r.value for r in results[:-1]] == [0] * len(NEVER_CALLED)
    assert results[-1].value > 0


# ---- While the device is created ---------------------------------------------


def first_use():
    import tensorflow as tf
    devices = len(tf.config.list_physical_devices("SIM"))
    with tf.device("/device:SIM:0"):
        return [devices, (tf.constant([1.0]) + 1.0).numpy().tolist()]


def start(hook, kind="error", **env):
    return harness.run(first_use, env={
        "CPU_SIM_FAULT": f"hook={hook},kind={kind}", **env})


def test_bfc_allocator_requests_less_after_a_failure():
    result = start("allocate", "oom")
    assert result.ok and result.value == [2, [2.0]], result


def test_unknown_memory_size_is_an_error():
    result = start("device_memory_usage")
    assert result.error.startswith("UnknownError"), result
    assert "Failed to query available memory" in result.error


def test_device_that_cannot_be_created():
    result = start("create_device")
    assert result.error.startswith(("RuntimeError", "InternalError")), result
    assert "injected: create_device failed" in result.error


# ---- Where TensorFlow aborts, whatever the plug-in does ----------------------
# See docs/measured/tensorflow_behavior.md, which must be updated if a release
# improves on this.


@pytest.mark.parametrize("hook", ["create_stream", "create_event"])
def test_tensorflow_crashes_on_an_error_that_it_ignores(hook):
    result = start(hook)
    assert result.died in (-6, -11), result


def test_tensorflow_aborts_if_work_fails():
    """TensorFlow can only abort here or return a wrong result."""
    result = start("device")
    assert result.died == -6, result
    assert "Unexpected Event status: 1" in result.log
