// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_PLAN_CACHE_H_
#define TFPLUG_COMPILED_PLAN_CACHE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/types/span.h"
#include "tfplug/compiled/launch_plan.h"
#include "tfplug/compiled/program.h"
#include "tfplug/ir/view.h"

#pragma GCC visibility push(hidden)

// Launches that were planned before. Planning simplifies the loops of the
// operands, selects a program and writes its parameters. All of this depends
// only on the code and on the dimensions and strides of the operands, which
// repeat in each step of a training: what differs is addresses and scalars.
namespace tfplug::compiled_internal {

// Identifies a plan of one device: the code of a primitive, and the layout of
// its operands before they are simplified.
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
      hash = Mix(hash ^ word);
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
    hash_ = hash;
    size_ = static_cast<size_t>(to - words_);
  }

  // Returns whether the key is small enough for the cache.
  bool is_valid() const { return size_ > 0; }
  uint64_t hash() const { return hash_; }

  using Stored = std::vector<uint64_t>;
  Stored Store() const { return {words_, words_ + size_}; }
  friend bool operator==(const Stored& stored, const PlanKey& key) {
    return std::equal(stored.begin(), stored.end(), key.words_,
                      key.words_ + key.size_);
  }

 private:
  static constexpr size_t kMostOperands = 16, kMostWords = 96;

  uint64_t hash_ = 0;
  size_t size_ = 0;
  uint64_t words_[kMostWords];  // [0, size_)
};

// The same for a Map of arrays.
class FlatKey {
 public:
  FlatKey(uint64_t code, const FlatOperands& operands)
      : code_(code),
        size_(static_cast<uint64_t>(operands.size)),
        layout_(operands.repeated | operands.addresses.size() << 32) {}

  bool is_valid() const { return true; }
  uint64_t hash() const { return Mix(code_ ^ size_ ^ layout_); }

  using Stored = FlatKey;
  Stored Store() const { return *this; }
  friend bool operator==(const Stored& stored, const FlatKey& key) {
    return stored.code_ == key.code_ && stored.size_ == key.size_ &&
           stored.layout_ == key.layout_;
  }

 private:
  uint64_t code_, size_, layout_;
};

// The parameters of a launch after its offsets and scalars, copied several at
// once.
class KnownParameters {
 public:
  static constexpr size_t kStep = 4;

  explicit KnownParameters(absl::Span<const uint64_t> words)
      : words_(words.begin(), words.end()), size_(words.size()) {
    words_.resize((size_ / kStep + 1) * kStep);
  }

  size_t size() const { return size_; }
  // Overwrites up to kStep more elements.
  void CopyTo(uint64_t* to) const {
    const uint64_t* const from = words_.data();
    size_t k = 0;
    do {
      std::memcpy(to + k, from + k, kStep * sizeof(*to));
      k += kStep;
    } while (k < size_);
  }

 private:
  std::vector<uint64_t> words_;
  size_t size_;
};

// The constant part of a launch.
struct KnownLaunch {
  Program* program;
  Grid grid;
  bool has_offsets;
  KnownParameters parameters;
};

// Known launches of one device. Thread-safe; takes no lock. Launches are never
// removed, so that readers need no protection; after the first kMost ones,
// which take about 1 MB, others are planned each time.
template <class Key>
class LaunchTable {
 public:
  static constexpr size_t kMost = 4096;

  LaunchTable() = default;
  LaunchTable(const LaunchTable&) = delete;
  LaunchTable& operator=(const LaunchTable&) = delete;
  ~LaunchTable() {
    for (std::atomic<Node*>& bucket : buckets_) {
      for (Node* node = bucket.load(); node != nullptr;) {
        delete std::exchange(node, node->next);
      }
    }
  }

  // Returns the launch, or null.
  const KnownLaunch* Find(const Key& key) const {
    for (const Node* node =
             buckets_[key.hash() >> kShift].load(std::memory_order_acquire);
         node != nullptr; node = node->next) {
      if (ABSL_PREDICT_TRUE(node->key == key)) return &node->launch;
    }
    return nullptr;
  }

  size_t size() const { return std::min(size_.load(), kMost); }

  void Add(const Key& key, KnownLaunch launch) {
    if (!key.is_valid() ||
        size_.fetch_add(1, std::memory_order_relaxed) >= kMost) {
      return;
    }
    std::atomic<Node*>& bucket = buckets_[key.hash() >> kShift];
    Node* const node = new Node{key.Store(), std::move(launch), bucket.load()};
    while (!bucket.compare_exchange_weak(node->next, node)) {
    }
  }

 private:
  struct Node {
    typename Key::Stored key;
    KnownLaunch launch;
    Node* next;
  };
  static constexpr int kShift = 64 - 10;

  std::atomic<size_t> size_{0};
  std::atomic<Node*> buckets_[size_t{1} << (64 - kShift)] = {};
};

// The known launches of one device.
class PlanCache {
 public:
  static constexpr size_t kMost = LaunchTable<PlanKey>::kMost;  // of each kind

  const KnownLaunch* Find(const PlanKey& key) const { return plans_.Find(key); }
  const KnownLaunch* Find(const FlatKey& key) const { return flat_.Find(key); }
  void Add(const PlanKey& key, KnownLaunch launch) {
    plans_.Add(key, std::move(launch));
  }
  void Add(const FlatKey& key, KnownLaunch launch) {
    flat_.Add(key, std::move(launch));
  }
  size_t size() const { return plans_.size() + flat_.size(); }

 private:
  LaunchTable<PlanKey> plans_;
  LaunchTable<FlatKey> flat_;
};

// The arguments of a known launch for operands with other addresses and
// scalars.
class RepeatedLaunch {
 public:
  RepeatedLaunch(const KnownLaunch& launch, Operands inputs, Operands outputs) {
    uint64_t scalars[kMostOperands];
    size_t num_scalars = 0, num_pointers = 0;
    const auto add = [&](const Operand& operand) {
      if (operand.has_memory()) {
        pointers_[num_pointers++] = operand.data;
      } else {
        scalars[num_scalars++] = ScalarParameter(operand);
      }
    };
    for (const Operand& operand : inputs) add(operand);
    for (const Operand& operand : outputs) add(operand);
    arguments_.pointers = absl::MakeConstSpan(pointers_, num_pointers);
    Fill(launch, absl::MakeConstSpan(scalars, num_scalars));
  }
  // The addresses must outlive the launch.
  RepeatedLaunch(const KnownLaunch& launch, const FlatOperands& operands) {
    arguments_.pointers = operands.addresses;
    Fill(launch, {});
  }
  RepeatedLaunch(const RepeatedLaunch&) = delete;
  RepeatedLaunch& operator=(const RepeatedLaunch&) = delete;

  const KernelArguments& arguments() const { return arguments_; }

 private:
  static constexpr size_t kMostOperands = 16;
  static_assert(FlatOperands::kMost * 8 + 16 <= LaunchPlan::kMaxParameters);

  void Fill(const KnownLaunch& launch, absl::Span<const uint64_t> scalars) {
    const size_t offsets = launch.has_offsets ? arguments_.pointers.size() : 0;
    size_t size = offsets;
    for (const uint64_t word : scalars) parameters_[size++] = word;
    launch.parameters.CopyTo(parameters_ + size);
    size += launch.parameters.size();
    arguments_.offsets =
        absl::MakeSpan(reinterpret_cast<int64_t*>(parameters_), offsets);
    arguments_.parameters = parameters_;
    arguments_.parameters_size = size * 8;
  }

  KernelArguments arguments_;
  void* pointers_[kMostOperands];
  uint64_t parameters_[LaunchPlan::kMaxParameters / 8 + KnownParameters::kStep];
};

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_PLAN_CACHE_H_
