// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_OUTPUT_BLOCK_H_
#define TFPLUG_GRAPH_INTERNAL_OUTPUT_BLOCK_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "tfplug/abi/tf_buffer.h"
#include "tfplug/base/internal/os.h"

#pragma GCC visibility push(hidden)

// Memory for an edited graph, which TensorFlow receives in a TF_Buffer.
// TensorFlow releases it after parsing the graph, and soon optimizes another
// graph of about the same size. One block per process is cached for reuse,
// because its pages are already faulted in.
namespace tfplug::graph_internal {

class OutputBlock {
 public:
  // Returns at least `size` bytes, which data_deallocator releases; null if out
  // of memory. The result is not null for size 0.
  static void* Allocate(size_t size) {
    Block* cached = Cached().exchange(nullptr, std::memory_order_acquire);
    // A block that is much too large is not reused.
    if (cached != nullptr && cached->size >= size && cached->size / 4 <= size) {
      return cached + 1;
    }
    std::free(cached);
    Block* block = NewBlock(sizeof(Block) + std::max<size_t>(size, 1));
    if (block == nullptr) return nullptr;
    block->size = size;
    return block + 1;
  }

  // TF_Buffer::data_deallocator: caches the block for the next graph if any
  // optimizer exists, and releases it otherwise. Called from any thread.
  static void data_deallocator(void* data, size_t /*length*/) {
    Block* block = static_cast<Block*>(data) - 1;
    if (Users() > 0) {
      block = Cached().exchange(block, std::memory_order_acq_rel);
    }
    std::free(block);
  }

  // Count the optimizers. Removing the last one releases the cached block.
  // Thread-safe.
  static void AddUser() { ++Users(); }
  static void RemoveUser() {
    if (--Users() == 0) {
      std::free(Cached().exchange(nullptr, std::memory_order_acquire));
    }
  }

 private:
  struct alignas(16) Block {
    size_t size;
  };

  // Page faults take most of the time of a first optimization. Faulting in all
  // pages at once is faster. Huge pages can be far slower, because the
  // operating system may have to move other pages for them.
  static Block* NewBlock(size_t size) {
    void* const memory = std::malloc(size);
    internal::PopulatePages(memory, size);
    return static_cast<Block*>(memory);
  }

  static std::atomic<Block*>& Cached() {
    static std::atomic<Block*> cached{nullptr};
    return cached;
  }
  static std::atomic<int64_t>& Users() {
    static std::atomic<int64_t> users{0};
    return users;
  }
};

}  // namespace tfplug::graph_internal

#pragma GCC visibility pop

#endif  // TFPLUG_GRAPH_INTERNAL_OUTPUT_BLOCK_H_
