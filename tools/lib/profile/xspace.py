# SPDX-License-Identifier: Apache-2.0
"""Reads a profile: the devices' streams, the host's threads, memory and steps."""

import dataclasses
import pathlib
import re

# The lines of a device's plane that are streams, as tfplug and CUPTI name them.
_STREAM = re.compile(r"Stream #(\d+)(.*)")


@dataclasses.dataclass(slots=True)
class Event:
    name: str
    begin: int  # nanoseconds since the begin of the trace
    end: int
    stats: dict

    @property
    def duration(self):
        return self.end - self.begin

    @property
    def correlation(self):
        return self.stats.get("correlation_id")

    @property
    def node(self):
        """The node in TensorFlow's graph, or ""."""
        tf_op = self.stats.get("tf_op", "")
        return tf_op.rpartition(":")[0] or self.stats.get("node", "")

    @property
    def kind(self):
        """kernel, copy, fill or wait, for an event of a device."""
        if "kernel_details" in self.stats:
            return "kernel"
        if "memcpy_details" in self.stats:
            return "copy" if self.name.startswith("Memcpy") else "fill"
        return "wait"


@dataclasses.dataclass
class Line:
    name: str
    events: list  # of Event, in the order of their begin


@dataclasses.dataclass
class Device:
    name: str  # such as SIM:0
    streams: list  # of Line, with the waits of each stream in its line

    def events(self, *kinds):
        return sorted((event for stream in self.streams for event in stream.events
                       if event.kind in kinds), key=lambda event: event.begin)


@dataclasses.dataclass
class Trace:
    devices: list
    threads: list  # of Line
    memory: dict  # allocator: [(time, bytes in use, peak, free bytes)]
    steps: list  # of Event
    duration: int
    dropped: int
    launches: dict  # correlation: Event on the host


def _messages():
    try:
        from tensorflow.tsl.profiler.protobuf import xplane_pb2
    except ImportError:  # until 2.11
        from tensorflow.core.profiler.protobuf import xplane_pb2
    return xplane_pb2


def _reader(plane):
    """Returns a function that returns the Events of a line of the plane."""
    names = {key: value.name for key, value in plane.event_metadata.items()}
    stats = {key: value.name for key, value in plane.stat_metadata.items()}

    def value(stat):
        kind = stat.WhichOneof("value")
        found = getattr(stat, kind) if kind else None
        return stats.get(found, "") if kind == "ref_value" else found

    def read_events(line):
        events = []
        for event in line.events:
            begin = line.timestamp_ns + event.offset_ps // 1000
            events.append(Event(
                names.get(event.metadata_id, "?"), begin,
                begin + event.duration_ps // 1000,
                {stats[stat.metadata_id]: value(stat) for stat in event.stats}))
        return sorted(events, key=lambda event: (event.begin, -event.end))
    return read_events


def _device(plane):
    streams, read_events = {}, _reader(plane)
    for line in plane.lines:
        match = _STREAM.match(line.name)
        if not match:
            continue
        number, purpose = int(match.group(1)), match.group(2)
        stream = streams.setdefault(number, Line("", []))
        stream.events += read_events(line)
        if purpose.startswith("(") or not stream.name:
            stream.name = (f"Stream {number}" +
                           (f" {purpose}" if purpose.startswith("(") else ""))
    for stream in streams.values():
        stream.events.sort(key=lambda event: (event.begin, -event.end))
    name = re.search(r"\((.*)\)", plane.name)
    return Device(name.group(1) if name else plane.name,
                  [streams[number] for number in sorted(streams)])


def _memory(threads):
    """Returns the uses of each allocator in the order of time."""
    uses = {}
    for thread in threads:
        for event in thread.events:
            if event.name in ("MemoryAllocation", "MemoryDeallocation"):
                stats = event.stats
                uses.setdefault(stats.get("allocator_name", "?"), []).append(
                    (event.begin, *(int(stats.get(name) or 0) for name in (
                        "bytes_allocated", "peak_bytes_in_use", "bytes_available"))))
    return {name: sorted(found) for name, found in uses.items()}


def read(file):
    """Reads an .xplane.pb file. Times count from the first event. Raises ValueError if
    it is none."""
    from google.protobuf.message import DecodeError
    try:
        space = _messages().XSpace.FromString(pathlib.Path(file).read_bytes())
    except DecodeError as error:
        raise ValueError(f"{file} is no profile of TensorFlow's, an .xplane.pb file: "
                         f"{error}") from error
    devices, threads = [], []
    for plane in space.planes:
        if plane.name.startswith("/device:GPU:"):
            devices.append(_device(plane))
        elif plane.name in ("/host:CPU", "/host:CUPTI"):
            read_events = _reader(plane)
            threads += [Line(line.name.partition("/")[0] or f"thread {line.id}",
                             read_events(line)) for line in plane.lines]
    lines = threads + [line for device in devices for line in device.streams]
    events = [event for line in lines for event in line.events]
    origin = min((event.begin for event in events), default=0)
    for event in events:
        event.begin -= origin
        event.end -= origin
    hosted = [event for line in threads for event in line.events]
    dropped = sum(int(event.stats.get("dropped") or 0) for event in hosted)
    return Trace(
        devices=[device for device in devices if device.streams],
        threads=[line for line in threads if line.events],
        memory=_memory(threads),
        steps=sorted((event for event in hosted if event.stats.get("_r") and
                      "step_num" in event.stats), key=lambda event: event.begin),
        duration=max((event.end for event in events), default=0),
        dropped=dropped,
        launches={event.correlation: event for event in hosted
                  if event.correlation is not None})
