# SPDX-License-Identifier: Apache-2.0
"""Maps each TensorFlow op to a header in include/tfplug/ops/, or excludes it.

TensorFlow generates one Python module of wrappers for each file of op
registrations (gen_math_ops.py for math_ops.cc); op_registry.json records that
module. A plug-in's kernel receives tensors of plain types, strings, variables
and tensor lists through the C API. An op whose kernel needs any other C++
object of TensorFlow has no header, and neither does an op that only TensorFlow's
own compilers create.
"""

import re
import typing

# Header -> the modules whose ops it contains.
HEADERS = {
    "array": ("array_ops", "manip_ops"),
    "audio": ("audio_ops", "audio_microfrontend_op"),
    "control_flow": ("control_flow_ops", "logging_ops"),
    "data_flow": ("data_flow_ops",),
    # TensorFlow implements these ops; graph passes match and edit them.
    "functional": ("functional_ops",),
    "image": ("image_ops",),
    "linalg": ("linalg_ops",),
    "list": ("list_ops",),
    "math": ("math_ops", "bitwise_ops", "special_math_ops", "clustering_ops"),
    "nn": ("nn_ops", "candidate_sampling_ops", "ctc_ops"),
    "parsing": ("parsing_ops",),
    "quantization": ("uniform_quant_ops",),
    "ragged": ("ragged_array_ops", "ragged_conversion_ops",
               "ragged_math_ops"),
    "random": ("random_ops", "random_index_shuffle_ops", "stateful_random_ops",
               "stateless_random_ops", "stateless_random_ops_v2"),
    "resource_variable": ("resource_variable_ops",),
    "rnn": ("rnn_ops", "cudnn_rnn_ops"),
    "sparse": ("sparse_ops", "set_ops", "count_ops"),
    "spectral": ("spectral_ops",),
    "state": ("state_ops",),
    "string": ("string_ops",),
    "training": ("training_ops", "sdca_ops"),
}
# Ops without a Python wrapper that TensorFlow's graph optimizer creates.
INTERNAL = re.compile(r"_(Fused|HostCast|ParallelConcat|Quantized|ReadVariables|"
                      r"TensorToHashBucket|UnaryOps)")


class Excluded(typing.NamedTuple):
    title: str
    reason: str
    modules: tuple = ()
    ops: str = r"(?!)"  # names in other modules


# The first rule that applies decides.
EXCLUDED = (
    Excluded("oneDNN", "TensorFlow creates them for its own CPU kernels, with "
             "layouts in C++ objects", ops=r"_?_Mkl"),
    Excluded("datasets and iterators", "datasets and iterators are C++ objects",
             ("dataset_ops", "experimental_dataset_ops", "optional_ops")),
    Excluded("lookup tables, tensor maps, composite tensors",
             "the tables and maps are C++ objects",
             ("lookup_ops", "map_ops", "composite_tensor_ops")),
    Excluded("queues, stacks, TensorArrays, accumulators, staging areas",
             "they are C++ objects of a session or step",
             ("batch_ops",),
             r"(Sparse|Resource)?(Conditional)?Accumulator(?!NV2)|Barrier|"
             r"FakeQueue|(FIFO|PaddingFIFO|Priority|RandomShuffle)Queue|Queue|"
             r"(Ordered)?Map(Clear|IncompleteSize|Peek|Size|Stage|Unstage)|"
             r"(Uns|S)tage|Stack|TensorArray|(Delete|Get)Session|RecordInput"),
    Excluded("mutexes", "the lock is a C++ object", ops=r"Mutex|ConsumeMutex"),
    Excluded("sparse tensors by handle and in CSR form",
             "the tensors are C++ objects", ("sparse_csr_matrix_ops",),
             r"(Add|Take)(Many)?Sparse\w*TensorsMap"),
    Excluded("ragged tensors as variants", "the variant holds a C++ object",
             ops=r"RaggedTensor(FromVariant|ToVariant)"),
    Excluded("files, readers and checkpoints",
             "TensorFlow's C++ file systems and formats read and write them",
             ("io_ops", "checkpoint_ops", "filesystem_ops")),
    Excluded("summaries", "they write to a C++ object or produce a protocol buffer",
             ("summary_ops",), r"(\w*Summary(V2)?)$"),
    Excluded("protocol buffers", "the descriptors are C++ objects",
             ("decode_proto_ops", "encode_proto_ops")),
    Excluded("Python functions", "the interpreter runs them", ("script_ops",)),
    Excluded("communication", "rendezvous, collective executor and RPC "
             "clients are C++ objects",
             ("collective_ops", "nccl_ops", "rpc_ops", "sendrecv_ops"),
             r"_(Host)?(Recv|Send)$|_Nccl|_ScopedAllocator"),
    Excluded("distributed tensors", "the mesh is a C++ object",
             ("dtensor_ops",), r"DTensor"),
    Excluded("debugger", "its sessions are C++ objects",
             ("debug_ops", "sync_ops")),
    Excluded("boosted trees", "the ensembles are C++ objects",
             ("boosted_trees_ops",)),
    Excluded("TPU", "the kernels belong to the TPU runtime",
             ("tpu_ops", "tpu_partition_ops"),
             r"_?\w*(TPU|Tpu)|(Split|Merge|Compute)Dedup|"
             r"(MakeUnique|TopKUnique|TopKWithUnique|StochasticCastToInt|"
             r"UpdateTaskIdAndGlobalCoreArray)$"),
    Excluded("XLA", "only XLA's compiler implements them",
             ("xla_ops", "mlir_passthrough_op"),
             r"_?Xla|KthOrderStatistic$"),
    Excluded("experiments and examples", "no kernel and no caller exists",
             ("user_ops",),
             r"Risc|Skipgram$|NegTrain$|ConstructionFails$|CustomAggregator$|"
             r"CalibrationStatisticsSaver$|DumpTensor$|HostConst$"),
    Excluded("internal ops of the runtime",
             "TensorFlow's executor and matcher create them", (),
             r"_\w+"),
)
# Ops that have kernels, but no longer a Python wrapper.
_WITHOUT_WRAPPER = {"QuantizedConcatV2": "array"}
_HEADER_OF = {m: header for header, ms in HEADERS.items() for m in ms}
_EXCLUDED_BY = {m: e for e in EXCLUDED for m in e.modules}
assert not _HEADER_OF.keys() & _EXCLUDED_BY.keys()


def group(op):
    """Returns the header of an entry of op_registry.json, or the rule that excludes
    it."""
    name, module = op["name"], op.get("module")
    if INTERNAL.match(name):
        return "internal"
    by_name = next((e for e in EXCLUDED if re.match(e.ops, name)), None)
    found = (_EXCLUDED_BY.get(module) or by_name or _HEADER_OF.get(module)
             or _WITHOUT_WRAPPER.get(name))
    if not found:
        raise ValueError(f"op_groups.py has no group for the op {name} of "
                         f"{module}")
    return found
