# SPDX-License-Identifier: Apache-2.0
"""Records a profile, and checks what xprof reads in it: see tools/profile-check.

  profile_check.py record PLUGIN    in an environment with TensorFlow
  profile_check.py check FOLDER     in an environment with xprof

The profile is that of tests/tensorflow/test_profiler.py: two steps of two additions,
each of which takes the device a second.
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def record(plugin):
    sys.path.append(str(ROOT / "tests/tensorflow"))
    import harness
    harness.installed_plugins.hide()
    from tensorflow.python.framework import load_library
    load_library.load_pluggable_device_library(plugin)
    import test_profiler
    test_profiler.late_steps()


def rows(table):
    """Returns the rows of a table of Google Charts as dictionaries."""
    names = [column["id"] for column in table["cols"]]
    return [dict(zip(names, (cell["v"] for cell in row["c"])))
            for row in table["rows"]]


def check(folder):
    from xprof.convert import raw_to_tool_data
    file, = pathlib.Path(folder).rglob("*.xplane.pb")

    def read(tool):
        data, _ = raw_to_tool_data.xspace_to_tool_data([str(file)], tool, {})
        return json.loads(data)

    def expect(what, found, is_right):
        print(f"{'ok    ' if is_right else 'FAILED'} {what}: {found}")
        return is_right

    results = []
    kernels = rows(read("kernel_stats"))
    found = [(row["kernel_name"], row["op_name"], row["occurrences"],
              round(row["avg_duration_us"] / 1e6, 1)) for row in kernels]
    results.append(expect(
        "kernels (name, node, runs, seconds)", found,
        sorted(found) == [("AddV2", "double", 2, 1.0), ("AddV2", "triple", 2, 1.0)]))

    ops = [row for row in rows(read("framework_op_stats")[0])
           if row["host_or_device"] == "Device" and row["type"] != "IDLE"]
    found = [(row["type"], row["operation"], row["occurrences"]) for row in ops]
    results.append(expect(
        "ops on the device", found,
        sorted(found) == [("AddV2", "double", 2), ("AddV2", "triple", 2)]))

    overview = read("overview_page")
    found, = [table["p"]["steptime_ms_average"] for table in overview
              if "steptime_ms_average" in table.get("p", {})]
    results.append(expect("milliseconds of a step", found,
                          2000 <= float(found) < 3000))

    memory = read("memory_profile")["memoryProfilePerAllocator"]
    uses = memory.get("LATE_0_tfplug", {}).get("sampledTimelineSnapshots", [])
    found = [int(use["aggregationStats"]["heapAllocatedBytes"]) for use in uses]
    results.append(expect("bytes in use", found, found == [4000, 8000, 4000, 8000, 12000, 8000, 4000]))

    flows = {}
    for event in read("trace_viewer")["traceEvents"]:
        if "flow" in event.get("args", {}) and event["name"] == "AddV2":
            on_host = event["pid"] >= 700
            flows.setdefault(event["args"]["correlation_id"], []).append(
                ("launch" if on_host else "kernel", event["args"].get("group_id")))
    found = sorted(sorted(ends) for ends in flows.values())
    results.append(expect(
        "flows from launches to kernels, by step", found,
        found == [[("kernel", step), ("launch", step)]
                  for step in ("0", "0", "1", "1")]))
    return 0 if all(results) else 1


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(sys.argv[2])
    else:
        sys.exit(check(sys.argv[2]))
