# SPDX-License-Identifier: Apache-2.0
"""Sphinx's settings for the documentation site: see tools/site.

Sphinx and not MkDocs, because MyST reads Markdown as CommonMark and GitHub do (the
committed pages are read there, too), and because Sphinx's search works from file://.
"""

import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
_VERSION = re.search(r"^  version: .(.*).,$", (HERE.parents[2] / "meson.build").read_text(),
                     re.MULTILINE)

project = "tfplug"
version = release = _VERSION[1]
copyright = "the tfplug authors, Apache-2.0"
root_doc = "index"
extensions = ["myst_parser", "breathe", "sphinx_copybutton"]
cpp_index_common_prefix = ["tfplug::"]
breathe_show_include = False
breathe_default_project = "tfplug"  # tools/site states where it is.
myst_heading_anchors = 4
copybutton_exclude = ".linenos, .gp, .go"
# Examples are fragments, some of them of languages that no lexer knows.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"tfplug {version}"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["_static"]
html_search_scorer = str(HERE / "search_scorer.js")
templates_path = ["_templates"]
html_sidebars = {"**": [
    "sidebar/brand.html", "versions.html", "sidebar/search.html",
    "sidebar/scroll-start.html", "sidebar/navigation.html", "sidebar/scroll-end.html"]}
html_css_files = ["site.css"]
pygments_style = "friendly"
pygments_dark_style = "github-dark"
