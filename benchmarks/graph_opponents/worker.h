// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BENCHMARKS_GRAPH_OPPONENTS_WORKER_H_
#define TFPLUG_BENCHMARKS_GRAPH_OPPONENTS_WORKER_H_

#include <cstddef>
#include <string_view>

// The jobs of the graph benchmark. This header includes neither Abseil nor
// protobuf, because each opponent has its own copies of them: the opponents in
// this directory are libraries that the benchmark loads.
//
// order: parse, sort topologically, write everything. A graph that is sorted
//        already keeps its order.
// fuse:  parse; find `activation(bias(contraction(x, w), b))`, with or without
//        the activation, where the inner nodes have no other users and all are
//        on one device; fuse into the outermost node and remove the others;
//        write.
// idle:  parse, and find that an op is absent.
//
// Order and fuse also find duplicate names and inputs from missing nodes.
enum class Job { kOrder, kFuse, kIdle };

inline constexpr std::string_view kContractions[] = {
    "Conv2D", "MatMul", "BatchMatMulV2",
    "Einsum", "Mul",    "DepthwiseConv2dNative"};
inline constexpr std::string_view kBiases[] = {"BiasAdd", "AddV2"};
inline constexpr std::string_view kActivations[] = {"Relu", "Relu6", "Tanh",
                                                    "Sigmoid"};
inline constexpr std::string_view kAbsentOp = "NoSuchOp";

// Receives the written graph.
class Output {
 public:
  virtual ~Output() = default;
  // Returns memory for a graph of `size` bytes, which later calls reuse.
  virtual char* Reserve(size_t size) = 0;
  // Sets the result to bytes that stay valid until the next call.
  void Set(std::string_view bytes) { bytes_ = bytes; }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
};

class Worker {
 public:
  virtual ~Worker() = default;
  // Returns the number of fused nodes; -1 if the bytes are not a valid graph.
  virtual int Run(Job job, std::string_view graph, Output& out) = 0;
};

// Defined by each library: allocates a worker. Allocates in advance the memory
// that its arena needs for `graph`, unless that is empty.
extern "C" __attribute__((visibility("default"))) Worker* MakeWorker(
    std::string_view graph);

#endif  // TFPLUG_BENCHMARKS_GRAPH_OPPONENTS_WORKER_H_
