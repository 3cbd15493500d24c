# SPDX-License-Identifier: Apache-2.0
"""Looks for mistakes in the documentation site, and checks that tools/site finds them.

  site_test.py PROJECT_ROOT
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()


def site(*arguments):
    return subprocess.run([ROOT / "tools/site", *arguments], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


class SiteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = site("--check", ROOT)

    def test_there_are_no_mistakes(self):
        self.assertEqual(self.run_.returncode, 0, self.run_.stdout)

    def test_each_error_message_has_a_page(self):
        errors = (ROOT / "docs/reference/errors.md").read_text()
        pages = list((ROOT / "build/site-pages/reference/errors").glob("*.md"))
        self.assertEqual(len(pages), len(re.findall(r"^\| .*\.h` \|$", errors, re.M)))

    def test_each_measurement_is_listed(self):
        folder = ROOT / "docs/measured"
        text = (folder / "index.md").read_text()
        for page in folder.glob("*.md"):
            self.assertTrue(page.name == "index.md" or f"({page.name})" in text, page)

    def page(self, name):
        return (ROOT / "build/site-pages" / name).read_text()

    def described(self, name):
        """Returns Doxygen's description of a class, as tools/site revised it."""
        return xml.parse(ROOT / f"build/site-headers/xml/classtfplug_1_1{name}.xml")

    def test_the_reference_shows_public_declarations_and_their_comments(self):
        self.assertIn("```{doxygengroup} tfplug_device_allocator_h\n",
                      self.page("api/device/allocator.md"))
        functions = {member.findtext("name"): "".join(
            member.find("detaileddescription").itertext()).strip()
            for member in self.described("Allocator").iterfind(".//memberdef")}
        self.assertRegex(functions["AllocateHost"],
                         "^host_memory_allocate: returns host memory")
        for hidden in "OutOfHostMemory", "~Allocator", "state_":
            self.assertNotIn(hidden, functions)

    def test_functions_below_one_comment_share_it(self):
        stream = self.described("Stream")
        comments = ["".join(member.find("detaileddescription").itertext()).strip()
                    for member in stream.iterfind(".//memberdef")
                    if member.findtext("name").startswith("Copy")]
        self.assertEqual(len(comments), 3)
        self.assertRegex(comments[0], "^memcpy_htod, memcpy_dtoh, memcpy_dtod: enqueue")
        self.assertEqual(len(set(comments)), 1)
        sections = [name.text for name in stream.iterfind(".//sectiondef/header")]
        self.assertIn("SP_StreamExecutor", sections)

    def test_a_class_lists_what_it_inherits(self):
        inherited = self.described("KernelContext").findall(
            "compounddef/detaileddescription/para/ref")
        names = {ref.text: ref.get("refid") for ref in inherited}
        self.assertTrue(names["GetInput"].startswith("classtfplug_1_1RunInputs_1"))
        self.assertIn("AllocateOutput", names)
        self.assertNotIn("AllocateTemp", names)

    def test_an_error_page_shows_code_condition_and_remedy(self):
        folder = "reference/errors/"
        page = self.page(folder + "out-of-host-memory-allocating-bytes.md")
        self.assertIn("`tf.errors.ResourceExhaustedError`", page)
        self.assertIn("if (memory == nullptr && size != 0) return", page)
        page = self.page(folder + "override-stream-starttimer.md")
        self.assertIn("## Remedy\n\nOverride Stream::StartTimer.", page)


_HEADER = """namespace tfplug {
// A device.
class Device {
 public:
  // %s
  void Name();
};
}  // namespace tfplug
"""


class MistakesTest(unittest.TestCase):
    """A project with a README, a header, a few pages, and mistakes."""

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
                    "include/tfplug/device/device.h": _HEADER % "Says one thing.",
                    "lib/part.py": "pass\n",
                    "tool.py": "pass\n"}.items():
                (project / name).parent.mkdir(parents=True, exist_ok=True)
                (project / name).write_text(text)
            cls.run_ = site(project)
            cls.home = (project / "build/site/index.html").read_text()
            cls.pages = cls.contents(project)
            (project / "docs/unlisted.md").unlink()
            header = project / "include/tfplug/device/device.h"
            header.write_text(_HEADER % "Says another thing.")
            cls.second_run = site(project)
            cls.second_pages = cls.contents(project)
            cls.header = (project / "build/site/api/device/device.html").read_text()

    @staticmethod
    def contents(project):
        """Returns each page that Sphinx reads, with the time of its last change."""
        pages = project / "build/site-pages"
        return {str(page.relative_to(pages)): (page.read_text(), page.stat().st_mtime_ns)
                for page in pages.rglob("*.md")}

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

    def test_another_run_lets_sphinx_read_what_has_changed(self):
        changed = {page for page, contents in self.pages.items()
                   if self.second_pages.get(page) != contents}
        self.assertEqual(changed, {"api/device/device.md", "unlisted.md",
                                   "source/include/tfplug/device/device.h.md"})
        self.assertIn("Says another thing.", self.header)

    def test_another_run_reports_the_mistakes_that_are_left(self):
        self.assertNotEqual(self.second_run.returncode, 0)
        self.assertEqual(sorted(set(self.run_.stdout.splitlines())
                                - set(self.second_run.stdout.splitlines())),
                         self.lines("unlisted"))

    def test_right_links_lead_to_pages(self):
        for page in "architecture.html", "source/tool.py.html", "source/lib.html":
            self.assertIn(f'href="{page}', self.home)

    def test_pages_load_nothing_from_a_network(self):
        loaded = re.findall(r'<(?:link|script|img)\b[^>]* (?:src|href)="([^"]*)',
                            self.home)
        self.assertGreater(len(loaded), 5)
        self.assertEqual([url for url in loaded if "//" in url], [])

    def test_right_links_are_not_reported(self):
        self.assertEqual(self.lines("tool.py"), [])
        self.assertEqual(self.lines("parts"), [])


if __name__ == "__main__":
    unittest.main()
