# SPDX-License-Identifier: Apache-2.0
"""Attributes and inputs of nodes in few words."""

LONGEST = 60  # Characters of a value.


def input_words(name):
    """An input as people write it: without ':0'."""
    return name[:-2] if name.endswith(":0") else name


def type_words(number):
    from graphview_load import message
    enum = message("TensorProto").DESCRIPTOR.fields_by_name["dtype"].enum_type
    value = enum.values_by_number.get(number)
    return value.name.removeprefix("DT_").lower() if value else str(number)


def shape_words(shape):
    """'[?,224,224,3]'."""
    if shape.unknown_rank:
        return "[...]"
    sizes = ["?" if dim.size < 0 else str(dim.size) for dim in shape.dim]
    return f"[{','.join(sizes)}]"


def size_words(count):
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def tensor_words(tensor):
    """'float [3,3,64,64], 147 KB', or a short one's values."""
    out = f"{type_words(tensor.dtype)} {shape_words(tensor.tensor_shape)}"
    values = [value for field, value in tensor.ListFields()
              if field.name.endswith("_val")]
    if len(values) == 1 and not isinstance(values[0], bytes):
        text = ", ".join(_plain(v) for v in values[0][:9])
        if len(values[0]) < 9 and len(text) <= LONGEST:
            return f"{out}: {text}"
    size = len(tensor.tensor_content) or tensor.ByteSize()
    return f"{out}, {size_words(size)}"


def _plain(value):
    if isinstance(value, float):
        return f"{value:.6g}"
    return _text(value) if isinstance(value, bytes) else str(value)


def _text(value):
    text = value.decode(errors="backslashreplace")
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}..."
    return f'"{text}"' if text.isprintable() else repr(text)


def attr_words(value):
    """An AttrValue."""
    kind = value.WhichOneof("value")
    if kind is None:
        return "empty"
    content = getattr(value, kind)
    if kind != "list":
        return _one(kind, content)
    items = [_one(field.name, item) for field, items in content.ListFields()
             for item in items]
    text = ", ".join(items)
    if len(text) > LONGEST:
        text = f"{text[:LONGEST].rsplit(',', 1)[0]}, ... {len(items)} in all"
    return f"[{text}]"


def _one(kind, value):
    if kind == "s":
        return _text(value)
    if kind == "type":
        return type_words(value)
    if kind == "shape":
        return shape_words(value)
    if kind == "tensor":
        return tensor_words(value)
    if kind == "func":
        return f"function {value.name}"
    if kind == "placeholder":
        return f"${value}"
    if kind == "b":
        return str(value).lower()
    return _plain(value)
