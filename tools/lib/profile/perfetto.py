# SPDX-License-Identifier: Apache-2.0
"""Writes a profile in Chrome's trace format, which ui.perfetto.dev reads."""

import json


def _name(process, thread, process_name, thread_name):
    yield {"ph": "M", "pid": process, "name": "process_name",
           "args": {"name": process_name}}
    yield {"ph": "M", "pid": process, "tid": thread, "name": "thread_name",
           "args": {"name": thread_name}}


def _event(process, thread, event):
    return {"ph": "X", "pid": process, "tid": thread, "name": event.name,
            "ts": event.begin / 1000, "dur": event.duration / 1000,
            "args": {key: value for key, value in event.stats.items()
                     if isinstance(value, (int, float, str))}}


def _flow(process, thread, kind, time, event):
    return {"ph": kind, "pid": process, "tid": thread, "ts": time / 1000,
            "id": str(event.correlation), "name": "launch", "cat": "launch",
            **({"bp": "e"} if kind == "f" else {})}


def events(trace):
    """Yields the events of the format; times are in microseconds."""
    launched = set()
    for i, device in enumerate(trace.devices):
        process = 1000 + i
        for thread, stream in enumerate(device.streams):
            yield from _name(process, thread, device.name, stream.name)
            for event in stream.events:
                yield _event(process, thread, event)
                if event.correlation in trace.launches:
                    launched.add(event.correlation)
                    yield _flow(process, thread, "f", event.begin, event)
    for thread, line in enumerate(trace.threads):
        yield from _name(1, thread, "host", line.name)
        for event in line.events:
            yield _event(1, thread, event)
            if event.correlation in launched:
                yield _flow(1, thread, "s", event.begin, event)
    for name, uses in trace.memory.items():
        for time, in_use, *_ in uses:
            yield {"ph": "C", "pid": 1, "name": name, "ts": time / 1000,
                   "args": {"bytes in use": in_use}}


def write(trace, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit":"ns","traceEvents":[\n')
        separator = ""
        for event in events(trace):
            file.write(separator + json.dumps(event))
            separator = ",\n"
        file.write("\n]}\n")
