# SPDX-License-Identifier: Apache-2.0
"""Prints tfplug's types in gdb."""

import re

import gdb
import gdb.printing


def _text(view):
    """Returns the text of a std::string or an absl::string_view."""
    fields = {field.name for field in view.type.strip_typedefs().fields()}
    if "_M_dataplus" in fields:
        data, size = view["_M_dataplus"]["_M_p"], view["_M_string_length"]
    elif "_M_str" in fields:
        data, size = view["_M_str"], view["_M_len"]
    elif "ptr_" in fields:
        data, size = view["ptr_"], view["length_"]
    else:
        return view.format_string()
    return data.string("utf-8", "replace", int(size)) if size else ""


def _enumerator(value):
    """Returns "float" for tfplug::DataType::kFloat."""
    return re.sub(r"^.*::k?", "", str(value)).lower()


def _list(numbers):
    return "[" + ",".join(str(int(number)) for number in numbers) + "]"


def _inlined(vector):
    """Returns the elements of an absl::InlinedVector. Its first word is twice their
    number, plus 1 if the next word is their address."""
    words = vector.address.cast(gdb.lookup_type("unsigned long").pointer())
    element = vector.type.strip_typedefs().template_argument(0).pointer()
    data = (words + 1).cast(element)
    if words[0] & 1:
        data = (words + 1).cast(element.pointer()).dereference()
    return [data[i] for i in range(int(words[0]) >> 1)]


def _vector(value):
    begin, end = value["_M_impl"]["_M_start"], value["_M_impl"]["_M_finish"]
    return [begin[i] for i in range(int(end - begin))]


def _status(value):
    rep, message = int(value["rep_"]), ""
    if rep & 1:
        code = rep >> 2
    else:  # a StatusRep: int references, int code, std::string message
        words = gdb.Value(rep).cast(gdb.lookup_type("unsigned long").pointer())
        code = int(words[0]) >> 32
        text = words[1].cast(gdb.lookup_type("char").pointer())
        message = ": " + text.string("utf-8", "replace", int(words[2]))
    code_type = gdb.lookup_type(value.type.strip_typedefs().unqualified().name + "Code")
    code = gdb.Value(code).cast(code_type)
    name = re.sub(r"^.*::k?", "", str(code))
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper() + message


def _tensor(value):
    """Calls TensorFlow, and so needs a process."""
    address = int(value["tensor_"])
    if address == 0:
        return "no tensor"
    try:
        table = gdb.parse_and_eval("tfplug::internal::tensorflow")
        rank, dim, dtype, data = (
            table[name].dereference()
            for name in ("TF_NumDims", "TF_Dim", "TF_TensorType", "TF_TensorData"))
        tensor = value["tensor_"]
        dims = [dim(tensor, i) for i in range(int(rank(tensor)))]
        dtype = _enumerator(dtype(tensor).cast(gdb.lookup_type("tfplug::DataType")))
        return f"{dtype}{_list(dims)} at {data(tensor)}"
    except gdb.error as error:
        return f"TF_Tensor at {address:#x} ({error})"


def _operand(value):
    kind, dtype = _enumerator(value["kind"]), _enumerator(value["type"])
    dims = [value["dims"]["_M_elems"][i] for i in range(int(value["rank"]))]
    strides = [value["strides"]["_M_elems"][i] for i in range(int(value["rank"]))]
    text = f"{dtype}{_list(dims)} strides {_list(strides)}"
    if kind == "memory":
        text += f" at {value['data']}"
    else:
        text += f" {kind} {int(value['scalar']):#x}"
    if value["axis_size"]:
        text += f" axis {value['axis_size']} stride {value['axis_stride']}"
    return text


def _expression(value):
    """One line for each instruction, as in C."""
    parts = value["parts_"]["_M_ptr"].dereference()
    lines = []
    for i, step in enumerate(_vector(parts["instructions"])):
        opcode, uses = _enumerator(step["opcode"]), []
        if opcode in ("input", "element"):
            uses = [f"x{step['a']}"] + [f"v{step['b']}"] * (opcode == "element")
        elif opcode == "constant":
            uses = [f"{int(step['bits']):#x}"]
        else:
            uses = [f"v{step[k]}" for k in "abc" if int(step[k]) >= 0]
        lines.append(f"v{i} = {_enumerator(step['type'])} {opcode}({', '.join(uses)})")
    for i, output in enumerate(_vector(parts["outputs"])):
        lines.append(f"y{i} = {_enumerator(output['type'])} v{output['value']}")
    return "; ".join(lines)


def _node(value):
    if int(value["state_"]) == 0:
        return "no node"
    node, index = int(value["id_"]), value["state_"]["index_"]
    op = int(index["ops"]["data_"][node])
    names = index["names"]
    begin = int(names["ranges_"]["data_"][node]["begin"])
    if begin >> 31:  # a name that was set
        name = _text(names["texts_"]["data_"][begin & 0x7FFFFFFF])
    else:
        size = int(names["ranges_"]["data_"][node]["size"]) & 0x7FFFFFFF
        name = (names["base_"] + begin).string("utf-8", "replace", size)
    if op == 0xFFFFFFFF:
        return f"{name} (removed)"
    entry = index["op_table"]["ops_"]["data_"][op]
    return f"{name} = {entry['data'].string('utf-8', 'replace', int(entry['size']))}"


class _Printer:
    def __init__(self, function, value):
        self._function, self._value = function, value

    def to_string(self):
        return self._function(self._value)


class _Printers(gdb.printing.PrettyPrinter):
    FUNCTIONS = {
        r"absl::(\w+::)?Status": _status,
        "tfplug::Shape": lambda value: _list(_inlined(value["dims_"])),
        "tfplug::Tensor": _tensor,
        "tfplug::Operand": _operand,
        "tfplug::Expression": _expression,
        "tfplug::Node": _node,
    }

    def __call__(self, value):
        name = value.type.strip_typedefs().unqualified().name or ""
        for pattern, function in self.FUNCTIONS.items():
            if re.fullmatch(pattern, name):
                return _Printer(function, value)
        return None


gdb.printing.register_pretty_printer(None, _Printers("tfplug"), replace=True)
