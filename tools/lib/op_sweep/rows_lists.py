# SPDX-License-Identifier: Apache-2.0
"""Arguments of ops on lists of tensors."""

from op_sweep.draw import TensorList, Undrawable, numpy_type
from op_sweep.rows import row


@row("TensorListFromTensor")
def _list_from(g):
    shape = g.shape(low=1, high=4, empty=False)
    g.tensor("tensor", shape)
    g.put("element_shape", shape[1:])


@row("TensorListStack TensorListPopBack TensorListGetItem TensorListSetItem "
     "TensorListGather TensorListPushBack TensorListConcat TensorListConcatV2")
def _list(g):
    shape = g.shape(low=1, high=4, empty=False)
    if "element_dtype" not in g.types:
        raise Undrawable("element_dtype")
    kind = numpy_type(g.types["element_dtype"])
    g.args["input_handle"] = TensorList(g.values(kind, shape))
    names = {arg.name for arg in g.definition.input_arg}
    if "element_shape" in names:
        g.put("element_shape", shape[1:])
    if "index" in names:
        g.put("index", g.integer(0, shape[0] - 1))
    if "indices" in names:
        g.put("indices", [g.integer(0, shape[0] - 1) for _ in range(g.integer(1, 4))])
    for name in ("item", "tensor"):
        if name in names:
            g.tensor(name, shape[1:])


@row("TensorListScatter TensorListScatterV2 TensorListScatterIntoExistingList "
     "TensorListSplit")
def _scatter_list(g):
    shape = g.shape(low=1, high=4, empty=False)
    g.tensor("tensor", shape)
    if "Existing" in g.op:
        kind = numpy_type(g.types["element_dtype"])
        g.args["input_handle"] = TensorList(g.values(kind, shape))
    element = [1, *shape[1:]] if g.op.endswith("Split") else shape[1:]
    g.put_all(indices=g.permutation(shape[0]), element_shape=element,
         num_elements=shape[0], lengths=[1] * shape[0])
