// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BACKEND_SOURCE_PLAN_CACHE_H_
#define TFPLUG_BACKEND_SOURCE_PLAN_CACHE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "tfplug/backend/source/launch_plan.h"
#include "tfplug/backend/source/program.h"
#include "tfplug/backend/view.h"

#pragma GCC visibility push(hidden)

// Launches that were planned before. Planning simplifies the loops of the
// operands, selects a program and writes its parameters. All of this depends
// only on the code and on the dimensions and strides of the operands, which
// repeat in each step of a training: what differs is addresses and scalars.
namespace tfplug::internal {

enum class Primitive : uint8_t { kMap, kReduce, kMatMul, kMatMulMap };

// What a plan depends on, except for the device: the code of a primitive, and
// the layout of its operands before they are simplified.
class PlanKey {
 public:
  // All inputs have the same dimensions, which begin with those of the outputs.
  PlanKey(Primitive primitive, uint64_t code, Operands inputs,
          Operands outputs) {
    const int kept = outputs[0].rank;
    const int rank = inputs.empty() ? kept : inputs[0].rank;
    const size_t count = inputs.size() + outputs.size();
    const auto most_of_one = static_cast<size_t>(rank) + 2;
    if (count > kMostOperands || (count + 1) * most_of_one + 3 > kMostWords) {
      return;
    }
    uint64_t* to = words_;
    uint64_t hash = 0, kinds = static_cast<uint64_t>(primitive);
    const auto add = [&](uint64_t word) {
      *to++ = word;
      hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    };
    const auto add_number = [&](int64_t word) {
      add(static_cast<uint64_t>(word));
    };
    const auto add_operand = [&](const Operand& operand, int dims) {
      const bool has_axis = HasAxis(operand);
      kinds = kinds << 3 | static_cast<uint64_t>(operand.kind) |
              (has_axis ? 4u : 0u);
      for (int d = 0; d < dims; ++d) add_number(operand.stride(d));
      if (has_axis) {
        add_number(operand.axis_size);
        add_number(operand.axis_stride);
      }
    };
    add(code);
    for (int d = 0; d < kept; ++d) add_number(outputs[0].dim(d));
    for (int d = kept; d < rank; ++d) add_number(inputs[0].dim(d));
    for (const Operand& operand : outputs) add_operand(operand, kept);
    for (const Operand& operand : inputs) add_operand(operand, rank);
    add(kinds);
    add(static_cast<uint64_t>(kept) | static_cast<uint64_t>(rank) << 8 |
        inputs.size() << 16);
    hash_ = hash ^ hash >> 32;
    size_ = static_cast<size_t>(to - words_);
  }

  // Whether the key is small enough for the cache.
  bool is_valid() const { return size_ > 0; }
  uint64_t hash() const { return hash_; }
  const uint64_t* begin() const { return words_; }
  const uint64_t* end() const { return words_ + size_; }

 private:
  static constexpr size_t kMostOperands = 16, kMostWords = 96;

  uint64_t hash_ = 0;
  size_t size_ = 0;
  uint64_t words_[kMostWords];  // [0, size_)
};

// The constant part of a launch.
struct KnownLaunch {
  Program* program;
  Grid grid;
  bool has_offsets;
  std::string parameters;  // those after the offsets and scalars
};

// The known launches of one device. Thread-safe; takes no lock. Launches are
// never removed, so that readers need no protection; after the first kMost
// ones, which take about 1 MB, others are planned each time.
class PlanCache {
 public:
  static constexpr size_t kMost = 4096;

  PlanCache() = default;
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;
  ~PlanCache() {
    for (std::atomic<Node*>& bucket : buckets_) {
      for (Node* node = bucket.load(); node != nullptr;) {
        delete std::exchange(node, node->next);
      }
    }
  }

  // Returns the launch, or null.
  const KnownLaunch* Find(const PlanKey& key) const {
    for (const Node* node =
             buckets_[key.hash() % kBuckets].load(std::memory_order_acquire);
         node != nullptr; node = node->next) {
      if (node->hash == key.hash() &&
          std::equal(key.begin(), key.end(), node->words.begin(),
                     node->words.end())) {
        return &node->launch;
      }
    }
    return nullptr;
  }

  size_t size() const { return std::min(size_.load(), kMost); }

  void Add(const PlanKey& key, KnownLaunch launch) {
    if (!key.is_valid() ||
        size_.fetch_add(1, std::memory_order_relaxed) >= kMost) {
      return;
    }
    std::atomic<Node*>& bucket = buckets_[key.hash() % kBuckets];
    Node* const node = new Node{
        key.hash(), {key.begin(), key.end()}, std::move(launch), bucket.load()};
    while (!bucket.compare_exchange_weak(node->next, node)) {
    }
  }

 private:
  struct Node {
    uint64_t hash;
    std::vector<uint64_t> words;
    KnownLaunch launch;
    Node* next;
  };
  static constexpr size_t kBuckets = 1024;

  std::atomic<size_t> size_{0};
  std::atomic<Node*> buckets_[kBuckets] = {};
};

// The arguments of a known launch for operands with other addresses and
// scalars.
class RepeatedLaunch {
 public:
  RepeatedLaunch(const KnownLaunch& launch, Operands inputs, Operands outputs) {
    char scalars[kMostOperands * 8];
    char* scalars_end = scalars;
    const auto add = [&](const Operand& operand) {
      if (operand.has_memory()) {
        pointers_[num_pointers_++] = operand.data;
      } else {
        scalars_end = WriteScalar(operand, scalars_end);
      }
    };
    for (const Operand& operand : inputs) add(operand);
    for (const Operand& operand : outputs) add(operand);
    num_offsets_ = launch.has_offsets ? num_pointers_ : 0;
    char* const head = parameters_ + num_offsets_ * 8;
    char* const rest = std::copy(scalars, scalars_end, head);
    parameters_end_ =
        std::copy(launch.parameters.begin(), launch.parameters.end(), rest);
  }

  KernelArguments arguments() {
    KernelArguments arguments;
    arguments.pointers = absl::MakeConstSpan(pointers_, num_pointers_);
    arguments.parameters = parameters_;
    arguments.parameters_size =
        static_cast<size_t>(parameters_end_ - parameters_);
    arguments.offsets =
        absl::MakeSpan(reinterpret_cast<int64_t*>(parameters_), num_offsets_);
    return arguments;
  }

 private:
  static constexpr size_t kMostOperands = 16;

  size_t num_pointers_ = 0, num_offsets_ = 0;
  char* parameters_end_;
  void* pointers_[kMostOperands];
  alignas(8) char parameters_[LaunchPlan::kMaxParameters];
};

}  // namespace tfplug::internal

#pragma GCC visibility pop

#endif  // TFPLUG_BACKEND_SOURCE_PLAN_CACHE_H_
