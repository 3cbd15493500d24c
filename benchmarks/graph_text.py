# SPDX-License-Identifier: Apache-2.0
"""The texts of docs/measured/bench_graph.md; see graph.py."""

STRESS_SECTION = "## Wide nodes\n"

TEXT = """\
# Graphs compared with messages

Written by `tools/bench graph --write docs/measured/bench_graph.md`; do not edit. Machine:
{machine}. One thread, processor time. *view* is `tfplug::Graph`; *copy* is a
`memcpy` of the graph. The opponents do the same work with protocol buffers:

* **{messages}**: C++, static, `-O2`, as most authors of a pass would write it: a
  hash map of names and a list of users for each node.
* **{wheel}**: the C++ library and messages in TensorFlow's wheel, as an
  experienced author would use them: flat arrays that are reused
  (`benchmarks/graph_opponents/flat_tables.h`), attributes moved instead of copied.
* **{upb}**: C, in Python's protobuf package. Strings alias the graph, a schema
  for this purpose leaves attributes unparsed, messages and result are in one
  block of memory; the same flat arrays.

All arenas and arrays are allocated in advance, and the results are written into
memory that is reused. The results are compared, message for message, in the
same run. The jobs:

* **order**: parse, sort topologically, write everything. A graph that is sorted
  already keeps its order.
* **fuse**: parse; find bias(product(x, w), b) with an optional activation, where
  the inner nodes have no other users and all are on one device; replace them
  with one node; write.
* **idle**: parse, and find that an op is absent. Nothing is written. The first
  two opponents cannot leave attributes unparsed; upb with its schema can. While it
  parses a graph of more than 1 MB, the view also hashes the names for later.

Order and fuse also find duplicate names and inputs from missing nodes.

In each round, each side in turn makes as many calls as take {turn} ms, at least
one. Ratios (× *opponent*) are medians of the ratios within each of {rounds}
rounds (fewer on large graphs). *Call by call* has one call in a turn, so that
each call finds the processor's caches and branch predictors in the state in
which the other side left them; TensorFlow also does other work between the
calls of a pass. The same applies to *÷ copy*: a repeated copy would stay within
the caches.

## Fuse

*Touched* is the memory that fusing with views touches: the graph, the tables, the
edits and the result. The next column is the time ÷ that of a `memcpy` that touches
as much. On graphs that exceed the processor's caches, this is how far the view is
from the speed of memory.

| Graph | MB | fused | view, ms | ÷ copy | touched, MB | ÷ copy of as much | × {messages} | × {wheel} | × {upb} | call by call: × {messages} | × {wheel} | × {upb} |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
{fuse}

{summary}

## Order and idle

| Graph | order: view, ms | ÷ copy | × {messages} | × {wheel} | × {upb} | idle: view, ms | × {messages} | × {wheel} | × {upb} |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
{order}

## The first call of a process

The job is fuse. No memory is allocated yet, neither for tables and arenas nor
for the result, so page faults dominate. Symbols of other libraries are
already bound, as they are after TensorFlow has loaded a plug-in. The view writes its
result to the memory that the pipeline uses (`graph/internal/output_block.h`),
messages to memory from `malloc`. *Copy* is a `memcpy` of the graph into new
memory from `malloc`: TensorFlow requires the result in one block, so no
implementation can be much faster. Peak is the growth of the process's resident
memory in MB, including the result. Medians of {cold_runs} processes of each,
alternating (fewer on large graphs).

| Graph | view, ms | copy, ms | × {messages} | × {wheel} | × {upb} | peak: view | {messages} | {wheel} | {upb} |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
{cold}

## Instructions

Instructions per node, counted by callgrind, for the second call. A `memcpy`
counts as a loop with vectors of 32 bytes.

| Graph | order: view | × {messages} | × {wheel} | × {upb} | fuse: view | × {messages} | × {wheel} | × {upb} | idle: view | × {upb} |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
{instructions}

{compared}

{stress}"""

STRESS_TEXT = STRESS_SECTION + """
Written by `tools/bench graph --stress --write docs/measured/bench_graph.md`.
A node with N inputs, control inputs, users or attributes is edited N times, or
an edit that affects all N is made once. The figures are nanoseconds of processor
time, divided by N. If the time is linear in N, a row is constant, apart from
cache misses, which begin at about 10⁵ nodes. Machine: {machine}.

| Edit | {sizes} |
|---|{columns}
{rows}
"""
