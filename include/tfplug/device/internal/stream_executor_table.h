// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_STREAM_EXECUTOR_TABLE_H_
#define TFPLUG_DEVICE_INTERNAL_STREAM_EXECUTOR_TABLE_H_

#include "tfplug/abi/sp_stream_executor.h"
#include "tfplug/base/internal/override.h"
#include "tfplug/device/internal/copy_slots.h"
#include "tfplug/device/internal/event_slots.h"
#include "tfplug/device/internal/handles.h"
#include "tfplug/device/internal/memory_slots.h"
#include "tfplug/device/internal/stream_slots.h"
#include "tfplug/device/internal/timer_slots.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// Makes the SP_StreamExecutor of an author's Device. The base classes have one
// trampoline for each C field, with the field's name. A trampoline recovers the
// author's object from the handle and calls the hook within a guard, which
// converts failures to the C result.
template <class DeviceT>
struct StreamExecutorTable : MemorySlots<DeviceT>,
                             StreamSlots<DeviceT>,
                             EventSlots<DeviceT>,
                             TimerSlots<DeviceT>,
                             CopySlots<DeviceT> {
  // Slots of optional hooks that are not overridden stay null.
  static constexpr capi::SP_StreamExecutor Make() {
    using Self = StreamExecutorTable;
    using H = Handles<DeviceT>;
    capi::SP_StreamExecutor table = {};
    table.struct_size = capi::StructInfo<capi::SP_StreamExecutor>::kSize;
    table.allocate = &Self::allocate;
    table.deallocate = &Self::deallocate;
    table.host_memory_allocate = &Self::host_memory_allocate;
    table.host_memory_deallocate = &Self::host_memory_deallocate;
    if constexpr (H::kHasUnifiedMemory) {
      table.unified_memory_allocate = &Self::unified_memory_allocate;
      table.unified_memory_deallocate = &Self::unified_memory_deallocate;
    }
    table.get_allocator_stats = &Self::get_allocator_stats;
    table.device_memory_usage = &Self::device_memory_usage;
    table.create_stream = &Self::create_stream;
    table.destroy_stream = &Self::destroy_stream;
    table.create_stream_dependency = &Self::create_stream_dependency;
    table.get_stream_status = &Self::get_stream_status;
    table.create_event = &Self::create_event;
    table.destroy_event = &Self::destroy_event;
    table.get_event_status = &Self::get_event_status;
    table.record_event = &Self::record_event;
    table.wait_for_event = &Self::wait_for_event;
    table.create_timer = &Self::create_timer;
    table.destroy_timer = &Self::destroy_timer;
    table.start_timer = &Self::start_timer;
    table.stop_timer = &Self::stop_timer;
    table.memcpy_dtoh = &Self::memcpy_dtoh;
    table.memcpy_htod = &Self::memcpy_htod;
    table.memcpy_dtod = &Self::memcpy_dtod;
    table.sync_memcpy_dtoh = &Self::sync_memcpy_dtoh;
    table.sync_memcpy_htod = &Self::sync_memcpy_htod;
    table.sync_memcpy_dtod = &Self::sync_memcpy_dtod;
    table.block_host_for_event = &Self::block_host_for_event;
    if constexpr (internal::Overrides(&H::StreamT::BlockHostUntilDone,
                                      &H::StreamBase::BlockHostUntilDone)) {
      table.block_host_until_done = &Self::block_host_until_done;
    }
    table.synchronize_all_activity = &Self::synchronize_all_activity;
    table.mem_zero = &Self::mem_zero;
    table.memset = &Self::memset;
    table.memset32 = &Self::memset32;
    table.host_callback = &Self::host_callback;
    if constexpr (H::kTakesStreamOptions) {
      table.create_stream_with_options = &Self::create_stream_with_options;
    }
    return table;
  }
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_STREAM_EXECUTOR_TABLE_H_
