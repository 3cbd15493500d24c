// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_DEFAULT_PROFILER_H_
#define TFPLUG_DEVICE_INTERNAL_DEFAULT_PROFILER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "tfplug/abi/sp_stream_executor.h"
#include "tfplug/base/internal/registered_platform.h"
#include "tfplug/device/internal/device_times.h"
#include "tfplug/device/internal/profiled_slots.h"
#include "tfplug/device/internal/stream_executor_table.h"
#include "tfplug/profiler/internal/device_clock.h"
#include "tfplug/profiler/internal/recorder.h"
#include "tfplug/profiler/internal/trace_report.h"
#include "tfplug/profiler/profiler.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// The functions of SP_StreamExecutor that are in use: the trampolines, or,
// while a profile is recorded, those that record the calls. TensorFlow copies
// its table once, so that table has stubs that jump to these functions. A stub
// is one instruction.
template <class DeviceT>
struct SwitchedTable {
  using Table = capi::SP_StreamExecutor;

  // Returns the table for TensorFlow. If `use_bfc_allocator`, TensorFlow rarely
  // allocates memory and itself records the use of it.
  static Table Make(bool use_bfc_allocator) {
    Table table = StreamExecutorTable<DeviceT>::Make();
    Route<&Table::memcpy_dtoh, &Table::memcpy_htod, &Table::memcpy_dtod,
          &Table::mem_zero, &Table::memset32, &Table::create_stream_dependency,
          &Table::wait_for_event, &Table::sync_memcpy_dtoh,
          &Table::sync_memcpy_htod, &Table::sync_memcpy_dtod,
          &Table::record_event, &Table::block_host_for_event,
          &Table::block_host_until_done, &Table::synchronize_all_activity,
          &Table::host_callback>(table);
    table.memset = CastFunction<decltype(table.memset)>(&JumpToMemset);
    if (!use_bfc_allocator) {
      Route<&Table::allocate, &Table::deallocate>(table);
    }
    return table;
  }

  [[gnu::cold]] static void SetProfiled(bool is_profiled) {
    Table table = StreamExecutorTable<DeviceT>::Make();
    if (is_profiled) ProfiledSlots<DeviceT>::Fill(table);
    Store<&Table::memcpy_dtoh, &Table::memcpy_htod, &Table::memcpy_dtod,
          &Table::mem_zero, &Table::memset, &Table::memset32,
          &Table::create_stream_dependency, &Table::wait_for_event,
          &Table::sync_memcpy_dtoh, &Table::sync_memcpy_htod,
          &Table::sync_memcpy_dtod, &Table::record_event,
          &Table::block_host_for_event, &Table::block_host_until_done,
          &Table::synchronize_all_activity, &Table::host_callback,
          &Table::allocate, &Table::deallocate>(table);
  }

 private:
  template <auto field, class = decltype(field)>
  struct Stub;
  template <auto field, class Result, class... Arguments>
  struct Stub<field, Result (*Table::*)(Arguments...)> {
    static Result Jump(Arguments... arguments) {
      return __atomic_load_n(&(active_.*field), __ATOMIC_RELAXED)(arguments...);
    }
  };

  template <class To, class From>
  static To CastFunction(From function) {
    return reinterpret_cast<To>(reinterpret_cast<void (*)()>(function));
  }

  // The stub of memset. The compiler would extend a byte before it passes it
  // on; in the calling conventions of x86-64 and AArch64 it comes in a register
  // whose other bits do not count, so the whole register is passed on.
  static void JumpToMemset(const capi::SP_Device* device,
                           capi::SP_Stream stream,
                           capi::SP_DeviceMemoryBase* location,
                           uint32_t pattern, uint64_t size,
                           capi::TF_Status* status) {
    CastFunction<decltype(&JumpToMemset)>(
        __atomic_load_n(&active_.memset, __ATOMIC_RELAXED))(
        device, stream, location, pattern, size, status);
  }

  template <auto... fields>
  static void Route(Table& table) {
    ((table.*fields = table.*fields == nullptr ? nullptr : &Stub<fields>::Jump),
     ...);
  }
  template <auto... fields>
  static void Store(const Table& from) {
    (__atomic_store_n(&(active_.*fields), from.*fields, __ATOMIC_RELEASE), ...);
  }

  [[gnu::visibility("hidden")]] static inline Table active_ =
      StreamExecutorTable<DeviceT>::Make();
};

// The profiler that comes with a device.
template <class DeviceT>
class DefaultProfiler : public Profiler {
 public:
  [[gnu::cold]] absl::Status Start() override {
    clocks_.clear();
    ReadClocks();
    profiler_internal::Recorder::Start(ProfiledSlots<DeviceT>::kStreams);
    SwitchedTable<DeviceT>::SetProfiled(true);
    return absl::OkStatus();
  }
  [[gnu::cold]] absl::Status Stop() override {
    SwitchedTable<DeviceT>::SetProfiled(false);
    profiler_internal::Recorder::Stop();
    ReadClocks();
    return absl::OkStatus();
  }
  [[gnu::cold]] absl::Status Collect(XSpace& space) override {
    profiler_internal::TraceReport(internal::registered_platform.device_type,
                                   clocks_, space)
        .Write();
    return absl::OkStatus();
  }

 private:
  void ReadClocks() {
    if constexpr (Handles<DeviceT>::kHasTimes) {
      TimedDevices<DeviceT>::ReadClocks(clocks_);
    }
  }

  profiler_internal::DeviceClocks clocks_;
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_DEFAULT_PROFILER_H_
