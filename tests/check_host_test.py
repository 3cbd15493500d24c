# SPDX-License-Identifier: Apache-2.0
"""Checks how tfplug check runs its program, and what it says about how that ended."""

import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "packaging/python"))
import check  # noqa: E402
import check_host  # noqa: E402
import check_list  # noqa: E402
import check_report  # noqa: E402


class CheckHostTest(unittest.TestCase):
    def test_only_a_step_that_takes_long_hangs(self):
        step = """echo '{"level": "step", "text": "graph %d"}'"""
        for script, level, text in (
                (f"{step % 1}; sleep 60", "error", "hangs: graph 1 has not ended after 2 s"),
                ("; sleep 0.3; ".join(step % i for i in range(60)), "skipped",
                 "increase --seconds"),
                # A child that outlives the check has its pipes.
                ("sleep 60 & exit 3", "error", "status 3 in the start")):
            with self.subTest(script=script):
                (found, message), = check_host.run(["sh", "-c", script], 2, {})
                self.assertEqual(found, level)
                self.assertIn(text, message)

    def test_time_without_a_processor_does_not_count(self):
        pinned = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
        rivals = [subprocess.Popen(["timeout", "5", *pinned, "sh", "-c", "while :; do :; done"],
                                   start_new_session=True) for _ in range(8)]
        count = [*pinned, "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]
        self.assertEqual(check_host.run(count, 2, {}), [])
        for rival in rivals:
            rival.wait()

    def test_a_missing_symbol_is_the_cause_of_some_ends_only(self):
        for end, level in (("exit 127", "skipped"), ("kill -ABRT $$", "skipped"),
                           ("kill -SEGV $$", "error"), ("exit 3", "error")):
            with self.subTest(end=end):
                script = f"echo 'undefined symbol: TF_NewThing' >&2; {end}"
                found = check_host.run(["sh", "-c", script], 20, {})
                self.assertEqual([each[0] for each in found], [level], found)

    def test_a_crash_is_reported_with_what_its_step_logged(self):
        for text, cause in (("", ""), ("echo stops >&2;", " stops")):
            with self.subTest(text=text):
                script = f"echo 'tfplug: loads' >&2; printf '\\036\\n' >&2; {text} kill -SEGV $$"
                self.assertEqual(check_host.run(["sh", "-c", script], 20, {}), [
                    ("error", f"crashes with SIGSEGV in the start.{cause}")])

    def test_a_failure_comes_with_what_the_plugin_logs(self):
        error = '{"level": "error", "text": "allocate(1 byte) returns no memory"}'
        script = ("echo 'tfplug: allocate: FAILED_PRECONDITION: it is odd; align it' >&2; "
                  f"echo '{error}'")
        self.assertEqual(check_host.run(["sh", "-c", script], 20, {}), [
            ("error", "allocate(1 byte) returns no memory"),
            ("note", "the plug-in logs allocate: it is odd. Align it.")])

    def test_the_remedy_of_an_exception(self):
        copies = check_list.CHECKS["copies"]
        for text, remedy in (("memcpy_htod: C++ exception: link down", "throws: mend that"),
                             ("byte 3 is 1 instead of 2", "Copy `size` bytes")):
            with self.subTest(text=text):
                result = check.Result(copies, "failed", [("error", text), ("note", "a log")])
                self.assertIn(remedy, check_report.as_text([result], in_colour=False))

    def test_lines_are_merged_if_only_the_release_differs(self):
        findings = [("error", ": no number"), ("note", "2.5: loads"), ("note", "2.6: loads"),
                    ("warning", "2.7: loads"), ("note", "3: "), ("note", "4: ")]
        self.assertEqual(check_report._merge([*findings, findings[0]]), [
            ("error", ": no number (2 times)"), ("note", "2.5 to 2.6: loads"),
            *findings[3:]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])  # The others are what the test reads.
