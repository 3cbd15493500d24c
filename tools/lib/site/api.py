# SPDX-License-Identifier: Apache-2.0
"""Writes the reference of the headers that authors include: one page per header.

Doxygen reads the headers (doxygen_comments.py), and Breathe shows its XML. A class also
lists what it inherits, with links.
"""

import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

import doxygen_comments

# Each directory with its heading. The others are generated from TensorFlow's ops or
# contain the mechanism.
_DIRECTORIES = {
    "": "Umbrellas", "device": "Devices", "kernel": "Kernels",
    "ir": "Expressions, views and reductions", "primitives": "Primitives",
    "host": "Primitives on the host", "compiled": "Primitives as generated source",
    "op_kernels": "Kernels from primitives",
    "graph": "Graphs", "patterns": "Patterns and rules", "passes": "Graph passes",
    "profiler": "Profiles", "testing": "Tests", "base": "Used everywhere",
    "proto": "Graphs as protobuf messages",
}
_PREFIX = "include/tfplug/"
_SETTINGS = pathlib.Path(__file__).with_name("Doxyfile")
_INTRODUCTION = """# API

Every header that authors include. The [index of names](genindex) lists all classes,
functions and constants; the search finds them, too. The classes of TensorFlow's ops are
[a list of their own](/reference/ops.md).
"""


def is_public(path):
    directory, _, name = path.removeprefix(_PREFIX).rpartition("/")
    return (path.startswith(_PREFIX) and name.endswith(".h")
            and directory in _DIRECTORIES)


def page_of(path):
    return "api/" + path.removeprefix(_PREFIX).removesuffix(".h") + ".md"


def _run_doxygen(stage, paths):
    """Returns the folder with Doxygen's XML about the headers."""
    work = stage.out.with_name("site-headers")
    shutil.rmtree(work, ignore_errors=True)
    for path in paths:
        name = path.removeprefix("include/")
        target = work / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(doxygen_comments.converted(
            name, (stage.root / path).read_text(encoding="utf-8")), encoding="utf-8")
    run = subprocess.run(["doxygen", _SETTINGS], cwd=work, text=True, check=False,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if run.returncode or run.stderr:
        sys.exit(f"Doxygen says:\n{run.stderr}")
    return work / "xml"


def _is_for_authors(member, compound, classes):
    scope = (member.findtext("qualifiedname") or "").rpartition("::")[0]
    if compound.get("kind") == "group" and scope in classes:
        return False  # the definition of a member of a class
    name, argsstring = member.findtext("name"), member.findtext("argsstring") or ""
    return not (member.get("kind") == "friend" or member.get("prot") == "private"
                or name.startswith("~") or name.endswith("_") or "INTERNAL" in name
                or argsstring.endswith("=delete")
                or "TFPLUG_FAKE_FUNCTION" in (member.findtext("definition") or ""))


def _add_inherited(compound):
    """Adds a list of inherited members to the description of a class."""
    own = {member.findtext("name") for member in compound.iterfind("sectiondef/memberdef")}
    own |= {base.text.rpartition("::")[2].partition("<")[0].strip()  # constructors
            for base in compound.iterfind("basecompoundref")}
    inherited = {}  # name: id
    for member in compound.iterfind("listofallmembers/member"):
        name = member.findtext("name")
        if (name not in own and member.get("prot") == "public"
                and not member.get("refid").startswith(compound.get("id") + "_1")
                and not name.startswith(("operator", "~"))):
            inherited.setdefault(name, member.get("refid"))
    if not inherited:
        return
    paragraph = xml.SubElement(compound.find("detaileddescription"), "para")
    xml.SubElement(paragraph, "bold").text = "Inherited:"
    last = paragraph[0]
    for name, refid in sorted(inherited.items()):
        last.tail = " " if last is paragraph[0] else ", "
        last = xml.SubElement(paragraph, "ref", refid=refid, kindref="member")
        last.text = name


def _revise(compound, classes):
    """Removes from Doxygen's description what authors do not use, and returns the names
    of what it describes."""
    names = {}
    for inner in [*compound.findall("innernamespace"), *compound.findall("innerclass")]:
        if classes.get(inner.text) != compound.findtext("compoundname"):
            compound.remove(inner)  # such as a class that is only declared here
        else:
            names[inner.text.removeprefix("tfplug::")] = None
    for section in compound.findall("sectiondef"):
        for member in section.findall("memberdef"):
            value = member.find("initializer")
            if value is not None and len("".join(value.itertext())) > 60:
                member.remove(value)
            if _is_for_authors(member, compound, classes):
                names[member.findtext("name")] = None
            else:
                section.remove(member)
        if section.find("memberdef") is None:
            compound.remove(section)
    _add_inherited(compound)
    return list(names)


def _digest(path):
    """Returns a digest of what a page shows: a description and those of its classes."""
    digest = hashlib.sha256(path.read_bytes())
    for inner in xml.parse(path).getroot().iterfind("compounddef/innerclass"):
        digest.update(_digest(path.with_name(inner.get("refid") + ".xml")).encode())
    return digest.hexdigest()


def _revise_all(folder):
    """Returns the names that each group describes, and its digest."""
    # Doxygen leaves some of the marks of words that are no names.
    trees = {path: xml.ElementTree(xml.fromstring(
                 re.sub(r"%(?=[A-Z][a-z])", "", path.read_text(encoding="utf-8"))))
             for path in sorted(folder.glob("*.xml"))
             if path.stem not in ("index", "Doxyfile")}
    classes = {}  # the name of each class: the group of its header
    for tree in trees.values():
        for compound in tree.getroot().iterfind("compounddef"):
            if compound.get("kind") in ("class", "struct", "union"):
                classes[compound.findtext("compoundname")] = doxygen_comments.group_of(
                    compound.find("location").get("file"))
    names, files = {}, {}
    for path, tree in trees.items():
        for compound in tree.getroot().iterfind("compounddef"):
            names[compound.findtext("compoundname")] = _revise(compound, classes)
            if compound.get("kind") == "group":
                files[compound.findtext("compoundname")] = path
        tree.write(path, encoding="utf-8", xml_declaration=True)
    return {group: (names[group], _digest(path)) for group, path in files.items()}


def write(stage):
    paths = [path for path in sorted(stage.tracked)
             if is_public(path) and (stage.root / path).exists()]
    groups = _revise_all(_run_doxygen(stage, paths)) if paths else {}
    index = [_INTRODUCTION]
    for directory, title in _DIRECTORIES.items():
        index += [f"## {title}", ""]
        for path in paths:
            if path.removeprefix(_PREFIX).rpartition("/")[0] != directory:
                continue
            name, page = path.removeprefix("include/"), page_of(path)
            group = doxygen_comments.group_of(name)
            here, digest = groups[group]
            index.append(f"* [{name}](/{page})" + ": " * bool(here)
                         + ", ".join(f"`{name}`" for name in here))
            # A navigation with every header would double the time of the build. Sphinx
            # reads a page again if its digest differs.
            stage.write(page, f"---\norphan: true\n---\n% {digest}\n\n# {name}\n\n"
                        f'```cpp\n#include "{name}"\n```\n\n'
                        f"[Source](/{stage.source_of(path)})\n\n"
                        f"```{{doxygengroup}} {group}\n:content-only:\n:inner:\n"
                        ":members:\n:undoc-members:\n```\n")
        index.append("")
    stage.write("api/index.md", "\n".join(index))
