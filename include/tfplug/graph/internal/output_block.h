// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_GRAPH_INTERNAL_OUTPUT_BLOCK_H_
#define TFPLUG_GRAPH_INTERNAL_OUTPUT_BLOCK_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "tfplug/abi/tf_buffer.h"

// Memory for an edited graph, given to core in a TF_Buffer. Core gives it back
// as soon as it has parsed it, and asks for the next graph, as large as this
// one, soon after: one block is kept for that, so that its pages need not be
// faulted in again.
namespace tfplug::internal {

class OutputBlock {
 public:
  // At least `size` bytes (and at least one, so that null always means that
  // there is no memory), to be freed by data_deallocator.
  static void* Allocate(size_t size) {
    Block* kept = Kept().exchange(nullptr, std::memory_order_acquire);
    // One that is much too large is not worth keeping.
    if (kept != nullptr && kept->size >= size && kept->size / 4 <= size) {
      return kept + 1;
    }
    std::free(kept);
    Block* block = NewBlock(sizeof(Block) + std::max<size_t>(size, 1));
    if (block == nullptr) return nullptr;
    block->size = size;
    return block + 1;
  }

  // TF_Buffer::data_deallocator: keeps the block for the next graph, while
  // there is an optimizer; any thread.
  static void data_deallocator(void* data, size_t /*length*/) {
    Block* block = static_cast<Block*>(data) - 1;
    if (Users() > 0) {
      block = Kept().exchange(block, std::memory_order_acq_rel);
    }
    std::free(block);
  }

  // Each optimizer says when it comes and goes: the last one takes the block
  // with it.
  static void AddUser() { ++Users(); }
  static void RemoveUser() {
    if (--Users() == 0) {
      std::free(Kept().exchange(nullptr, std::memory_order_acquire));
    }
  }

 private:
  struct alignas(16) Block {
    size_t size;
  };

  // Most of what a first optimisation takes is the time in which the kernel
  // finds pages for its result: that is shorter for all of them at once. (Huge
  // pages may take far longer to find: the kernel moves others for them.)
  static Block* NewBlock(size_t size) {
    void* const memory = std::malloc(size);
#ifdef MADV_POPULATE_WRITE
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    const uintptr_t first = (begin + kPage - 1) & ~(kPage - 1);
    const uintptr_t last = (begin + size) & ~(kPage - 1);
    if (memory != nullptr && first + kSmall < last) {
      // A wish; older kernels do not know it.
      madvise(reinterpret_cast<void*>(first), last - first,
              MADV_POPULATE_WRITE);
    }
#endif
    return static_cast<Block*>(memory);
  }
  static constexpr uintptr_t kPage = 4096;
  static constexpr uintptr_t kSmall = 16 << 10;  // Not worth a call.

  __attribute__((visibility("hidden"))) static std::atomic<Block*>& Kept() {
    static std::atomic<Block*> kept{nullptr};
    return kept;
  }
  __attribute__((visibility("hidden"))) static std::atomic<int64_t>& Users() {
    static std::atomic<int64_t> users{0};
    return users;
  }
};

}  // namespace tfplug::internal

#endif  // TFPLUG_GRAPH_INTERNAL_OUTPUT_BLOCK_H_
