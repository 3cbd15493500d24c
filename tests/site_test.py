# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation site, and checks that tools/site refuses mistakes.

  site_test.py PROJECT_ROOT
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()


def build(project):
    return subprocess.run([ROOT / "tools/site", project], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


class SiteTest(unittest.TestCase):
    def test_the_site_is_built_without_warnings(self):
        run = build(ROOT)
        self.assertEqual(run.returncode, 0, run.stdout)

    def test_pages_load_nothing_from_a_network(self):
        pages = list((ROOT / "build/site").rglob("*.html"))
        self.assertGreater(len(pages), 100)
        for page in pages:
            loaded = re.findall(r"<(?:link|script|img|iframe)[^>]* (?:src|href)="
                                r'"((?:https?:)?//[^"]*)', page.read_text())
            self.assertEqual(loaded, [], page)


class MistakesTest(unittest.TestCase):
    """A project with a README, a few pages, and mistakes."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            project = pathlib.Path(folder)
            subprocess.run(["git", "init", "-q", folder], check=True)
            for name, text in {
                    "README.md": "# Home\n\n[right](docs/architecture.md#parts)"
                                 " [source](tool.py) [folder](lib)"
                                 " [no page](docs/missing.md)"
                                 " [no anchor](docs/architecture.md#missing)\n",
                    "docs/architecture.md": "# Architecture\n\n## Parts\n\n"
                                            "[up](../README.md)\n",
                    "docs/unlisted.md": "# Unlisted\n",
                    "lib/part.py": "pass\n",
                    "tool.py": "pass\n"}.items():
                (project / name).parent.mkdir(exist_ok=True)
                (project / name).write_text(text)
            cls.run_ = build(project)
            cls.linked = re.findall(r'href="([^"#]+)[^"]*"><span class="(?:doc )?std',
                                    (project / "build/site/index.html").read_text())

    def lines(self, word):
        return [line for line in self.run_.stdout.splitlines() if word in line]

    def test_the_build_fails(self):
        self.assertNotEqual(self.run_.returncode, 0)

    def test_a_link_to_a_missing_page(self):
        self.assertRegex("\n".join(self.lines("missing.md")), "index.md:3")

    def test_a_link_to_a_missing_heading(self):
        self.assertEqual(len(self.lines("'missing'")), 1, self.run_.stdout)

    def test_a_page_that_is_not_in_the_navigation(self):
        self.assertRegex("\n".join(self.lines("toctree")), "docs/unlisted|unlisted.md")

    def test_right_links_lead_to_pages(self):
        for page in "architecture.html", "source/tool.py.html", "source/lib.html":
            self.assertIn(page, self.linked)

    def test_right_links_are_not_reported(self):
        self.assertEqual(self.lines("tool.py"), [])
        self.assertEqual(self.lines("parts"), [])


if __name__ == "__main__":
    unittest.main()
