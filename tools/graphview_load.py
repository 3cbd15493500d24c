# SPDX-License-Identifier: Apache-2.0
"""Reads graphs for tools/graphview, without importing TensorFlow.

The messages come from include/tfplug/proto/, through protoc, when first asked
for: protoc and Python's protobuf are all that is needed.
"""

import functools
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What of a SavedModel is the graph.
SAVED_MODEL = """
syntax = "proto3";
package tfplug.proto;
import "tfplug/proto/graph.proto";
message MetaGraphDef { GraphDef graph_def = 2; }
message SavedModel { repeated MetaGraphDef meta_graphs = 2; }
"""


class LoadError(Exception):
    """A file that is not what it should be, in words."""


@functools.lru_cache(None)
def message(name):
    """The class of the message tfplug.proto.NAME."""
    return _classes()[f"tfplug.proto.{name}"]


@functools.lru_cache(None)
def _classes():
    from google.protobuf import descriptor_pb2, message_factory
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "saved_model.proto"
        source.write_text(SAVED_MODEL, encoding="utf-8")
        out = pathlib.Path(folder) / "descriptors"
        command = ["protoc", f"-I{ROOT / 'include'}", f"-I{folder}",
                   "--include_imports", f"--descriptor_set_out={out}",
                   str(source)]
        try:
            subprocess.run(command, check=True)
        except FileNotFoundError:
            raise LoadError("protoc was not found (Debian: "
                            "protobuf-compiler)") from None
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    return message_factory.GetMessages(files.file)


def load(path):
    """The GraphDef in a file or in a SavedModel's folder."""
    from google.protobuf import message as protobuf, text_format
    path = pathlib.Path(path)
    if path.is_dir():
        path = path / "saved_model.pb"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LoadError(f"{path}: {error.strerror}") from None
    if path.suffix in (".pbtxt", ".textproto", ".txt"):
        try:
            return text_format.Parse(data.decode(), message("GraphDef")())
        except (text_format.ParseError, UnicodeDecodeError) as error:
            raise LoadError(f"{path}: not a GraphDef as text: {error}") \
                from None
    try:
        if path.name == "saved_model.pb":
            graphs = message("SavedModel").FromString(data).meta_graphs
            if not graphs:
                raise LoadError(f"{path}: a SavedModel without a graph")
            return graphs[0].graph_def
        return message("GraphDef").FromString(data)
    except protobuf.DecodeError as error:
        raise LoadError(f"{path}: neither a serialised GraphDef nor a "
                        f"SavedModel: {error}") from None
