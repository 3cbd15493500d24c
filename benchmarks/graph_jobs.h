// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BENCHMARKS_GRAPH_JOBS_H_
#define TFPLUG_BENCHMARKS_GRAPH_JOBS_H_

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "absl/strings/string_view.h"
#include "graph_opponents/worker.h"
#include "tfplug/graph/internal/output_block.h"

// The jobs of graph_opponents/worker.h, implemented with tfplug::Graph and, as
// the author of a pass would, with messages.

// Abseil may be configured to have a string_view of its own.
inline absl::string_view ToAbsl(std::string_view text) {
  return absl::string_view(text.data(), text.size());
}

// Memory for results, which later calls reuse, as in a pipeline. Views use the
// pipeline's kind of memory, messages use malloc.
class OutputBuffer : public Output {
 public:
  explicit OutputBuffer(bool is_views = true) : is_views_(is_views) {}
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;
  ~OutputBuffer() override { Free(); }

  char* Reserve(size_t size) override {
    if (size > capacity_) {
      Free();
      data_ = static_cast<char*>(
          is_views_ ? tfplug::graph_internal::OutputBlock::Allocate(size)
                    : std::malloc(size));
      capacity_ = size;
    }
    Set(std::string_view(data_, size));
    return data_;
  }

 private:
  void Free() {
    if (data_ == nullptr) return;
    if (is_views_) {
      tfplug::graph_internal::OutputBlock::data_deallocator(data_, capacity_);
    } else {
      std::free(data_);
    }
  }

  const bool is_views_;
  char* data_ = nullptr;
  size_t capacity_ = 0;
};

std::unique_ptr<Worker> MakeViewWorker();
// Allocates the memory that the arena needs for `graph` in advance.
std::unique_ptr<Worker> MakeMessageWorker(std::string_view graph);

// Whether both are serializations of the same message.
bool SameMessage(std::string_view a, std::string_view b);

// Returns a serialized convolutional network of `nodes` nodes, in random order
// if `shuffled`.
std::string SyntheticGraph(int nodes, bool shuffled);

// Returns the bytes of a file, or of synthetic:NODES[:shuffled]; exits if there
// are none.
std::string ReadGraph(const std::string& name);

#endif  // TFPLUG_BENCHMARKS_GRAPH_JOBS_H_
