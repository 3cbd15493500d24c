# SPDX-License-Identifier: Apache-2.0
"""Reads what a header declares, with the comments: see api.py.

The parser is tree-sitter, which needs neither a compiler's flags nor the headers that
a header includes. Declarations are shown as they are written, without their bodies.
"""

import dataclasses
import re
import textwrap

import tree_sitter
import tree_sitter_cpp

_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))
CLASSES = {"class_specifier", "struct_specifier", "union_specifier"}
_NAMED = CLASSES | {"enum_specifier", "alias_declaration", "concept_definition",
                     "preproc_def", "preproc_function_def", "type_definition"}
_DECLARATIONS = {"declaration", "field_declaration", "function_definition",
                 "template_declaration", "using_declaration"} | _NAMED
_BLOCKS = {"preproc_ifdef", "preproc_if", "preproc_else", "declaration_list",
           "linkage_specification"}


@dataclasses.dataclass
class Group:
    """Declarations that share a comment, or a comment alone."""
    comment: str = ""
    names: list = dataclasses.field(default_factory=list)
    code: list = dataclasses.field(default_factory=list)
    members: list = dataclasses.field(default_factory=list)  # of a class
    scope: str = ""  # "Stream", "patterns::Rule"
    type: str = ""  # of the value or the result
    banner: str = ""  # the heading of the section that begins here


def parse(text):
    """Returns the syntax tree of a header, with the positions of `text`."""
    # The parser takes the declaration in this macro's argument for a mistake, and
    # may lose its way. The replacement has the same length.
    text = re.sub(r"(?<!define )TFPLUG_ASSIGN_OR_RETURN\(([^,;]*?),",
                  lambda match: " " * 22 + match[1] + "=f(", text)
    return _PARSER.parse(text.encode()).root_node


def read(text):
    """Returns the comment of a header and the Groups that it declares."""
    tree = parse(text)
    for node in tree.children:
        if node.type == "ERROR":
            raise ValueError(f"line {node.start_point.row + 1} cannot be parsed")
    reader = _Reader(text.encode())
    groups = reader.groups(tree, "")
    return reader.intro, groups


def name_of(node, source):
    """Returns the name that a declaration declares."""
    return _Reader(source).name(node)


def dedented(code):
    return textwrap.dedent(code)


def comment_text(lines):
    """Returns the text of comment lines as Markdown, without banners."""
    lines = [re.sub(r"^\s*//+ ?", "", line).rstrip() for line in lines]
    lines = [line for line in lines if not line.startswith("---")]
    out, code = [], False
    for i, line in enumerate(lines):
        indented = line.startswith("  ")
        if indented and not code and (i == 0 or not lines[i - 1] or
                                      lines[i - 1].endswith(":")):
            code = True
            out += ["", "```cpp"]
        elif code and line and not indented:
            code = False
            while not out[-1]:
                out.pop()
            out += ["```", ""]
        out.append(line[2:] if code else line)
    return "\n".join(out + ["```"] * code).strip()


def _share_comment(group, following):
    """Whether the comment of a group is also that of a declaration directly below."""
    if not group.code or group.members or following.members:
        return False
    return (not group.comment or group.type == following.type
            or following.names == ["operator="]
            or re.match(r"\w+(, \w+)+:", group.comment) is not None
            or following.names[0] in group.comment)


class _Reader:
    def __init__(self, source):
        self.source = source
        self.intro = ""

    def text(self, node, end=None):
        begin = node.start_byte
        indent = begin - self.source.rfind(b"\n", 0, begin) - 1
        text = self.source[begin:end or node.end_byte].decode()
        return textwrap.dedent(" " * indent + text).strip()

    def groups(self, parent, scope, public=True):
        """Returns the groups of the children of a node."""
        found, comment, banner, last_row = [], [], "", -2
        for node in parent.children:
            if node.type == "access_specifier":
                public = self.text(node).startswith("public")
                comment = []
                continue
            if node.type == "comment":
                if node.start_point.row == last_row:
                    continue  # behind a declaration, whose code includes it
                if comment and node.start_point.row > last_row + 1:
                    self.add_comment(found, comment, scope, public)
                    comment = []
                line = self.text(node)
                title = re.match(r"// -{3,} (.*?) -+$", line)
                if title:
                    banner = title[1]
                elif not line.startswith("// SPDX"):
                    comment.append(line)
                last_row = node.end_point.row
                continue
            if node.type in _BLOCKS:
                found += self.groups(node, scope)
            elif node.type == "namespace_definition":
                found += self.namespace(node, scope)
            elif node.type in _DECLARATIONS and public:
                adjacent = node.start_point.row <= last_row + 1
                if comment and not adjacent:
                    self.add_comment(found, comment, scope, public)
                    comment = []
                group = self.declaration(node, scope)
                if group is not None:
                    if (adjacent and not comment and not banner and found
                            and _share_comment(found[-1], group)):
                        found[-1].names += group.names
                        found[-1].code += group.code
                    else:
                        group.comment = comment_text(comment)
                        group.banner, banner = banner, ""
                        found.append(group)
                comment = []
            elif comment and node.start_point.row > last_row + 1:
                self.add_comment(found, comment, scope, public)
                comment = []
            if node.type != ";":
                last_row = node.end_point.row
                if node.type in ("preproc_include", "preproc_def"):
                    last_row -= node.text.endswith(b"\n")
        self.add_comment(found, comment, scope, public)
        return found

    def add_comment(self, found, comment, scope, public):
        text = comment_text(comment)
        if not text or not public:
            return
        if scope or found:
            found.append(Group(comment=text, scope=scope))
        elif not self.intro:
            self.intro = text

    def namespace(self, node, scope):
        name = node.child_by_field_name("name")
        name = self.text(name) if name is not None else "internal"
        if {"internal", "capi"} & set(name.split("::")):
            return []
        inner = "::".join(part for part in name.split("::") if part != "tfplug")
        return self.groups(node.child_by_field_name("body"),
                           "::".join(filter(None, [scope, inner])))

    def declaration(self, node, scope):
        """Returns the group of one declaration, or None if authors do not use it."""
        inner = node
        while inner.type == "template_declaration":
            inner = inner.children[-1] if inner.children[-1].is_named else (
                inner.children[-2])
        if inner.type in ("friend_declaration", "static_assert_declaration"):
            return None
        specifier = inner
        if inner.type in ("field_declaration", "declaration"):
            kind = inner.child_by_field_name("type")
            if kind is not None and kind.type in CLASSES | {"enum_specifier"} and (
                    kind.child_by_field_name("body") is not None):
                specifier = kind
        name = self.name(specifier)
        code = self.text(node)
        if (not name or "INTERNAL" in name or name.endswith("_H_") or
                name.endswith("_") or "internal::" in name or
                code.startswith("TFPLUG_FAKE_FUNCTION") or
                re.search(r"= delete;?$", code)):
            return None
        if specifier.type in CLASSES:
            return self.class_group(node, specifier, name, scope)
        if "::" in name and inner.type != "using_declaration":
            return None  # the definition of a member
        body = inner.child_by_field_name("body")
        if inner.type == "function_definition":
            end = next((c for c in inner.children
                        if c.type == "field_initializer_list"), body)
            if end is not None:
                code = self.text(node, end.start_byte).rstrip() + ";"
        elif inner.type == "preproc_function_def":
            value = inner.child_by_field_name("value")
            code = self.text(node, value.start_byte if value else None)
            code = code.rstrip().rstrip("\\").rstrip()
        if re.search(r"~\w+\(", code):
            return None
        if inner.type == "preproc_def" and inner.child_by_field_name("value") is None:
            return None
        if specifier.type == "enum_specifier" and not code.endswith(";"):
            code += ";"
        kind = inner.child_by_field_name("type")
        return Group(names=[name], code=[code], scope=scope,
                     type=self.text(kind) if kind is not None else inner.type)

    def class_group(self, node, specifier, name, scope):
        body = specifier.child_by_field_name("body")
        if body is None or "<" in name:
            return None  # a forward declaration or a specialization
        public = specifier.type != "class_specifier"
        members = self.groups(body, "::".join(filter(None, [scope, name])), public)
        code = self.text(node, body.start_byte).rstrip() + ";"
        only_fields = all("(" not in line for member in members
                          for code_ in member.code for line in code_.splitlines())
        if not any(member.code for member in members):
            members = []
        elif only_fields and public and not any(m.members for m in members):
            code, members = self.text(node), []
            code += "" if code.endswith(";") else ";"
        return Group(names=[name], code=[code], members=members, scope=scope)

    def name(self, node):
        if node.type == "using_declaration":
            return self.text(node).rstrip(";").split("::")[-1].split()[-1]
        while True:
            following = (node.child_by_field_name("declarator") or
                         node.child_by_field_name("name"))
            if following is None:
                following = next((c for c in node.children if c.type in (
                    "function_declarator", "operator_cast", "pointer_declarator",
                    "reference_declarator", "init_declarator", "identifier",
                    "field_identifier", "destructor_name", "operator_name",
                    "qualified_identifier", "array_declarator")), None)
            if following is None or following is node:
                break
            node = following
            if node.type in ("qualified_identifier", "operator_cast",
                             "operator_name", "template_type"):
                break
        text = self.text(node)
        if node.type == "operator_cast":
            text = text.split("(")[0].strip()
        return re.sub(r"\s+", " ", text) if node.type not in _DECLARATIONS else ""
