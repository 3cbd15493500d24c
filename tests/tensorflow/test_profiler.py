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
