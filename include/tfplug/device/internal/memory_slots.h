// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_MEMORY_SLOTS_H_
#define TFPLUG_DEVICE_INTERNAL_MEMORY_SLOTS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "tfplug/abi/sp_allocator_stats.h"
#include "tfplug/abi/sp_device.h"
#include "tfplug/abi/sp_device_memory_base.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/override.h"
#include "tfplug/base/internal/struct_copy.h"
#include "tfplug/device/internal/handles.h"
#include "tfplug/device/internal/value_or_log.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// The trampolines of SP_StreamExecutor that call tfplug::Allocator.
template <class DeviceT>
struct MemorySlots {
  using H = Handles<DeviceT>;
  using AllocatorT = typename H::AllocatorT;

  static void allocate(const capi::SP_Device* device, uint64_t size,
                       int64_t memory_space, capi::SP_DeviceMemoryBase* mem) {
    if (ABSL_PREDICT_FALSE(!IsLargeEnough(*mem))) return;
    AllocatorT& self = H::ToAllocator(device);
    auto& failures = StateOf(self).failures_in_a_row;
    const DeviceMemory memory = ValueOrLog(
        "allocate", DeviceMemory(),
        [&] {
          absl::StatusOr<DeviceMemory> result =
              self.AllocatorT::Allocate(size, memory_space);
          if (result.ok() && ABSL_PREDICT_FALSE(!IsAligned(result->opaque()))) {
            result = AcceptOrRelease(self, *result);
          }
          if (result.ok()) failures.store(0, std::memory_order_relaxed);
          return result;
        },
        [&] { return IsLogged(failures.fetch_add(1) + 1); });
    Store(mem, memory);
  }

  static void deallocate(const capi::SP_Device* device,
                         capi::SP_DeviceMemoryBase* memory) {
    if (memory->opaque == nullptr) return;
    internal::GuardOrLog("deallocate", [&] {
      return H::ToAllocator(device).AllocatorT::Deallocate(H::ToMemory(memory));
    });
  }

  static void* host_memory_allocate(const capi::SP_Device* device,
                                    uint64_t size) {
    AllocatorT& self = H::ToAllocator(device);
    void* const memory =
        ValueOrLog<void*>("host_memory_allocate", nullptr,
                          [&] { return self.AllocatorT::AllocateHost(size); });
    return ABSL_PREDICT_TRUE(IsAligned(memory)) ? memory : Refuse(self, memory);
  }

  static void host_memory_deallocate(const capi::SP_Device* device, void* mem) {
    if (mem == nullptr) return;
    internal::GuardOrLog("host_memory_deallocate", [&] {
      return H::ToAllocator(device).AllocatorT::DeallocateHost(mem);
    });
  }

  static void* unified_memory_allocate(const capi::SP_Device* device,
                                       uint64_t size) {
    return ValueOrLog<void*>("unified_memory_allocate", nullptr, [&] {
      return H::ToAllocator(device).AllocatorT::AllocateUnified(size);
    });
  }

  static void unified_memory_deallocate(const capi::SP_Device* device,
                                        void* location) {
    if (location == nullptr) return;
    internal::GuardOrLog("unified_memory_deallocate", [&] {
      return H::ToAllocator(device).AllocatorT::DeallocateUnified(location);
    });
  }

  static capi::TF_Bool get_allocator_stats(const capi::SP_Device* device,
                                           capi::SP_AllocatorStats* stats) {
    if constexpr (!internal::Overrides(&AllocatorT::Stats, &Allocator::Stats)) {
      return false;
    }
    return internal::GuardOrLog("get_allocator_stats", [&] {
      return Store(stats, H::ToAllocator(device).AllocatorT::Stats());
    });
  }

  static capi::TF_Bool device_memory_usage(const capi::SP_Device* device,
                                           int64_t* free, int64_t* total) {
    return internal::GuardOrLog("device_memory_usage", [&] {
      return Store(free, total, H::ToAllocator(device).AllocatorT::Usage());
    });
  }

 private:
  static AllocatorState& StateOf(AllocatorT& self) {
    return internal::Access::state(static_cast<Allocator&>(self));
  }

  // Returns whether Allocate's failure is logged, the n-th in a row: the first,
  // second, fourth, eighth and so on are. When memory first runs out,
  // TensorFlow's BFC allocator asks for 0.9 of the size until it succeeds or the
  // size is that of the tensor; a size below 2,560 bytes, rounded up to a
  // multiple of 256, stays the same, so it asks for ever. No device is so large
  // that it asks for 256 sizes; from then on, each failure takes a millisecond.
  [[gnu::cold, gnu::noinline]] static bool IsLogged(uint32_t n) {
    constexpr uint32_t kEndless = 256;
    if (n == kEndless) {
      internal::LogError(
          "allocate",
          "failed 256 times in a row; TensorFlow's BFC allocator "
          "repeats a small request until it succeeds, so this "
          "process waits until device memory is free");
    }
    if (n >= kEndless) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return (n & (n - 1)) == 0;
  }

  static bool IsLargeEnough(const capi::SP_DeviceMemoryBase& memory) {
    return memory.struct_size >=
           capi::StructInfo<capi::SP_DeviceMemoryBase>::kSize;
  }

  // Returns the distance in bytes from the aligned address below `memory`.
  static uintptr_t OffsetOf(const void* memory) {
    return reinterpret_cast<uintptr_t>(memory) % kRequiredAlignment;
  }
  static bool IsAligned(const void* memory) { return OffsetOf(memory) == 0; }

  // Releases memory whose alignment would make TensorFlow abort. If its BFC
  // allocator is off, TensorFlow accepts device memory of any alignment.
  [[gnu::cold, gnu::noinline]] static absl::StatusOr<DeviceMemory>
  AcceptOrRelease(AllocatorT& self, DeviceMemory memory) {
    if (!StateOf(self).uses_bfc_allocator) return memory;
    return Misaligned("Allocator::Allocate", OffsetOf(memory.opaque()),
                      self.AllocatorT::Deallocate(memory));
  }
  [[gnu::cold, gnu::noinline]] static void* Refuse(AllocatorT& self,
                                                   void* host_memory) {
    const uintptr_t offset = OffsetOf(host_memory);
    internal::GuardOrLog("host_memory_allocate", [&] {
      return Misaligned("Allocator::AllocateHost", offset,
                        self.AllocatorT::DeallocateHost(host_memory));
    });
    return nullptr;
  }

  // Returns the error for misaligned memory; `released` is the status of
  // releasing it.
  static absl::Status Misaligned(const char* hook, uintptr_t offset,
                                 const absl::Status& released) {
    std::string message =
        std::string(hook) + " returned memory " + std::to_string(offset) +
        " bytes past a multiple of 256, on which TensorFlow 2.22 aborts; align "
        "it to tfplug::kRequiredAlignment";
    if (!released.ok()) message += "; releasing it: " + released.ToString();
    return absl::FailedPreconditionError(message);
  }

  static void Store(capi::SP_DeviceMemoryBase* to, DeviceMemory memory) {
    to->opaque = memory.opaque();
    to->size = memory.size();
    to->payload = memory.payload();
  }

  static absl::Status Store(int64_t* free, int64_t* total,
                            const absl::StatusOr<MemoryUsage>& usage) {
    if (usage.ok()) {
      *free = usage->free;
      *total = usage->total;
    }
    return usage.status();
  }

  static absl::Status Store(capi::SP_AllocatorStats* to,
                            const absl::StatusOr<AllocatorStats>& stats) {
    if (!stats.ok()) return stats.status();
    capi::SP_AllocatorStats ours = {};
    ours.struct_size = capi::StructInfo<capi::SP_AllocatorStats>::kSize;
    ours.num_allocs = stats->num_allocs;
    ours.bytes_in_use = stats->bytes_in_use;
    ours.peak_bytes_in_use = stats->peak_bytes_in_use;
    ours.largest_alloc_size = stats->largest_alloc_size;
    ours.has_bytes_limit = stats->bytes_limit.has_value();
    ours.bytes_limit = stats->bytes_limit.value_or(0);
    ours.bytes_reserved = stats->bytes_reserved;
    ours.peak_bytes_reserved = stats->peak_bytes_reserved;
    ours.has_bytes_reservable_limit = stats->bytes_reservable_limit.has_value();
    ours.bytes_reservable_limit = stats->bytes_reservable_limit.value_or(0);
    ours.largest_free_block_bytes = stats->largest_free_block_bytes;
    return internal::FillStruct(to, ours);
  }
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_MEMORY_SLOTS_H_
