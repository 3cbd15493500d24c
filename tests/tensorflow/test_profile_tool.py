# SPDX-License-Identifier: Apache-2.0
"""tools/profile: what it says about a device, and that it records any command."""

import json
import re
import subprocess
import sys

import harness
import pytest

TOOL = harness.ROOT / "tools/lib/profile"
sys.path.extend([str(TOOL), str(TOOL.parent)])
import analysis
import main
import page
import perfetto
import region_log
import summary
import xspace

# Two steps of an addition that takes the device a second; then the exit status 3.
SCRIPT = """
import sys
import tensorflow as tf
with tf.device("LATE:0"):
    x = tf.constant([1.0, 2.0])
    for i in range(2):
        with tf.profiler.experimental.Trace("train", step_num=i, _r=1):
            y = tf.raw_ops.AddV2(x=x, y=x).numpy()
            print(sys.argv[1:])
sys.exit(3)
"""


def kernel(name, node, begin, end, correlation):
    return xspace.Event(name, begin, end, {
        "tf_op": f"{node}:{name}", "kernel_details": "",
        "correlation_id": correlation})


def trace():
    """Two kernels with 100 ns between them: 10 before the launch of the second, during
    4 of which there is a copy; then 30 of waiting and 60 of nothing."""
    stream = xspace.Line("Stream 1 (Compute)", [
        kernel("MatMul", "a", 0, 300, 1),
        xspace.Event("wait_for_event", 310, 340, {}),
        kernel("Relu", "b", 400, 500, 2)])
    copies = xspace.Line("Stream 2 (MemcpyH2D)", [xspace.Event(
        "MemcpyH2D", 306, 310, {"memcpy_details": "", "bytes": 8})])
    host = xspace.Line("python", [
        xspace.Event("MatMul", 0, 0, {"correlation_id": 1}),
        xspace.Event("Relu", 305, 310, {"correlation_id": 2})])
    return xspace.Trace(
        devices=[xspace.Device("SIM:0", [stream, copies])], threads=[host],
        memory={"bfc": [(0, 100, 100, 900), (200, 700, 700, 300), (300, 50, 700, 950)]},
        steps=[xspace.Event("train", 0, 500, {})], duration=500, dropped=7,
        launches={event.correlation: event for event in host.events})


def test_idle_time_has_reasons():
    report = analysis.analyze(trace().devices[0], trace())
    assert (report.busy, report.span) == (400, 500)
    assert report.idle == {"trace": 0, "host": 6, "copy": 4, "dependency": 30, "start": 60}
    gap, = report.gaps
    assert (gap.begin, gap.end, gap.next.node) == (300, 400, "b")
    assert analysis.gaps_by_node(report.gaps, "host") == [("b", 1, 6)]
    assert [(op.name, op.runs, op.total) for op in report.ops] == [
        ("MatMul", 1, 300), ("Relu", 1, 100)]
    assert report.copies == {"MemcpyH2D": (1, 8, 4)}


def test_tracing_is_a_reason():
    """Until the run of the traced graph, which is the last one in the call."""
    profile = trace()
    profile.threads.append(xspace.Line("python", [
        xspace.Event("step", 290, 390, {"tf_function_call": "traced-nonXla"}),
        xspace.Event("EagerExecute", 295, 296, {}),
        xspace.Event("EagerExecute", 303, 380, {})]))
    report = analysis.analyze(profile.devices[0], profile)
    assert report.idle == {"trace": 3, "host": 3, "copy": 4, "dependency": 30,
                           "start": 60}
    profile.threads[1].events[0].stats["tf_function_call"] = "notTraced-nonXla"
    assert analysis.analyze(profile.devices[0], profile).idle["trace"] == 0


def test_the_lines_name_what_matters():
    lines = list(summary.lines(
        [analysis.analyze(trace().devices[0], trace())], trace()))
    assert lines[0].startswith("WARNING: 7 events are missing")
    assert "80 % of the 500 ns" in lines[1] and "1 step of 500 ns" in lines[1]
    assert lines[2] == ("it was idle 12 % launched, but not started yet, 6 % waiting "
                        "for another stream or an event, 1 % waiting for the host, "
                        "1 % waiting for a copy or a fill")
    assert "MatMul took 75 % of the kernels' time: once" in lines[4]
    assert lines[-1].startswith("the allocator bfc had at most 700 bytes in use")
    assert len(lines) <= 10
    assert "no device ran a kernel" in list(summary.lines([], trace()))[1]


def test_overlapping_kernels_are_not_idle():
    found = analysis.union([kernel("A", "a", 0, 10, 1), kernel("A", "a", 5, 20, 2),
                            kernel("A", "a", 30, 40, 3)])
    assert found == [[0, 20], [30, 40]]
    assert analysis.covered(found, 15, 35) == 10
    assert analysis.covered(found, 20, 30) == 0


def test_the_trace_for_perfetto_connects_launches_and_kernels():
    events = list(perfetto.events(trace()))
    flows = [(event["ph"], event["id"], event["ts"]) for event in events
             if event["ph"] in "sf"]
    assert sorted(flows) == [("f", "1", 0), ("f", "2", 0.4), ("s", "1", 0),
                             ("s", "2", 0.305)]
    assert [event["args"]["bytes in use"] for event in events
            if event["ph"] == "C"] == [100, 700, 50]


def test_the_page_is_self_contained(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "MOST_EVENTS", 3)
    page.write(trace(), [analysis.analyze(trace().devices[0], trace())], "</script>",
               tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "http:" not in text and "https:" not in text and "@" not in text.replace(
        "@media", "")
    assert text.count("</script>") == 2, "the title is escaped"
    data = text.partition('id="data" type="application/json">')[2].partition("<")[0]
    timeline = json.loads(data)["timeline"]
    assert sum(len(row["begin"]) for row in timeline["rows"]) == 3
    assert timeline["left_out"] == 3


REGIONS = """\
tfplug: the region 'a/region' runs 3 nodes (2 inputs)
tfplug: the region 'b/region' runs 40 nodes (1 inputs)
tfplug: the region 'a/region' ends at 'x' (Elu) and 0 others, which another region needs
tfplug: the region 'a/region' ends at 'n' (Neg) and 2 others, which another region needs
tfplug: 'x' (Elu) is in no region: its op has a state
tfplug: 'y' (Elu) is in no region: its op has a state
something else
tfplug: 'x' (Elu) is in no region: its op has a state
tfplug: 'y' (Elu) is in no region: <must be preserved>
tfplug: the region 'b/region' is not recorded: a kernel uses the stream itself
tfplug: the region 'a/reg
"""


def test_regions_are_in_the_page(tmp_path):
    log = tmp_path / "regions.log"
    log.write_text(REGIONS)
    regions = region_log.read(log)
    assert regions == {
        "regions": [
            {"name": "b/region", "nodes": 40, "inputs": 1, "ends": [],
             "not_recorded": "a kernel uses the stream itself"},
            {"name": "a/region", "nodes": 3, "inputs": 2, "not_recorded": "",
             "ends": [{"op": "Elu", "nodes": 1, "example": "x"},
                      {"op": "Neg", "nodes": 3, "example": "n"}]}],
        "outside": [
            {"op": "Elu", "why": "its op has a state", "nodes": 1, "example": "x"},
            {"op": "Elu", "why": "<must be preserved>", "nodes": 1, "example": "y"}]}
    assert region_log.lines(regions)[:3] == [
        "2 regions of 40, 3 nodes (TFPLUG_REGIONS=1)",
        "b/region is not recorded: a kernel uses the stream itself",
        "a/region ends at x (Elu), 3 x Neg such as n"]
    assert "no region" in region_log.lines(region_log.read(tmp_path / "absent"))[0]
    reports = [analysis.analyze(trace().devices[0], trace())]
    page.write(trace(), reports, "title", tmp_path / "page.html", regions)
    text = (tmp_path / "page.html").read_text()
    assert "<td>a kernel uses the stream itself</td>" in text
    assert "<h2>Regions</h2>" in text and "&lt;must be preserved&gt;" in text
    assert "2 regions run 43 nodes, and 2 nodes are in none" in text
    page.write(trace(), reports, "title", tmp_path / "page.html")
    assert "Regions" not in (tmp_path / "page.html").read_text()


def test_commands_are_recognized(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()

    def command(*arguments):
        return main.parse(list(arguments)).command
    assert command("train.py", "--out", "x") == ["train.py", "--out", "x"]
    assert command("--out", "x", "--", "-m", "train") == ["-m", "train"]
    assert command("python3", "-c", "pass") == ["-c", "pass"]
    for wrong in ([], ["--read", "x", "train.py"], ["missing.py"],
                  ["--read", "missing.pb"], ["--plugin", "none.so", "train.py"]):
        with pytest.raises(SystemExit):
            main.parse(wrong)
    (tmp_path / "no_profile.pb").write_text("text")
    with pytest.raises(SystemExit, match="is no profile"):
        main.explain("no_profile.pb", main.parse(["--read", "no_profile.pb"]))


def test_a_command_is_recorded_without_changes(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    result = subprocess.run(
        [sys.executable, "-B", TOOL / "main.py", "--plugin",
         harness.small_plugin_path("late_device"), "--", "python", "-m", "train",
         "--flag", "value"], cwd=tmp_path, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    assert result.returncode == 3, result
    assert result.stdout.count("['--flag', 'value']") == 2
    lines = result.stdout.partition("perfetto.json")[2].splitlines()[1:]
    assert "LATE:0 ran kernels for 2" in lines[0] and "2 steps of 1" in lines[0]
    assert any("AddV2 took 100 % of the kernels' time: 2 times, 1" in line
               for line in lines), lines
    trace_json = json.loads((tmp_path / "profile/perfetto.json").read_text())
    ends = {event["id"] for event in trace_json["traceEvents"] if event["ph"] == "f"}
    begins = {event["id"] for event in trace_json["traceEvents"] if event["ph"] == "s"}
    assert ends == begins and len(ends) >= 2
    page = (tmp_path / "profile/profile.html").read_text()
    assert re.search(r"Stream \d+ \(Compute", page)
