# SPDX-License-Identifier: Apache-2.0
"""tfplug run: runs a graph on the devices of plug-ins, without TensorFlow.

Prints the fetched values. The graph is a GraphDef without functions, loops and
variables: its bytes, or, in a file that ends in .pbtxt, its text.
"""

import ast
import hashlib
import json
import math
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    from tfplug import check_host
except ImportError:  # Run from the source tree.
    import check_host

_HERE = pathlib.Path(__file__).resolve().parent
_REGISTRY = next(path for path in (_HERE / "op_registry.json",
                                   _HERE / "../../codegen/op_registry.json")
                 if path.exists())
# TensorFlow's number of each type, NumPy's name, and struct's letter.
_TYPES = {
    "float": (1, "<f4", "f"), "double": (2, "<f8", "d"), "int32": (3, "<i4", "i"),
    "uint8": (4, "|u1", "B"), "int16": (5, "<i2", "h"), "int8": (6, "|i1", "b"),
    "int64": (9, "<i8", "q"), "bool": (10, "|b1", "?"), "uint16": (17, "<u2", "H"),
    "half": (19, "<f2", "e"), "uint32": (22, "<u4", "I"), "uint64": (23, "<u8", "Q")}
# Those that have no values here, but occur in definitions of ops.
_NUMBERS = {name: number for name, (number, _, _) in _TYPES.items()} | {
    "string": 7, "complex64": 8, "qint8": 11, "quint8": 12, "qint32": 13,
    "bfloat16": 14, "qint16": 15, "quint16": 16, "complex128": 18, "resource": 20,
    "variant": 21}
_SHOWN = 100  # elements of a value


def add_parser(commands):
    parser = commands.add_parser(
        "run", help="run a graph on the devices of plug-ins, without TensorFlow",
        description=__doc__.split("\n", maxsplit=1)[1],
        epilog="Exit status: 0, 1 if the run fails, 2 if it cannot start.")
    parser.add_argument("graph", type=pathlib.Path)
    parser.add_argument("--plugin", action="append", required=True, metavar="PLUGIN.so",
                        help="a plug-in; may be repeated")
    parser.add_argument("--feed", action="append", default=[], metavar="NAME=VALUE",
                        help="the value of a node's output: FILE.npy, a list such as "
                        "[[1,2],[3,4]] of floats, or int32:[1,2] of another type")
    parser.add_argument("--fetch", action="append", required=True, metavar="NAME",
                        help="the output to print, such as y or y:1; may be repeated")
    parser.add_argument("--device", default="", metavar="TYPE:0",
                        help="the device of nodes that name none")
    parser.add_argument("--optimize", default="", metavar="TYPE",
                        help="run the graph optimizer for this device type first")
    parser.add_argument("--release", default="2.21", help="TensorFlow's release; "
                        "default: %(default)s")
    parser.add_argument("--threads", type=int, default=4, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1,
                        help="the order of nodes that are ready at the same time")
    parser.add_argument("--jitter", type=int, default=0, metavar="SEED",
                        help="pause threads, events and host tasks at random")
    parser.add_argument("--guards", action="store_true", help="find accesses beside "
                        "TensorFlow's structs, buffers and tensors")
    parser.add_argument("--save", type=pathlib.Path, metavar="FOLDER",
                        help="also write each value to FOLDER/NAME.npy")
    parser.add_argument("--places", action="store_true", help="print where each node is")
    parser.set_defaults(run=run)


# ---- Protobuf's wire format ------------------------------------------------------


def _varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number, value):
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, str):
        value = value.encode()
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _fields(data):
    """Yields the number and value of each field."""
    at = 0

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
    while at < len(data):
        tag = varint()
        size = varint()
        if tag & 7 == 2:
            yield tag >> 3, data[at:at + size]
            at += size
        else:
            yield tag >> 3, size


# ---- Definitions of ops ----------------------------------------------------------


def _attr_value(kind, value):
    """Returns an AttrValue; nothing if the registry does not have the value."""
    fields = {"string": 2, "int": 3, "float": 4, "bool": 5, "type": 6}
    if kind.startswith("list("):
        kind = kind[5:-1]
        if value and kind not in fields:
            return None
        return _field(1, b"".join(_attr_value(kind, each) for each in value))
    if kind == "shape":
        dims = b"" if value == "unknown" else b"".join(
            _field(2, _field(1, size)) for size in value)
        return _field(7, _field(3, 1) if value == "unknown" else dims)
    if kind not in fields:
        return None
    if kind == "type":
        value = _NUMBERS[value]
    return _field(fields[kind], {"bool": int, "float": float}.get(kind, lambda x: x)(value))


def _op_def(op):
    kinds = {attr["name"]: attr["type"] for attr in op.get("attrs", [])}
    text = _field(1, op["name"])
    for number, arguments in (2, op.get("inputs", [])), (3, op.get("outputs", [])):
        for argument in arguments:
            name, _, kind = argument.partition(": ")
            arg = _field(1, name)
            if kind.startswith("Ref("):
                kind = kind[4:-1]
                arg += _field(16, 1)
            count, star, rest = kind.partition(" * ")
            if star:
                arg += _field(5, count)
                kind = rest
            if kind in kinds:
                arg += _field(6 if kinds[kind] == "list(type)" else 4, kind)
            else:
                arg += _field(3, _NUMBERS[kind])
            text += _field(number, arg)
    for attr in op.get("attrs", []):
        definition = _field(1, attr["name"]) + _field(2, attr["type"])
        value = _attr_value(attr["type"], attr["default"]) if "default" in attr else None
        text += _field(4, definition + (_field(3, value) if value is not None else b""))
    return text


def op_list():
    """Returns a file with the definitions of TensorFlow's ops, an OpList."""
    registry = _REGISTRY.read_bytes()
    recipe = hashlib.sha256(registry + pathlib.Path(__file__).read_bytes()).hexdigest()

    def write(directory):
        (directory / "ops").write_bytes(b"".join(
            _field(1, _op_def(op)) for op in json.loads(registry)["ops"]))
    return check_host.keep("check-ops", recipe, write) / "ops"


# ---- Tensors ---------------------------------------------------------------------


def _flat(value, shape, depth=0):
    """Yields the numbers of nested lists, and appends their sizes to `shape`."""
    if not isinstance(value, list):
        if depth != len(shape):
            raise ValueError("the lists are not a box")
        yield value
        return
    if depth == len(shape):
        shape.append(len(value))
    if len(value) != shape[depth]:
        raise ValueError("the lists differ in length")
    for each in value:
        yield from _flat(each, shape, depth + 1)


def _read_npy(path):
    data = path.read_bytes()
    if data[:6] != b"\x93NUMPY":
        raise ValueError(f"{path} is not a .npy file")
    size = 2 if data[6] == 1 else 4
    start = 8 + size + int.from_bytes(data[8:8 + size], "little")
    header = ast.literal_eval(data[8 + size:start].decode())
    kind = next((name for name, (_, numpy, _) in _TYPES.items()
                 if numpy == header["descr"]), None)
    if kind is None or header["fortran_order"]:
        raise ValueError(f"{path} has elements of type {header['descr']}"
                         f"{', in Fortran order' * header['fortran_order']}; save it as "
                         f"one of {', '.join(_TYPES)}, in C order")
    return kind, header["shape"], data[start:]


def _tensor_proto(text):
    if text.endswith(".npy"):
        kind, shape, content = _read_npy(pathlib.Path(text))
    else:
        kind, colon, value = text.partition(":")
        if not colon:
            kind, value = "float", text
        if kind not in _TYPES:
            raise ValueError(f"'{kind}' is none of {', '.join(_TYPES)}")
        shape = []
        numbers = list(_flat(json.loads(value), shape))
        content = struct.pack(f"<{len(numbers)}{_TYPES[kind][2]}", *numbers)
    dims = b"".join(_field(2, _field(1, size)) for size in shape)
    return _field(1, _TYPES[kind][0]) + _field(2, dims) + _field(4, content)


def _read_tensor(proto):
    """Returns the type, the shape and the bytes of a TensorProto from run_host."""
    found = dict(_fields(proto))
    kind = next((name for name, (number, _, _) in _TYPES.items() if number == found[1]),
                f"type {found[1]}")
    shape = [dict(_fields(dim)).get(1, 0) for _, dim in _fields(found.get(2, b""))]
    return kind, shape, found.get(4, b"")


def _as_text(kind, shape, content):
    title = f"{kind}[{','.join(map(str, shape))}]"
    if kind not in _TYPES:
        return f"{title}: {len(content)} bytes"
    numbers = struct.unpack(f"<{math.prod(shape)}{_TYPES[kind][2]}", content)
    shown = " ".join(f"{number:g}" if kind in ("float", "double", "half") else str(number)
                     for number in numbers[:_SHOWN])
    return f"{title}: {shown}{' ...' if len(numbers) > _SHOWN else ''}"


def _write_npy(path, kind, shape, content):
    header = str({"descr": _TYPES[kind][1], "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
                     header.encode() + content)


# ---- The command -----------------------------------------------------------------


def _graph_bytes(path):
    if path.suffix != ".pbtxt":
        return path.read_bytes()
    protoc = shutil.which("protoc")
    if not protoc:
        raise check_host.Error(f"{path} is text, which protoc converts: apt-get install "
                               "protobuf-compiler, or save the graph as a .pb file")
    include = check_host.INCLUDE
    done = subprocess.run(
        [protoc, "--encode=tfplug.proto.GraphDef", f"-I{include}",
         include / "tfplug/proto/graph.proto"], check=False, input=path.read_bytes(),
        capture_output=True)
    if done.returncode:
        raise check_host.Error(f"{path}: {done.stderr.decode().strip()}")
    return done.stdout


def _command(options, folder):
    (folder / "graph").write_bytes(_graph_bytes(options.graph))
    command = [folder / "graph", op_list(), folder / "value"]
    for plugin in options.plugin:
        if not pathlib.Path(plugin).is_file():
            raise check_host.Error(f"there is no file {plugin}")
        command += ["--plugin", pathlib.Path(plugin).resolve()]
    for i, feed in enumerate(options.feed):
        name, equals, value = feed.partition("=")
        if not equals:
            raise check_host.Error(f"--feed {feed}: write NAME=VALUE")
        try:
            (folder / f"feed.{i}").write_bytes(_tensor_proto(value))
        except (ValueError, KeyError, SyntaxError, OSError, struct.error) as error:
            raise check_host.Error(f"--feed {feed}: {error}") from error
        command += ["--feed", name, folder / f"feed.{i}"]
    for fetch in options.fetch:
        command += ["--fetch", fetch]
    for name in "device", "optimize", "release", "threads", "seed", "jitter":
        if getattr(options, name) not in (None, ""):
            command += [f"--{name}", str(getattr(options, name))]
    if options.guards:
        command += ["--guards", "1"]
    return command


def run(options):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        try:
            command = _command(options, folder)
            program = check_host.build(lambda text: print(text, file=sys.stderr), "run")
        except (check_host.Error, OSError) as error:
            print(f"tfplug run: {error}", file=sys.stderr)
            return 2
        done = subprocess.run([program, *command], check=False, text=True,
                              stdout=subprocess.PIPE)
        if options.places:
            print(done.stdout, end="")
        if done.returncode:
            if done.returncode < 0:
                print(f"tfplug run: a plug-in has ended the process with signal "
                      f"{-done.returncode}; tfplug check finds out more", file=sys.stderr)
            return 1
        for i, name in enumerate(options.fetch):
            value = _read_tensor((folder / f"value.{i}").read_bytes())
            print(f"{name}: {_as_text(*value)}")
            if options.save:
                options.save.mkdir(parents=True, exist_ok=True)
                _write_npy(options.save / f"{name.replace('/', '_')}.npy", *value)
    return 0
