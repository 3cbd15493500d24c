// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_PROGRAM_CACHE_H_
#define TFPLUG_COMPILED_PROGRAM_CACHE_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/compiled/launch_plan.h"
#include "tfplug/compiled/plan_cache.h"
#include "tfplug/compiled/program.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// The programs of one device, which live as long as this object: a member of
// the author's device, after the driver's objects that the programs need.
class ProgramCache {
 public:
  ProgramCache() = default;
  explicit ProgramCache(Target target) : target_(std::move(target)) {}
  ProgramCache(const ProgramCache&) = delete;
  ProgramCache& operator=(const ProgramCache&) = delete;
  ~ProgramCache() {
    for (std::atomic<Node*>& bucket : buckets_) {
      for (Node* node = bucket.load(); node != nullptr;) {
        delete std::exchange(node, node->next);
      }
    }
  }

  // Sets the target, for a device that learns it in Init. Call it before the
  // first launch.
  void SetTarget(Target target) { target_ = std::move(target); }
  const Target& target() const { return target_; }

  // Returns launches of these programs.
  compiled_internal::PlanCache& plans() { return plans_; }

  // Returns the program, or null if it has not been built. Takes no lock.
  Program* Find(const compiled_internal::ProgramKey& key) const {
    for (const Node* node =
             buckets_[BucketOf(key)].load(std::memory_order_acquire);
         node != nullptr; node = node->next) {
      if (node->key == key) return node->program.get();
    }
    return nullptr;
  }
  // Returns the program, which build(), a StatusOr<std::unique_ptr<Program>>,
  // makes at the first call. A failure is not kept.
  template <class Build>
  absl::StatusOr<Program*> FindOrBuild(const compiled_internal::ProgramKey& key,
                                       Build build) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (Program* const program = Find(key); program != nullptr) return program;
    absl::StatusOr<std::unique_ptr<Program>> program = build();
    if (!program.ok()) return program.status();
    std::atomic<Node*>& bucket = buckets_[BucketOf(key)];
    Node* const node = new Node{key, *std::move(program), bucket.load()};
    bucket.store(node, std::memory_order_release);
    return node->program.get();
  }

 private:
  struct Node {
    compiled_internal::ProgramKey key;
    std::unique_ptr<Program> program;
    Node* next;
  };
  static constexpr int kBucketBits = 10;
  static size_t BucketOf(const compiled_internal::ProgramKey& key) {
    return key.Hash() >> (64 - kBucketBits);
  }

  Target target_;
  compiled_internal::PlanCache plans_;
  std::mutex mutex_;  // of those who build
  std::atomic<Node*> buckets_[size_t{1} << kBucketBits] = {};
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_PROGRAM_CACHE_H_
