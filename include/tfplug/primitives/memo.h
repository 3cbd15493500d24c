// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_MEMO_H_
#define TFPLUG_PRIMITIVES_MEMO_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "tfplug/base/data_type.h"

#pragma GCC visibility push(hidden)

namespace tfplug::primitives {

// Values that are computed once for each key and never destroyed, such as the
// expressions of a composed primitive for each type. Thread-safe; a static
// variable.
template <class T>
class Memo {
 public:
  // Returns the value of `key`, which make(), a StatusOr<T>, computes at the
  // first call.
  template <class Make>
  absl::StatusOr<const T*> Get(uint32_t key, Make make) {
    for (const Node* node = head_.load(std::memory_order_acquire);
         node != nullptr; node = node->next) {
      if (node->key == key) return &node->value;
    }
    absl::StatusOr<T> value = make();
    if (!value.ok()) return value.status();
    // Two threads may both add the key.
    Node* const node =
        new Node{key, head_.load(std::memory_order_relaxed), *std::move(value)};
    while (!head_.compare_exchange_weak(node->next, node,
                                        std::memory_order_release,
                                        std::memory_order_relaxed)) {
    }
    return &node->value;
  }

 private:
  struct Node {
    uint32_t key;
    Node* next;
    T value;
  };
  std::atomic<Node*> head_ = nullptr;
};

constexpr uint32_t KeyOf(DataType a, DataType b = DataType(0),
                         DataType c = DataType(0)) {
  return static_cast<uint32_t>(a) | static_cast<uint32_t>(b) << 8 |
         static_cast<uint32_t>(c) << 16;
}

}  // namespace tfplug::primitives

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_MEMO_H_
