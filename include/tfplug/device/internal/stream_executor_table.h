// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_STREAM_EXECUTOR_TABLE_H_
#define TFPLUG_DEVICE_INTERNAL_STREAM_EXECUTOR_TABLE_H_

#include <cstdint>
#include <utility>

#include "tfplug/abi/sp_allocator_stats.h"
#include "tfplug/abi/sp_stream_executor.h"
#include "tfplug/abi/sp_stream_options.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/override.h"
#include "tfplug/base/internal/struct_copy.h"
#include "tfplug/device/device.h"
#include "tfplug/device/internal/device_handles.h"

namespace tfplug::internal {

// SP_StreamExecutor over an author's Device: one trampoline per C field, under
// the field's name, of three beats: recover the object, guard, call.
template <class DeviceT>
struct StreamExecutorTable : Handles<DeviceT> {
  using H = Handles<DeviceT>;
  using AllocatorT = typename H::AllocatorT;
  using EventT = typename H::EventT;
  using StreamBase = typename H::StreamBase;
  using StreamT = typename H::StreamT;
  using TimerT = typename H::TimerT;
  using H::ToAllocator;
  using H::ToDevice;
  using H::ToEvent;
  using H::ToMemory;
  using H::ToStream;
  using H::ToTimer;

  // ---- Memory ------------------------------------------------------------

  static void allocate(const capi::SP_Device* device, uint64_t size,
                       int64_t memory_space, capi::SP_DeviceMemoryBase* mem) {
    using Info = capi::StructInfo<capi::SP_DeviceMemoryBase>;
    if (ABSL_PREDICT_FALSE(mem->struct_size < Info::kSize)) return;
    DeviceMemory memory;
    GuardOrLog(
        "allocate",
        [&] {
          return ToAllocator(device).AllocatorT::Allocate(size, memory_space);
        },
        [&](DeviceMemory allocated) { memory = allocated; });
    mem->opaque = memory.opaque();
    mem->size = memory.size();
    mem->payload = memory.payload();
  }

  static void deallocate(const capi::SP_Device* device,
                         capi::SP_DeviceMemoryBase* memory) {
    if (memory->opaque == nullptr) return;
    GuardOrLog("deallocate", [&] {
      return ToAllocator(device).AllocatorT::Deallocate(ToMemory(memory));
    });
  }

  static void* host_memory_allocate(const capi::SP_Device* device,
                                    uint64_t size) {
    return AllocatePointer("host_memory_allocate", [&] {
      return ToAllocator(device).AllocatorT::AllocateHost(size);
    });
  }

  static void host_memory_deallocate(const capi::SP_Device* device, void* mem) {
    if (mem == nullptr) return;
    GuardOrLog("host_memory_deallocate", [&] {
      return ToAllocator(device).AllocatorT::DeallocateHost(mem);
    });
  }

  static void* unified_memory_allocate(const capi::SP_Device* device,
                                       uint64_t size) {
    return AllocatePointer("unified_memory_allocate", [&] {
      return ToAllocator(device).AllocatorT::AllocateUnified(size);
    });
  }

  static void unified_memory_deallocate(const capi::SP_Device* device,
                                        void* location) {
    if (location == nullptr) return;
    GuardOrLog("unified_memory_deallocate", [&] {
      return ToAllocator(device).AllocatorT::DeallocateUnified(location);
    });
  }

  static capi::TF_Bool get_allocator_stats(const capi::SP_Device* device,
                                           capi::SP_AllocatorStats* stats) {
    if constexpr (!Overrides(&AllocatorT::Stats, &Allocator::Stats)) {
      return false;
    }
    return GuardOrLog("get_allocator_stats", [&]() -> absl::Status {
      auto ours = ToAllocator(device).AllocatorT::Stats();
      if (!ours.ok()) return ours.status();
      return FillStruct(stats, ToC(*ours));
    });
  }

  static capi::TF_Bool device_memory_usage(const capi::SP_Device* device,
                                           int64_t* free, int64_t* total) {
    return GuardOrLog("device_memory_usage", [&] {
      auto usage = ToAllocator(device).AllocatorT::Usage();
      if (usage.ok()) {
        *free = usage->free;
        *total = usage->total;
      }
      return usage.status();
    });
  }

  // ---- Streams -----------------------------------------------------------

  static void create_stream(const capi::SP_Device* device,
                            capi::SP_Stream* stream, capi::TF_Status* status) {
    *stream = nullptr;
    Guard(status, "create_stream",
          [&] { return HandOutStream(device, StreamOptions(), stream); });
  }

  static void create_stream_with_options(const capi::SP_Device* device,
                                         const capi::SP_StreamOptions* options,
                                         capi::SP_Stream* stream,
                                         capi::TF_Status* status) {
    *stream = nullptr;
    Guard(status, "create_stream_with_options", [&]() -> absl::Status {
      if (absl::Status s = CheckStruct(*options); !s.ok()) return s;
      const StreamOptions ours{options->has_priority != 0, options->priority};
      return HandOutStream(device, ours, stream);
    });
  }

  static void destroy_stream([[maybe_unused]] const capi::SP_Device* device,
                             capi::SP_Stream stream) {
    auto* const ours = reinterpret_cast<StreamT*>(stream);
    if constexpr (kUploadsWaitForKernels) Base(device).streams_.Remove(ours);
    Destroy("destroy_stream", ours);
  }

  static void create_stream_dependency(const capi::SP_Device*,
                                       capi::SP_Stream dependent,
                                       capi::SP_Stream other,
                                       capi::TF_Status* status) {
    Guard(status, "create_stream_dependency", [&] {
      auto s = ToStream(dependent).StreamT::WaitForStream(ToStream(other));
      if constexpr (kUploadsWaitForKernels) {
        if (ABSL_PREDICT_TRUE(s.ok())) Turn(dependent).Give();
      }
      return s;
    });
  }

  static void get_stream_status(const capi::SP_Device*, capi::SP_Stream stream,
                                capi::TF_Status* status) {
    Guard(status, "get_stream_status",
          [&] { return ToStream(stream).StreamT::GetStatus(); });
  }

  // ---- Events ------------------------------------------------------------

  static void create_event(const capi::SP_Device* device, capi::SP_Event* event,
                           capi::TF_Status* status) {
    Guard(status, "create_event",
          [&] { return CreateHandle<EventT>(event, ToDevice(device)); });
  }

  static void destroy_event(const capi::SP_Device*, capi::SP_Event event) {
    Destroy("destroy_event", reinterpret_cast<EventT*>(event));
  }

  // Core ends the process on any answer but pending and complete. A poll that
  // fails is not yet an error of the work: waiting tells.
  static capi::SE_EventStatus get_event_status(const capi::SP_Device*,
                                               capi::SP_Event event) {
    const StackSlot<EventT*> kept = &ToEvent(event);
    EventStatus result = EventStatus::kUnknown;
    GuardOrLog(
        "get_event_status", [&] { return ToEvent(event).EventT::Poll(); },
        [&](EventStatus answer) { result = answer; });
    if (ABSL_PREDICT_FALSE(result < EventStatus::kPending)) {
      result = SettleEvent(*kept, result);
    }
    return static_cast<capi::SE_EventStatus>(result);
  }

  // Core does not look at this status but polls the event all the same (seen in
  // 2.21): it must not find it complete before the work is.
  static void record_event(const capi::SP_Device* device,
                           capi::SP_Stream stream, capi::SP_Event event,
                           capi::TF_Status* status) {
    const StackSlot<const capi::SP_Device*> kept = device;
    if constexpr (kUploadsWaitForKernels) Turn(stream).End();
    Guard(
        status, "record_event",
        [&] { return ToStream(stream).StreamT::RecordEvent(ToEvent(event)); },
        [&] { FinishAll(kept); });
  }

  static void wait_for_event(const capi::SP_Device*, capi::SP_Stream stream,
                             capi::SP_Event event, capi::TF_Status* status) {
    Guard(status, "wait_for_event", [&] {
      return ToStream(stream).StreamT::WaitForEvent(ToEvent(event));
    });
  }

  static void block_host_for_event(const capi::SP_Device*, capi::SP_Event event,
                                   capi::TF_Status* status) {
    Guard(status, "block_host_for_event",
          [&] { return ToEvent(event).EventT::BlockHost(); });
  }

  // ---- Timers ------------------------------------------------------------

  static void create_timer(const capi::SP_Device* device, capi::SP_Timer* timer,
                           capi::TF_Status* status) {
    Guard(status, "create_timer",
          [&] { return CreateHandle<TimerT>(timer, ToDevice(device)); });
  }

  static void destroy_timer(const capi::SP_Device*, capi::SP_Timer timer) {
    Destroy("destroy_timer", reinterpret_cast<TimerT*>(timer));
  }

  static void start_timer(const capi::SP_Device*, capi::SP_Stream stream,
                          capi::SP_Timer timer, capi::TF_Status* status) {
    Guard(status, "start_timer",
          [&] { return ToStream(stream).StreamT::StartTimer(ToTimer(timer)); });
  }

  static void stop_timer(const capi::SP_Device*, capi::SP_Stream stream,
                         capi::SP_Timer timer, capi::TF_Status* status) {
    Guard(status, "stop_timer",
          [&] { return ToStream(stream).StreamT::StopTimer(ToTimer(timer)); });
  }

  // ---- Copies and fills --------------------------------------------------

  static void memcpy_dtoh(const capi::SP_Device*, capi::SP_Stream stream,
                          void* host_dst,
                          const capi::SP_DeviceMemoryBase* device_src,
                          uint64_t size, capi::TF_Status* status) {
    Guard(status, "memcpy_dtoh", [&] {
      return ToStream(stream).StreamT::CopyDeviceToHost(
          host_dst, ToMemory(device_src), size);
    });
  }

  static void memcpy_htod([[maybe_unused]] const capi::SP_Device* device,
                          capi::SP_Stream stream,
                          capi::SP_DeviceMemoryBase* device_dst,
                          const void* host_src, uint64_t size,
                          capi::TF_Status* status) {
    if constexpr (kUploadsWaitForKernels) {
      if (ABSL_PREDICT_FALSE(!Turn(stream).Take())) {
        return OrderUpload(device, stream, device_dst, host_src, size, status);
      }
    }
    Guard(status, "memcpy_htod", [&] {
      return ToStream(stream).StreamT::CopyHostToDevice(ToMemory(device_dst),
                                                        host_src, size);
    });
  }

  static void memcpy_dtod(const capi::SP_Device*, capi::SP_Stream stream,
                          capi::SP_DeviceMemoryBase* device_dst,
                          const capi::SP_DeviceMemoryBase* device_src,
                          uint64_t size, capi::TF_Status* status) {
    Guard(status, "memcpy_dtod", [&] {
      return ToStream(stream).StreamT::CopyDeviceToDevice(
          ToMemory(device_dst), ToMemory(device_src), size);
    });
  }

  static void sync_memcpy_dtoh(const capi::SP_Device* device, void* host_dst,
                               const capi::SP_DeviceMemoryBase* device_src,
                               uint64_t size, capi::TF_Status* status) {
    Guard(status, "sync_memcpy_dtoh", [&] {
      return ToDevice(device).DeviceT::CopyDeviceToHostSync(
          host_dst, ToMemory(device_src), size);
    });
  }

  static void sync_memcpy_htod(const capi::SP_Device* device,
                               capi::SP_DeviceMemoryBase* device_dst,
                               const void* host_src, uint64_t size,
                               capi::TF_Status* status) {
    Guard(status, "sync_memcpy_htod", [&] {
      return ToDevice(device).DeviceT::CopyHostToDeviceSync(
          ToMemory(device_dst), host_src, size);
    });
  }

  static void sync_memcpy_dtod(const capi::SP_Device* device,
                               capi::SP_DeviceMemoryBase* device_dst,
                               const capi::SP_DeviceMemoryBase* device_src,
                               uint64_t size, capi::TF_Status* status) {
    Guard(status, "sync_memcpy_dtod", [&] {
      return ToDevice(device).DeviceT::CopyDeviceToDeviceSync(
          ToMemory(device_dst), ToMemory(device_src), size);
    });
  }

  static void mem_zero(const capi::SP_Device*, capi::SP_Stream stream,
                       capi::SP_DeviceMemoryBase* location, uint64_t size,
                       capi::TF_Status* status) {
    Guard(status, "mem_zero", [&] {
      return ToStream(stream).StreamT::MemZero(ToMemory(location), size);
    });
  }

  static void memset(const capi::SP_Device*, capi::SP_Stream stream,
                     capi::SP_DeviceMemoryBase* location, uint8_t pattern,
                     uint64_t size, capi::TF_Status* status) {
    Guard(status, "memset", [&] {
      return ToStream(stream).StreamT::Memset(ToMemory(location),
                                              BytePattern{pattern}, size);
    });
  }

  static void memset32(const capi::SP_Device*, capi::SP_Stream stream,
                       capi::SP_DeviceMemoryBase* location, uint32_t pattern,
                       uint64_t size, capi::TF_Status* status) {
    Guard(status, "memset32", [&] {
      return ToStream(stream).StreamT::Memset32(ToMemory(location),
                                                WordPattern{pattern}, size);
    });
  }

  // ---- Waiting and host tasks --------------------------------------------

  static void block_host_until_done(const capi::SP_Device*,
                                    capi::SP_Stream stream,
                                    capi::TF_Status* status) {
    Guard(status, "block_host_until_done",
          [&] { return ToStream(stream).StreamT::BlockHostUntilDone(); });
  }

  static void synchronize_all_activity(const capi::SP_Device* device,
                                       capi::TF_Status* status) {
    Guard(status, "synchronize_all_activity",
          [&] { return ToDevice(device).DeviceT::SynchronizeAllActivity(); });
  }

  static capi::TF_Bool host_callback(const capi::SP_Device*,
                                     capi::SP_Stream stream,
                                     capi::SE_StatusCallbackFn callback_fn,
                                     void* callback_arg) {
    return GuardOrLog("host_callback", [&] {
      return ToStream(stream).StreamT::RunOnHost(
          HostTask(callback_fn, callback_arg));
    });
  }

  // The table itself. What is optional and not overridden stays null.
  static capi::SP_StreamExecutor Make() {
    capi::SP_StreamExecutor table = {};
    table.struct_size = capi::StructInfo<capi::SP_StreamExecutor>::kSize;
    table.allocate = &allocate;
    table.deallocate = &deallocate;
    table.host_memory_allocate = &host_memory_allocate;
    table.host_memory_deallocate = &host_memory_deallocate;
    if constexpr (H::kHasUnifiedMemory) {
      table.unified_memory_allocate = &unified_memory_allocate;
      table.unified_memory_deallocate = &unified_memory_deallocate;
    }
    table.get_allocator_stats = &get_allocator_stats;
    table.device_memory_usage = &device_memory_usage;
    table.create_stream = &create_stream;
    table.destroy_stream = &destroy_stream;
    table.create_stream_dependency = &create_stream_dependency;
    table.get_stream_status = &get_stream_status;
    table.create_event = &create_event;
    table.destroy_event = &destroy_event;
    table.get_event_status = &get_event_status;
    table.record_event = &record_event;
    table.wait_for_event = &wait_for_event;
    table.create_timer = &create_timer;
    table.destroy_timer = &destroy_timer;
    table.start_timer = &start_timer;
    table.stop_timer = &stop_timer;
    table.memcpy_dtoh = &memcpy_dtoh;
    table.memcpy_htod = &memcpy_htod;
    table.memcpy_dtod = &memcpy_dtod;
    table.sync_memcpy_dtoh = &sync_memcpy_dtoh;
    table.sync_memcpy_htod = &sync_memcpy_htod;
    table.sync_memcpy_dtod = &sync_memcpy_dtod;
    table.block_host_for_event = &block_host_for_event;
    if constexpr (Overrides(&StreamT::BlockHostUntilDone,
                            &StreamBase::BlockHostUntilDone)) {
      table.block_host_until_done = &block_host_until_done;
    }
    table.synchronize_all_activity = &synchronize_all_activity;
    table.mem_zero = &mem_zero;
    table.memset = &memset;
    table.memset32 = &memset32;
    table.host_callback = &host_callback;
    if constexpr (H::kWantsStreamOptions) {
      table.create_stream_with_options = &create_stream_with_options;
    }
    return table;
  }

 private:
  static constexpr bool kUploadsWaitForKernels =
      DeviceT::kUploadsWaitForKernels;

  static tfplug::Device<StreamT, AllocatorT>& Base(
      const capi::SP_Device* device) {
    return ToDevice(device);
  }
  static OrderedUpload& Turn(capi::SP_Stream stream) {
    return static_cast<StreamBase&>(ToStream(stream)).upload_turn_;
  }

  // memcpy_htod where core has not ordered the copy.
  [[gnu::noinline]] static void OrderUpload(
      const capi::SP_Device* device, capi::SP_Stream stream,
      capi::SP_DeviceMemoryBase* device_dst, const void* host_src,
      uint64_t size, capi::TF_Status* status) {
    Guard(status, "memcpy_htod", [&] {
      absl::Status s = Base(device).streams_.WaitForOthers(ToStream(stream));
      if (ABSL_PREDICT_TRUE(s.ok())) {
        s = ToStream(stream).StreamT::CopyHostToDevice(ToMemory(device_dst),
                                                       host_src, size);
      }
      return s;
    });
  }

  [[gnu::cold, gnu::noinline]] static EventStatus SettleEvent(
      EventT& event, EventStatus polled) {
    const bool done = GuardOrLog("get_event_status",
                                 [&] { return event.EventT::BlockHost(); });
    if (polled == EventStatus::kError || !done) return EventStatus::kError;
    return EventStatus::kComplete;
  }

  [[gnu::cold, gnu::noinline]] static void FinishAll(
      const capi::SP_Device* device) {
    GuardOrLog("synchronize_all_activity", [&] {
      return ToDevice(device).DeviceT::SynchronizeAllActivity();
    });
  }

  // `hook` returns absl::StatusOr<void*>.
  template <class Hook>
  static void* AllocatePointer(const char* slot, Hook hook) {
    void* memory = nullptr;
    GuardOrLog(slot, [&]() -> absl::Status {
      auto result = hook();
      if (ABSL_PREDICT_FALSE(!result.ok())) return result.status();
      memory = *result;
      return absl::OkStatus();
    });
    return memory;
  }

  static absl::Status HandOutStream(const capi::SP_Device* device,
                                    StreamOptions options,
                                    capi::SP_Stream* to) {
    auto stream = H::CreateStream(ToDevice(device), options);
    if (!stream.ok()) return stream.status();
    if constexpr (!Overrides(&StreamT::WaitForStream,
                             &StreamBase::WaitForStream)) {
      auto fence = Create<EventT>(ToDevice(device));
      if (!fence.ok()) return fence.status();
      static_cast<StreamBase&>(**stream).fence_ = *std::move(fence);
    }
    if constexpr (kUploadsWaitForKernels) {
      Base(device).streams_.Add(stream->get());
    }
    return HandOut(std::move(stream), to);
  }

  static capi::SP_AllocatorStats ToC(const AllocatorStats& ours) {
    capi::SP_AllocatorStats stats = {};
    stats.struct_size = capi::StructInfo<capi::SP_AllocatorStats>::kSize;
    stats.num_allocs = ours.num_allocs;
    stats.bytes_in_use = ours.bytes_in_use;
    stats.peak_bytes_in_use = ours.peak_bytes_in_use;
    stats.largest_alloc_size = ours.largest_alloc_size;
    stats.has_bytes_limit = ours.bytes_limit.has_value();
    stats.bytes_limit = ours.bytes_limit.value_or(0);
    stats.bytes_reserved = ours.bytes_reserved;
    stats.peak_bytes_reserved = ours.peak_bytes_reserved;
    stats.has_bytes_reservable_limit = ours.bytes_reservable_limit.has_value();
    stats.bytes_reservable_limit = ours.bytes_reservable_limit.value_or(0);
    stats.largest_free_block_bytes = ours.largest_free_block_bytes;
    return stats;
  }
};

}  // namespace tfplug::internal

#endif  // TFPLUG_DEVICE_INTERNAL_STREAM_EXECUTOR_TABLE_H_
