// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_PROFILED_SLOTS_H_
#define TFPLUG_DEVICE_INTERNAL_PROFILED_SLOTS_H_

#include <cstdint>
#include <new>

#include "tfplug/abi/sp_allocator_stats.h"
#include "tfplug/abi/sp_stream_executor.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/profiling.h"
#include "tfplug/device/internal/device_times.h"
#include "tfplug/device/internal/handles.h"
#include "tfplug/device/internal/stream_executor_table.h"
#include "tfplug/profiler/internal/recorder.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// Functions of SP_StreamExecutor that record a call and forward it to the
// trampoline of the same name.
template <class DeviceT>
struct ProfiledSlots {
  using H = Handles<DeviceT>;
  using Device = const capi::SP_Device*;
  using Memory = capi::SP_DeviceMemoryBase*;
  using ConstMemory = const capi::SP_DeviceMemoryBase*;

  // ---- Work on a stream ----------------------------------------------------

  [[gnu::cold]] static void memcpy_dtoh(Device device, capi::SP_Stream stream,
                                        void* host_dst, ConstMemory device_src,
                                        uint64_t size,
                                        capi::TF_Status* status) {
    const Enqueued record(internal::Activity::kDeviceToHost, "memcpy_dtoh",
                          stream, size);
    plain_.memcpy_dtoh(device, stream, host_dst, device_src, size, status);
  }
  [[gnu::cold]] static void memcpy_htod(Device device, capi::SP_Stream stream,
                                        Memory device_dst, const void* host_src,
                                        uint64_t size,
                                        capi::TF_Status* status) {
    const Enqueued record(internal::Activity::kHostToDevice, "memcpy_htod",
                          stream, size);
    plain_.memcpy_htod(device, stream, device_dst, host_src, size, status);
  }
  [[gnu::cold]] static void memcpy_dtod(Device device, capi::SP_Stream stream,
                                        Memory device_dst,
                                        ConstMemory device_src, uint64_t size,
                                        capi::TF_Status* status) {
    const Enqueued record(internal::Activity::kDeviceToDevice, "memcpy_dtod",
                          stream, size);
    plain_.memcpy_dtod(device, stream, device_dst, device_src, size, status);
  }
  [[gnu::cold]] static void mem_zero(Device device, capi::SP_Stream stream,
                                     Memory location, uint64_t size,
                                     capi::TF_Status* status) {
    const Enqueued record(internal::Activity::kFill, "mem_zero", stream, size);
    plain_.mem_zero(device, stream, location, size, status);
  }
  [[gnu::cold]] static void memset(Device device, capi::SP_Stream stream,
                                   Memory location, uint8_t pattern,
                                   uint64_t size, capi::TF_Status* status) {
    const Enqueued record(internal::Activity::kFill, "memset", stream, size);
    plain_.memset(device, stream, location, pattern, size, status);
  }
  [[gnu::cold]] static void memset32(Device device, capi::SP_Stream stream,
                                     Memory location, uint32_t pattern,
                                     uint64_t size, capi::TF_Status* status) {
    const Enqueued record(internal::Activity::kFill, "memset32", stream, size);
    plain_.memset32(device, stream, location, pattern, size, status);
  }
  [[gnu::cold]] static void create_stream_dependency(Device device,
                                                     capi::SP_Stream dependent,
                                                     capi::SP_Stream other,
                                                     capi::TF_Status* status) {
    const Enqueued record(internal::Activity::kWait, "create_stream_dependency",
                          dependent);
    plain_.create_stream_dependency(device, dependent, other, status);
  }
  [[gnu::cold]] static void wait_for_event(Device device,
                                           capi::SP_Stream stream,
                                           capi::SP_Event event,
                                           capi::TF_Status* status) {
    const Enqueued record(internal::Activity::kWait, "wait_for_event", stream);
    plain_.wait_for_event(device, stream, event, status);
  }

  // ---- Copies that block the host ------------------------------------------

  [[gnu::cold]] static void sync_memcpy_dtoh(Device device, void* host_dst,
                                             ConstMemory device_src,
                                             uint64_t size,
                                             capi::TF_Status* status) {
    const Blocking record(internal::Activity::kDeviceToHost, "sync_memcpy_dtoh",
                          device, size);
    plain_.sync_memcpy_dtoh(device, host_dst, device_src, size, status);
  }
  [[gnu::cold]] static void sync_memcpy_htod(Device device, Memory device_dst,
                                             const void* host_src,
                                             uint64_t size,
                                             capi::TF_Status* status) {
    const Blocking record(internal::Activity::kHostToDevice, "sync_memcpy_htod",
                          device, size);
    plain_.sync_memcpy_htod(device, device_dst, host_src, size, status);
  }
  [[gnu::cold]] static void sync_memcpy_dtod(Device device, Memory device_dst,
                                             ConstMemory device_src,
                                             uint64_t size,
                                             capi::TF_Status* status) {
    const Blocking record(internal::Activity::kDeviceToDevice,
                          "sync_memcpy_dtod", device, size);
    plain_.sync_memcpy_dtod(device, device_dst, device_src, size, status);
  }

  // ---- Other calls ---------------------------------------------------------

  [[gnu::cold]] static void record_event(Device device, capi::SP_Stream stream,
                                         capi::SP_Event event,
                                         capi::TF_Status* status) {
    const internal::HostRecord record(internal::Activity::kHostCall,
                                      "record_event");
    plain_.record_event(device, stream, event, status);
  }
  [[gnu::cold]] static void block_host_for_event(Device device,
                                                 capi::SP_Event event,
                                                 capi::TF_Status* status) {
    const internal::HostRecord record(internal::Activity::kHostCall,
                                      "block_host_for_event");
    plain_.block_host_for_event(device, event, status);
  }
  [[gnu::cold]] static void block_host_until_done(Device device,
                                                  capi::SP_Stream stream,
                                                  capi::TF_Status* status) {
    const internal::HostRecord record(internal::Activity::kHostCall,
                                      "block_host_until_done");
    plain_.block_host_until_done(device, stream, status);
  }
  [[gnu::cold]] static void synchronize_all_activity(Device device,
                                                     capi::TF_Status* status) {
    const internal::HostRecord record(internal::Activity::kHostCall,
                                      "synchronize_all_activity");
    plain_.synchronize_all_activity(device, status);
  }
  [[gnu::cold]] static capi::TF_Bool host_callback(
      Device device, capi::SP_Stream stream,
      capi::SE_StatusCallbackFn callback_fn, void* callback_arg) {
    const internal::HostRecord record(internal::Activity::kHostCall,
                                      "host_callback");
    auto* const task = new (std::nothrow) TracedTask{callback_fn, callback_arg};
    if (task == nullptr) {
      return plain_.host_callback(device, stream, callback_fn, callback_arg);
    }
    const capi::TF_Bool accepted =
        plain_.host_callback(device, stream, &TracedTask::Run, task);
    if (!accepted) delete task;
    return accepted;
  }

  // ---- Memory --------------------------------------------------------------

  [[gnu::cold]] static void allocate(Device device, uint64_t size,
                                     int64_t memory_space,
                                     capi::SP_DeviceMemoryBase* mem) {
    plain_.allocate(device, size, memory_space, mem);
    AddMemory(internal::Activity::kAllocate, device, mem->opaque, size);
  }
  [[gnu::cold]] static void deallocate(Device device,
                                       capi::SP_DeviceMemoryBase* memory) {
    const void* const address = memory->opaque;
    const uint64_t size = memory->size;
    plain_.deallocate(device, memory);
    AddMemory(internal::Activity::kDeallocate, device, address, size);
  }

  // Replaces functions in the table by those above.
  [[gnu::cold]] static void Fill(capi::SP_StreamExecutor& table) {
    table.memcpy_dtoh = &memcpy_dtoh;
    table.memcpy_htod = &memcpy_htod;
    table.memcpy_dtod = &memcpy_dtod;
    table.mem_zero = &mem_zero;
    table.memset = &memset;
    table.memset32 = &memset32;
    table.create_stream_dependency = &create_stream_dependency;
    table.wait_for_event = &wait_for_event;
    table.sync_memcpy_dtoh = &sync_memcpy_dtoh;
    table.sync_memcpy_htod = &sync_memcpy_htod;
    table.sync_memcpy_dtod = &sync_memcpy_dtod;
    table.record_event = &record_event;
    table.block_host_for_event = &block_host_for_event;
    if (table.block_host_until_done != nullptr) {
      table.block_host_until_done = &block_host_until_done;
    }
    table.synchronize_all_activity = &synchronize_all_activity;
    table.host_callback = &host_callback;
    table.allocate = &allocate;
    table.deallocate = &deallocate;
  }

  // ---- For the recorder ----------------------------------------------------

  static uint32_t IdOf(capi::SP_Stream stream) {
    typename H::StreamBase& base = H::ToStream(stream);
    return internal::Access::state(base).trace_id;
  }
  static bool RunOnHost(capi::SP_Stream stream,
                        capi::SE_StatusCallbackFn function, void* argument) {
    TFPLUG_INTERNAL_TRY {
      return H::ToStream(stream)
          .H::StreamT::RunOnHost(HostTask(function, argument))
          .ok();
    }
    TFPLUG_INTERNAL_CATCH_ALL { return false; }
    return false;
  }
  static constexpr auto kStartTimer =
      []() -> decltype(profiler_internal::TracedStreams::start) {
    if constexpr (H::kHasTimes) return &AuthorTimer<DeviceT>::Start;
    return nullptr;
  }();
  static constexpr profiler_internal::TracedStreams kStreams = {
      &IdOf, &RunOnHost, kStartTimer};

 private:
  // Records a call and the work that it enqueues.
  class Enqueued {
   public:
    Enqueued(internal::Activity kind, const char* name, capi::SP_Stream stream,
             uint64_t bytes = 0)
        : record_(kind, name), stream_(stream) {
      if (!record_) return;
      record_->stream = IdOf(stream);
      record_->correlation = profiler_internal::Recorder::NextCorrelation();
      record_->values[0] = bytes;
      timer_ = profiler_internal::Recorder::StartWork(stream);
    }
    ~Enqueued() {
      if (record_)
        profiler_internal::Recorder::EndWork(stream_, record_->correlation,
                                             timer_);
    }

   private:
    mutable internal::HostRecord record_;
    capi::SP_Stream const stream_;
    profiler_internal::WorkTimer* timer_ = nullptr;
  };

  // Records a copy during which the host waits, as work of "stream 0".
  class Blocking {
   public:
    Blocking(internal::Activity kind, const char* name, Device device,
             uint64_t bytes)
        : record_(kind, name) {
      if (!record_) return;
      record_->stream = static_cast<uint32_t>(device->ordinal + 1) << 16;
      record_->values[0] = bytes;
    }

   private:
    internal::HostRecord record_;
  };

  // A host task of TensorFlow's whose run is recorded.
  struct TracedTask {
    capi::SE_StatusCallbackFn callback_fn;
    void* callback_arg;

    static void Run(void* argument, capi::TF_Status* status) {
      const auto task = *static_cast<TracedTask*>(argument);
      delete static_cast<TracedTask*>(argument);
      const internal::HostRecord record(internal::Activity::kHostTask,
                                        "host task");
      task.callback_fn(task.callback_arg, status);
    }
  };

  // The trampolines are called through this table, so that the compiler
  // optimizes them as if there were no calls in this file.
  [[gnu::visibility("hidden")]] static inline capi::SP_StreamExecutor plain_ =
      StreamExecutorTable<DeviceT>::Make();

  [[gnu::cold]] static void AddMemory(internal::Activity kind, Device device,
                                      const void* address, uint64_t size) {
    if (internal::ActiveProfiling() == nullptr || address == nullptr) return;
    internal::Record record = {};
    record.kind = kind;
    record.begin_ns = record.end_ns = profiler_internal::Recorder::NowNs();
    record.stream = static_cast<uint32_t>(device->ordinal + 1) << 16;
    record.correlation = reinterpret_cast<uintptr_t>(address);
    record.values[0] = size;
    capi::SP_AllocatorStats stats = {};
    stats.struct_size = capi::StructInfo<capi::SP_AllocatorStats>::kSize;
    if (plain_.get_allocator_stats(device, &stats)) {
      record.values[1] = static_cast<uint64_t>(stats.bytes_in_use);
      record.values[2] = static_cast<uint64_t>(stats.peak_bytes_in_use);
      record.values[3] = static_cast<uint64_t>(stats.bytes_limit);
    }
    profiler_internal::Recorder::Add(record, "");
  }
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_PROFILED_SLOTS_H_
