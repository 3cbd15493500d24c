# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of the documentation site for Sphinx: see tools/site.

  stage.py PROJECT FOLDER

Copies README.md, CHANGELOG.md, CONTRIBUTING.md and docs/; adds the reference of the
headers, a page for each error message, and a page for each file of the project to
which a page links. The committed pages contain nothing that only the site
understands: their relative links are rewritten here. A link to nothing stays as it
is, and Sphinx reports it. Pictures that are described for Graphviz are drawn.
"""

import hashlib
import os
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True

import api  # noqa: E402
import error_pages  # noqa: E402

# The navigation, whose first part is the path through the guides in README.md. Sphinx
# reports a page in docs/ that is not in it.
NAVIGATION = {
    "From a device to a wheel": [
        "guide/first_device", "guide/device", "guide/drivers", "guide/kernels",
        "guide/typed_ops", "guide/backend", "guide/languages", "guide/coverage",
        "guide/op_sweep", "guide/testing", "guide/check", "guide/debugging",
        "guide/profiler", "guide/graph_passes", "guide/patterns", "guide/graph",
        "guide/building"],
    "Beside the path": [
        "guide/distribute", "guide/caching_allocator", "guide/protobuf",
        "guide/migration", "guide/other_systems", "guide/differs_from_gpu", "guide/plugins",
        "guide/peer_tests"],
    "Reference": ["api/index", "Index of names <genindex>", "reference/errors",
                  "reference/opcodes", "reference/ops", "reference/gpu_ops",
                  "reference/capi", "reference/device_abi", "reference/graph_abi",
                  "reference/kernel_api", "reference/rfcs"],
    "Project": ["measured/index", "architecture", "decisions/index", "contributing",
                "changelog"],
}
# The other pages in the directories of these are below them in the navigation.
_SECTIONS = ("docs/measured/index.md", "docs/decisions/index.md")
_ROOT_PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md",
               "CONTRIBUTING.md": "contributing.md"}
_LANGUAGES = {".cc": "cpp", ".h": "cpp", ".py": "python", ".sh": "bash",
              ".toml": "toml", ".build": "meson", ".wrap": "ini", ".cmake": "cmake"}
_NOT_SEARCHED = "---\norphan: true\nnosearch: true\n---\n"
_LINK = re.compile(r"(?<=\]\()([^()\s#]+)(?=[#)])")
_FENCE = re.compile(r"^ *(```+)")


class Stage:
    def __init__(self, root, out):
        self.root = root
        self.out = out
        self.tracked = subprocess.run(
            ["git", "-C", str(root), "ls-files", "--cached", "--others",
             "--exclude-standard"], check=True, text=True,
            stdout=subprocess.PIPE).stdout.splitlines()
        self.written = set()
        self.sources = set()  # files and folders to which a page links

    def write(self, name, text):
        self.write_bytes(name, text.encode("utf-8"))

    def write_bytes(self, name, data):
        """Writes a page, unless it has these contents: Sphinx reads what is newer."""
        self.written.add(name)
        path = self.out / name
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def remove_others(self):
        """Removes pages of earlier runs that were not written again."""
        for path in self.out.rglob("*"):
            if path.is_file() and str(path.relative_to(self.out)) not in self.written:
                path.unlink()

    def page_of_header(self, path):
        """Returns the page of a public header, or None."""
        page = api.page_of(path)
        return page if api.is_public(path) and page in self.written else None

    def page_of(self, path):
        """Returns the page that shows a file or folder of the project."""
        if path in _ROOT_PAGES:
            return _ROOT_PAGES[path]
        if path.startswith("docs/"):
            return path.removeprefix("docs/")
        if self.page_of_header(path):
            return self.page_of_header(path)
        return self.source_of(path)

    def source_of(self, path):
        """Returns the page with the text of a file, or the files of a folder."""
        self.sources.add(path)
        return f"source/{path}.md"

    def rewritten(self, text, page):
        """Returns the text of a page of the project with links to the site's pages."""
        def target(match):
            link = match[0]
            path = os.path.normpath(os.path.join(os.path.dirname(page), link))
            if (":" in link or path.startswith("..") or
                    not (self.root / path).exists()):
                return link
            return "/" + self.page_of(path)

        lines, fence = [], None
        for line in text.splitlines():
            mark = _FENCE.match(line)
            if mark and fence is None:
                fence = mark[1]
            elif mark and line.strip() == fence:
                fence = None
            lines.append(line if fence else _LINK.sub(target, line))
        return "\n".join(lines) + "\n"

    def copy_docs(self):
        for path in self.tracked:
            source = self.root / path
            if not source.exists() or not (
                    path in _ROOT_PAGES or path.startswith("docs/")):
                continue
            if source.suffix != ".md":
                self.write_bytes(self.page_of(path), source.read_bytes())
                continue
            text = self.rewritten(source.read_text(encoding="utf-8"), path)
            if path == "README.md":
                text += "\n" + navigation()
            if path in _SECTIONS:
                text += "\n" + toctree(sorted(
                    pathlib.PurePath(other).stem for other in self.tracked
                    if other.startswith(os.path.dirname(path) + "/") and other != path
                    and (self.root / other).exists()))
            if path == "docs/reference/errors.md":
                text = error_pages.linked(text, self)
            self.write(self.page_of(path), text)

    def draw(self):
        """Draws docs/**/*.dot as .svg where the committed picture is that of another
        text. (Graphviz's releases draw the same text differently.)"""
        for path in self.tracked:
            source = self.root / path
            if path.startswith("docs/") and path.endswith(".dot") and source.exists():
                text = source.read_bytes()
                mark = f"<!-- {source.name} {hashlib.sha256(text).hexdigest()[:16]} -->"
                picture = source.with_suffix(".svg")
                if not picture.exists() or mark not in picture.read_text("utf-8"):
                    drawn = subprocess.run(["dot", "-Tsvg"], input=text, check=True,
                                           stdout=subprocess.PIPE).stdout.decode()
                    picture.write_text(
                        drawn[drawn.index("<svg"):].rstrip() + f"\n{mark}\n", "utf-8")
                    print(f"drew {picture}: commit it", file=sys.stderr)

    def write_sources(self):
        for path in sorted(self.sources):
            files = [path]
            if (self.root / path).is_dir():
                files = [f for f in self.tracked if f.startswith(path + "/")]
                self.write(f"source/{path}.md",
                           _NOT_SEARCHED + f"# {path}\n\n" + "".join(
                               f"* [{f}](/source/{f}.md)\n" for f in files))
            for file in files:
                self.write_source(file)

    def write_source(self, path):
        try:
            text = (self.root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            text = "(not a text file)\n"
        fence = "`" * (max([3, *map(len, re.findall("`+", text))]) + 1)
        language = _LANGUAGES.get(pathlib.Path(path).suffix, "text")
        self.write(f"source/{path}.md",
                   f"{_NOT_SEARCHED}# {path}\n\n{fence}{language}\n{text}{fence}\n")


def toctree(pages, title=None):
    caption = f":caption: {title}\n" if title else ""
    return f"```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(pages) + "\n```\n"


def navigation():
    return "\n".join(toctree(pages, title) for title, pages in NAVIGATION.items())


def main():
    root, out = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    stage = Stage(root, out)
    stage.draw()
    api.write(stage)
    error_pages.write(stage)
    stage.copy_docs()
    stage.write_sources()
    stage.remove_others()


if __name__ == "__main__":
    main()
