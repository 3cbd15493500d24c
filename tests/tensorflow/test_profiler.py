# SPDX-License-Identifier: Apache-2.0
"""Profilers in stock TensorFlow: an author's own, and the one of every device."""

import harness


def read_profile(folder):
    """Returns the XSpace in a profile's folder."""
    import pathlib
    try:
        from tensorflow.tsl.profiler.protobuf import xplane_pb2
    except ImportError:  # until 2.11
        from tensorflow.core.profiler.protobuf import xplane_pb2
    file, = pathlib.Path(folder).rglob("*.xplane.pb")
    return xplane_pb2.XSpace.FromString(file.read_bytes())


def events_of(plane):
    """Returns {line: [event]} of a plane; an event is a dictionary."""
    def value(stat):
        kind = stat.WhichOneof("value")
        result = getattr(stat, kind)
        return plane.stat_metadata[result].name if kind == "ref_value" else result
    return {line.name: [
        {"name": plane.event_metadata[event.metadata_id].name,
         "begin": line.timestamp_ns * 1000 + event.offset_ps,
         "duration": event.duration_ps,
         **{plane.stat_metadata[stat.metadata_id].name: value(stat)
            for stat in event.stats}} for event in line.events]
        for line in plane.lines}


def own_profile(libraries):
    """Records two profiles and returns the events of each."""
    import os
    import time
    import tensorflow as tf
    from tensorflow.python.framework import load_library
    for library in libraries:
        load_library.load_pluggable_device_library(library)
    profiles = []
    for i in range(2):
        folder = f"{os.environ['TFPLUG_SCRATCH']}/profile{i}"
        tf.profiler.experimental.start(folder)
        time.sleep(0.02)
        tf.profiler.experimental.stop()
        profiles.append({plane.name: events_of(plane)
                         for plane in read_profile(folder).planes})
    return profiles


def test_the_events_of_an_own_profiler_are_in_the_profile():
    libraries = [str(harness.small_plugin_path(name))
                 for name in ("own_profiler", "failing_profiler")]
    result = harness.run(own_profile, libraries, plugin=False)
    assert result.ok, result
    for i, profile in enumerate(result.value):
        event, = profile["/device:CUSTOM:OWN"]["Counters"]
        assert event["name"] == "a whole profile"
        assert event["collected"] == i + 1, "collected once for each profile"
        assert 0.02e12 <= event["duration"] < 60e12, "picoseconds"
        assert 0 <= event["begin"] < 60e12, "counted from the profile's start"
    assert "no counters to start" in result.log


def late_steps():
    """Runs two steps of two additions, each of which takes the device a second."""
    import os
    import tensorflow as tf
    folder = f"{os.environ['TFPLUG_SCRATCH']}/profile"
    tf.config.set_soft_device_placement(False)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    with tf.device("/device:LATE:0"):
        @tf.function(jit_compile=False)
        def step(x):
            doubled = tf.raw_ops.AddV2(x=x, y=x, name="double")
            return tf.raw_ops.AddV2(x=doubled, y=x, name="triple")

        traced = step.get_concrete_function(
            tf.TensorSpec([1000], tf.float32))
        x = tf.constant([1.0] * 1000)
        traced(x).numpy()
        tf.profiler.experimental.start(folder)
        for i in range(2):
            with tf.profiler.experimental.Trace("train", step_num=i, _r=1):
                y = traced(x)
                y.numpy()
        tf.profiler.experimental.stop()
        traced(x).numpy()  # not in the profile
    return {plane.name: events_of(plane)
            for plane in read_profile(folder).planes}


def test_the_kernels_copies_and_memory_of_a_device_are_in_the_profile():
    result = harness.run(late_steps, plugin=False, env={
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH":
            str(harness.small_plugin_path("late_device"))})
    assert result.ok, result
    device = result.value["/device:GPU:0 (LATE:0)"]
    # The number of the stream depends on the release.
    compute, = [name for name in device if name.endswith("(Compute)")]
    kernels = [event for event in device[compute] if "kernel_details" in event]
    assert [event["tf_op"] for event in kernels] == [
        "double:AddV2", "triple:AddV2"] * 2
    for event in kernels:
        assert 1e12 <= event["duration"] < 1.5e12
    host = [event for events in result.value["/host:CPU"].values()
            for event in events]
    for kernel in kernels:
        launch, = [event for event in host if event.get(
            "correlation_id") == kernel["correlation_id"]]
        assert launch["name"] == "AddV2"
        assert launch["duration"] < 0.5e12
        assert 0 <= kernel["begin"] - launch["begin"] < 1.5e12
    # The device is busy: its kernels take as long as the steps.
    steps = sum(event["duration"] for event in host if event["name"] == "train")
    assert 0.95 * steps < sum(event["duration"] for event in kernels) < 1.05 * steps
    copies = [event for line, events in device.items() if "MemcpyD2H" in line
              for event in events]
    assert [event["bytes"] for event in copies] == [4000, 4000]
    memory = [event for event in host
              if event.get("allocator_name") == "LATE_0_tfplug"]
    assert {event["name"] for event in memory} == {
        "MemoryAllocation", "MemoryDeallocation"}
    assert {event["allocation_bytes"] for event in memory
            if event["name"] == "MemoryAllocation"} == {4000}
