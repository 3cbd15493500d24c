# SPDX-License-Identifier: Apache-2.0
"""Sphinx's settings for the documentation site: see tools/site.

Sphinx and not MkDocs, because MyST reads Markdown as CommonMark and GitHub do (the
committed pages are read there, too), and because Sphinx's search works from file://.
"""

project = "tfplug"
copyright = "the tfplug authors, Apache-2.0"
root_doc = "index"
extensions = ["myst_parser"]
myst_heading_anchors = 4
# Examples are fragments, some of them of languages that no lexer knows.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = "tfplug"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
pygments_style = "friendly"
pygments_dark_style = "github-dark"
