// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TOOLS_BENCHMARKS_GRAPH_JOBS_H_
#define TFPLUG_TOOLS_BENCHMARKS_GRAPH_JOBS_H_

#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "tfplug/graph/internal/output_block.h"

// The same work on a GraphDef twice: on tfplug::Graph, and as the author of a
// pass writes it over messages.
//
// order: read, put in topological order, write.
// fuse:  read, find `activation(bias(contraction(x, w), b))` with or without
//        the activation, where nobody else uses what is inside and all is on
//        one device; make the outermost node the fused one and remove the
//        others; write.
// idle:  read, see that an op of a pass is not there.
enum class Job { kOrder, kFuse, kIdle };

inline constexpr std::initializer_list<absl::string_view> kContractions = {
    "Conv2D", "MatMul", "BatchMatMulV2", "Einsum", "DepthwiseConv2dNative",
    "Mul"};
inline constexpr std::initializer_list<absl::string_view> kBiases = {"BiasAdd",
                                                                     "AddV2"};
inline constexpr std::initializer_list<absl::string_view> kActivations = {
    "Relu", "Relu6", "Tanh", "Sigmoid"};

// Where results go: kept from one time to the next, as a pipeline does. Views
// have the memory that the pipeline has, messages that of malloc.
class OutputBuffer {
 public:
  explicit OutputBuffer(bool is_views = true) : is_views_(is_views) {}
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;
  ~OutputBuffer() { Free(); }

  char* Reserve(size_t size) {
    if (size > capacity_) {
      Free();
      data_ = static_cast<char*>(
          is_views_ ? tfplug::internal::OutputBlock::Allocate(size)
                    : std::malloc(size));
      capacity_ = size;
    }
    size_ = size;
    return data_;
  }
  absl::string_view bytes() const { return absl::string_view(data_, size_); }

 private:
  void Free() {
    if (data_ == nullptr) return;
    if (is_views_) {
      tfplug::internal::OutputBlock::data_deallocator(data_, capacity_);
    } else {
      std::free(data_);
    }
  }

  const bool is_views_;
  char* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

class Worker {
 public:
  virtual ~Worker() = default;
  // How many nodes were fused.
  virtual int Run(Job job, absl::string_view graph, OutputBuffer& out) = 0;
};

std::unique_ptr<Worker> MakeViewWorker();
// With memory for its arena from the start, as much as `graph` will need.
std::unique_ptr<Worker> MakeMessageWorker(absl::string_view graph);

// Whether both are the same message.
bool SameMessage(absl::string_view a, absl::string_view b);

// `nodes` nodes of a convolutional network, serialised; in the order of their
// names' hashes if `shuffled`.
std::string SyntheticGraph(int nodes, bool shuffled);

// The bytes of a file, or of synthetic:NODES[:shuffled]; ends the process if
// there are none.
std::string ReadGraph(const std::string& name);

#endif  // TFPLUG_TOOLS_BENCHMARKS_GRAPH_JOBS_H_
