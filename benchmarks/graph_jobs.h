// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BENCHMARKS_GRAPH_JOBS_H_
#define TFPLUG_BENCHMARKS_GRAPH_JOBS_H_

#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "tfplug/graph/internal/output_block.h"

// Jobs on a GraphDef, implemented with tfplug::Graph and, as the author of a
// pass would, with messages.
//
// order: parse, sort topologically, write.
// fuse:  parse; find `activation(bias(contraction(x, w), b))`, with or without
//        the activation, where the inner nodes have no other users and all are
//        on one device; fuse into the outermost node and remove the others;
//        write.
// idle:  parse, and find that an op is absent.
enum class Job { kOrder, kFuse, kIdle };

inline constexpr std::initializer_list<absl::string_view> kContractions = {
    "Conv2D", "MatMul", "BatchMatMulV2", "Einsum", "DepthwiseConv2dNative",
    "Mul"};
inline constexpr std::initializer_list<absl::string_view> kBiases = {"BiasAdd",
                                                                     "AddV2"};
inline constexpr std::initializer_list<absl::string_view> kActivations = {
    "Relu", "Relu6", "Tanh", "Sigmoid"};

// Memory for results, which later calls reuse, as in a pipeline. Views use the
// pipeline's kind of memory, messages use malloc.
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
  // Returns the number of fused nodes.
  virtual int Run(Job job, absl::string_view graph, OutputBuffer& out) = 0;
};

std::unique_ptr<Worker> MakeViewWorker();
// Allocates the memory that the arena needs for `graph` in advance.
std::unique_ptr<Worker> MakeMessageWorker(absl::string_view graph);

// Whether both are serializations of the same message.
bool SameMessage(absl::string_view a, absl::string_view b);

// Returns a serialized convolutional network of `nodes` nodes, in random order
// if `shuffled`.
std::string SyntheticGraph(int nodes, bool shuffled);

// Returns the bytes of a file, or of synthetic:NODES[:shuffled]; exits if there
// are none.
std::string ReadGraph(const std::string& name);

#endif  // TFPLUG_BENCHMARKS_GRAPH_JOBS_H_
