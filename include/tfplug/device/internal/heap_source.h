// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_HEAP_SOURCE_H_
#define TFPLUG_DEVICE_INTERNAL_HEAP_SOURCE_H_

#include <cstdint>
#include <type_traits>

#include "absl/status/statusor.h"
#include "tfplug/base/internal/override.h"
#include "tfplug/device/allocator.h"

namespace tfplug::internal {

template <class Source>
constexpr bool HasUnifiedMemory() {
  static_assert(std::is_base_of_v<Allocator, Source>,
                "tfplug: the argument of tfplug::CachingAllocator must be "
                "derived from tfplug::Allocator");
  static_assert(!std::is_abstract_v<Source>,
                "tfplug: the argument of tfplug::CachingAllocator must "
                "override Allocate, Deallocate and Usage");
  constexpr bool kAllocates =
      Overrides(&Source::AllocateUnified, &Allocator::AllocateUnified);
  static_assert(kAllocates == Overrides(&Source::DeallocateUnified,
                                        &Allocator::DeallocateUnified),
                "tfplug: override both AllocateUnified and DeallocateUnified, "
                "or neither");
  return kAllocates;
}

// Holds CachingAllocator's Source and passes on what is not cached. Unified
// memory is overridden exactly where Source overrides it, since that is what
// fills core's slots.
template <class Source, bool kUnified = HasUnifiedMemory<Source>()>
class CachingSource : public Allocator {
 public:
  // Constructible from what Source is constructible from.
  CachingSource() = default;
  template <class Device,
            class = std::enable_if_t<std::is_constructible_v<Source, Device&>>>
  explicit CachingSource(Device& device) : source_(device) {}

  absl::StatusOr<void*> AllocateHost(uint64_t size) override {
    return source_.Source::AllocateHost(size);
  }
  absl::Status DeallocateHost(void* memory) override {
    return source_.Source::DeallocateHost(memory);
  }

 protected:
  Source source_;
};

template <class Source>
class CachingSource<Source, true> : public CachingSource<Source, false> {
 public:
  using CachingSource<Source, false>::CachingSource;

  absl::StatusOr<void*> AllocateUnified(uint64_t size) override {
    return this->source_.Source::AllocateUnified(size);
  }
  absl::Status DeallocateUnified(void* memory) override {
    return this->source_.Source::DeallocateUnified(memory);
  }
};

}  // namespace tfplug::internal

#endif  // TFPLUG_DEVICE_INTERNAL_HEAP_SOURCE_H_
