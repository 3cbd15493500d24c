// SPDX-License-Identifier: Apache-2.0
//
// A device plug-in written against the C API alone, as a careful author would
// write it: the baseline of tools/bench. framework.cc is the same device as C++
// classes, with the same driver calls, statuses and error messages. Both are
// optimized: errors are constructed in cold functions, hot functions are
// inline, and the last call of a function is a tail call.
#include "by_hand.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "driver.h"
#include "statistics.h"
#include "tfplug/abi/abi.h"

namespace {

// These names are in the global namespace in TensorFlow's headers.
using namespace tfplug::capi;  // NOLINT(google-build-using-namespace)

// ---- Failures ---------------------------------------------------------------

[[gnu::cold, gnu::noinline]] void Fail(TF_Status* status, int result,
                                       const char* slot) {
  const TF_Code code =
      result == DRV_OUT_OF_MEMORY ? TF_RESOURCE_EXHAUSTED : TF_INTERNAL;
  const std::string message =
      std::string(slot) + ": " + drv_error_string(result);
  TF_SetStatus(status, code, message.c_str());
}

[[gnu::cold, gnu::noinline]] void Log(int result, const char* slot) {
  std::fprintf(stderr, "by hand: %s: %s\n", slot, drv_error_string(result));
}

inline void SetStatus(TF_Status* status, int result, const char* slot) {
  if (__builtin_expect(result == DRV_OK, true)) {
    TF_SetStatus(status, TF_OK, "");
  } else {
    Fail(status, result, slot);
  }
}

// Returns null when the host is out of memory. `new (std::nothrow)` is slower:
// it calls plain `new`.
template <class T, class... Values>
inline T* New(Values... values) {
  try {
    return new T{values...};
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

inline const void* ThisThread() {
#if defined(__x86_64__)
  const void* thread;
  asm("movq %%fs:0, %0" : "=r"(thread));
  return thread;
#else
  return __builtin_thread_pointer();
#endif
}

// ---- The device: SP_Device::device_handle -----------------------------------

struct Device {
  drv_device* driver = nullptr;
  Statistics statistics;

  std::mutex streams_mutex;
  std::vector<SP_Stream> streams;
};

inline Device& ToDevice(const SP_Device* device) {
  return *static_cast<Device*>(device->device_handle);
}

inline drv_device* Driver(const SP_Device* device) {
  return ToDevice(device).driver;
}

// ---- SP_StreamExecutor: memory ----------------------------------------------

void allocate(const SP_Device* device, uint64_t size, int64_t,
              SP_DeviceMemoryBase* mem) {
  // Never writes past the end of TensorFlow's struct.
  if (mem->struct_size < SP_DEVICE_MEMORY_BASE_STRUCT_SIZE) return;
  Device& self = ToDevice(device);
  void* memory;
  const int result = drv_alloc(self.driver, size, &memory);
  if (__builtin_expect(result != DRV_OK, false)) {
    Log(result, "allocate");
    mem->opaque = nullptr;
    mem->size = 0;
    mem->payload = 0;
    return;
  }
  if (__builtin_expect(reinterpret_cast<uintptr_t>(memory) % 256 != 0, false)) {
    // TensorFlow 2.22 aborts on misaligned memory.
    Log(DRV_OUT_OF_MEMORY, "allocate: misaligned");
    drv_free(self.driver, memory);
    mem->opaque = nullptr;
    mem->size = 0;
    mem->payload = 0;
    return;
  }
  self.statistics.Add(size);
  mem->opaque = memory;
  mem->size = size;
  mem->payload = 0;
}

void deallocate(const SP_Device* device, SP_DeviceMemoryBase* mem) {
  if (mem->opaque == nullptr) return;
  Device& self = ToDevice(device);
  const int result = drv_free(self.driver, mem->opaque);
  if (__builtin_expect(result != DRV_OK, false)) {
    return Log(result, "deallocate");
  }
  self.statistics.Subtract(mem->size);
}

void* host_memory_allocate(const SP_Device*, uint64_t size) {
  if (size > UINT64_MAX - 255) return nullptr;
  void* memory = std::aligned_alloc(256, (size + 255) / 256 * 256);
  if (memory == nullptr && size != 0) {
    Log(DRV_OUT_OF_MEMORY, "host_memory_allocate");
  }
  return memory;
}

void host_memory_deallocate(const SP_Device*, void* mem) { std::free(mem); }

TF_Bool get_allocator_stats(const SP_Device* device, SP_AllocatorStats* stats) {
  const Statistics& counted = ToDevice(device).statistics;
  stats->struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
  stats->num_allocs = counted.num_allocs();
  stats->bytes_in_use = counted.bytes_in_use();
  stats->peak_bytes_in_use = counted.peak_bytes_in_use();
  stats->largest_alloc_size = counted.largest_alloc_size();
  stats->has_bytes_limit = false;
  stats->bytes_limit = 0;
  stats->bytes_reserved = 0;
  stats->peak_bytes_reserved = 0;
  stats->has_bytes_reservable_limit = false;
  stats->bytes_reservable_limit = 0;
  stats->largest_free_block_bytes = 0;
  return true;
}

TF_Bool device_memory_usage(const SP_Device* device, int64_t* free,
                            int64_t* total) {
  const int result = drv_memory_info(Driver(device), free, total);
  if (result != DRV_OK) Log(result, "device_memory_usage");
  return result == DRV_OK;
}

// ---- SP_StreamExecutor: streams ---------------------------------------------

bool AddStream(Device& device, SP_Stream stream) {
  std::lock_guard<std::mutex> lock(device.streams_mutex);
  try {
    device.streams.push_back(stream);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void create_stream(const SP_Device* device, SP_Stream* stream,
                   TF_Status* status) {
  auto* created = New<SP_Stream_st>();
  int result = DRV_OUT_OF_MEMORY;
  if (created != nullptr) {
    result = drv_stream_create(Driver(device), &created->handle);
    if (result == DRV_OK) {
      result = drv_event_create(Driver(device), &created->fence);
      if (result == DRV_OK && !AddStream(ToDevice(device), created)) {
        drv_event_destroy(created->fence);
        result = DRV_OUT_OF_MEMORY;
      }
      if (result != DRV_OK) drv_stream_destroy(created->handle);
    }
    if (result != DRV_OK) {
      delete created;
      created = nullptr;
    }
  }
  *stream = created;
  SetStatus(status, result, "create_stream");
}

void destroy_stream(const SP_Device* device, SP_Stream stream) {
  if (stream == nullptr) return;
  {
    Device& self = ToDevice(device);
    std::lock_guard<std::mutex> lock(self.streams_mutex);
    self.streams.erase(
        std::find(self.streams.begin(), self.streams.end(), stream));
  }
  drv_event_destroy(stream->fence);
  drv_stream_destroy(stream->handle);
  delete stream;
}

inline int Depend(SP_Stream dependent, SP_Stream other) {
  std::lock_guard<std::mutex> lock(other->fence_mutex);
  const int result = drv_event_record(other->fence, other->handle);
  if (__builtin_expect(result != DRV_OK, false)) return result;
  return drv_stream_wait_event(dependent->handle, other->fence);
}

void create_stream_dependency(const SP_Device*, SP_Stream dependent,
                              SP_Stream other, TF_Status* status) {
  const int result = Depend(dependent, other);
  if (__builtin_expect(result == DRV_OK, true)) {
    dependent->ordered_by.store(ThisThread(), std::memory_order_relaxed);
  }
  SetStatus(status, result, "create_stream_dependency");
}

// TensorFlow may copy a constant to memory that enqueued kernels still read. It
// orders every other copy after those kernels, but not this one.
int WaitForOthers(Device& device, SP_Stream stream) {
  std::lock_guard<std::mutex> lock(device.streams_mutex);
  for (SP_Stream other : device.streams) {
    if (other == stream) continue;
    const int result = Depend(stream, other);
    if (result != DRV_OK) return result;
  }
  return DRV_OK;
}

void get_stream_status(const SP_Device*, SP_Stream stream, TF_Status* status) {
  SetStatus(status, drv_stream_query(stream->handle), "get_stream_status");
}

// ---- SP_StreamExecutor: events ----------------------------------------------

void create_event(const SP_Device* device, SP_Event* event, TF_Status* status) {
  auto* created = New<SP_Event_st>();
  int result = DRV_OUT_OF_MEMORY;
  if (created != nullptr) {
    result = drv_event_create(Driver(device), &created->handle);
    if (result != DRV_OK) {
      delete created;
      created = nullptr;
    }
  }
  *event = created;
  SetStatus(status, result, "create_event");
}

void destroy_event(const SP_Device*, SP_Event event) {
  if (event == nullptr) return;
  drv_event_destroy(event->handle);
  delete event;
}

// TensorFlow aborts on any result but pending and complete. A failed poll does
// not imply that the work failed; waiting for the event shows whether it did.
[[gnu::cold, gnu::noinline]] SE_EventStatus SettleEvent(SP_Event event,
                                                        int polled) {
  Log(polled, "get_event_status");
  const int result = drv_event_synchronize(event->handle);
  if (result == DRV_OK) return SE_EVENT_COMPLETE;
  Log(result, "get_event_status");
  return SE_EVENT_ERROR;
}

SE_EventStatus get_event_status(const SP_Device*, SP_Event event) {
  const int result = drv_event_query(event->handle);
  if (result == DRV_OK) return SE_EVENT_COMPLETE;
  if (result == DRV_NOT_READY) return SE_EVENT_PENDING;
  return SettleEvent(event, result);
}

// TensorFlow ignores this status and polls the event anyway, so the event must
// not be complete before the work is.
void record_event(const SP_Device* device, SP_Stream stream, SP_Event event,
                  TF_Status* status) {
  stream->ordered_by.store(nullptr, std::memory_order_relaxed);
  const int result = drv_event_record(event->handle, stream->handle);
  if (__builtin_expect(result == DRV_OK, true)) {
    TF_SetStatus(status, TF_OK, "");
  } else {
    Fail(status, result, "record_event");
    drv_device_synchronize(Driver(device));
  }
}

void wait_for_event(const SP_Device*, SP_Stream stream, SP_Event event,
                    TF_Status* status) {
  SetStatus(status, drv_stream_wait_event(stream->handle, event->handle),
            "wait_for_event");
}

void block_host_for_event(const SP_Device*, SP_Event event, TF_Status* status) {
  SetStatus(status, drv_event_synchronize(event->handle),
            "block_host_for_event");
}

// ---- SP_StreamExecutor: copies and fills ------------------------------------

void memcpy_dtoh(const SP_Device*, SP_Stream stream, void* host_dst,
                 const SP_DeviceMemoryBase* device_src, uint64_t size,
                 TF_Status* status) {
  SetStatus(status,
            drv_copy_async(stream->handle, host_dst, device_src->opaque, size),
            "memcpy_dtoh");
}

[[gnu::noinline]] void OrderUpload(const SP_Device* device, SP_Stream stream,
                                   SP_DeviceMemoryBase* device_dst,
                                   const void* host_src, uint64_t size,
                                   TF_Status* status) {
  int result = WaitForOthers(ToDevice(device), stream);
  if (__builtin_expect(result == DRV_OK, true)) {
    result = drv_copy_async(stream->handle, device_dst->opaque, host_src, size);
  }
  SetStatus(status, result, "memcpy_htod");
}

void memcpy_htod(const SP_Device* device, SP_Stream stream,
                 SP_DeviceMemoryBase* device_dst, const void* host_src,
                 uint64_t size, TF_Status* status) {
  if (__builtin_expect(
          stream->ordered_by.load(std::memory_order_relaxed) != ThisThread(),
          false)) {
    return OrderUpload(device, stream, device_dst, host_src, size, status);
  }
  stream->ordered_by.store(nullptr, std::memory_order_relaxed);
  SetStatus(status,
            drv_copy_async(stream->handle, device_dst->opaque, host_src, size),
            "memcpy_htod");
}

void memcpy_dtod(const SP_Device*, SP_Stream stream,
                 SP_DeviceMemoryBase* device_dst,
                 const SP_DeviceMemoryBase* device_src, uint64_t size,
                 TF_Status* status) {
  SetStatus(status,
            drv_copy_async(stream->handle, device_dst->opaque,
                           device_src->opaque, size),
            "memcpy_dtod");
}

void sync_memcpy_dtoh(const SP_Device* device, void* host_dst,
                      const SP_DeviceMemoryBase* device_src, uint64_t size,
                      TF_Status* status) {
  SetStatus(status,
            drv_copy(Driver(device), host_dst, device_src->opaque, size),
            "sync_memcpy_dtoh");
}

void sync_memcpy_htod(const SP_Device* device, SP_DeviceMemoryBase* device_dst,
                      const void* host_src, uint64_t size, TF_Status* status) {
  SetStatus(status,
            drv_copy(Driver(device), device_dst->opaque, host_src, size),
            "sync_memcpy_htod");
}

void sync_memcpy_dtod(const SP_Device* device, SP_DeviceMemoryBase* device_dst,
                      const SP_DeviceMemoryBase* device_src, uint64_t size,
                      TF_Status* status) {
  SetStatus(
      status,
      drv_copy(Driver(device), device_dst->opaque, device_src->opaque, size),
      "sync_memcpy_dtod");
}

void mem_zero(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* location,
              uint64_t size, TF_Status* status) {
  SetStatus(status, drv_fill8_async(stream->handle, location->opaque, 0, size),
            "mem_zero");
}

void memset(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* location,
            uint8_t pattern, uint64_t size, TF_Status* status) {
  SetStatus(status,
            drv_fill8_async(stream->handle, location->opaque, pattern, size),
            "memset");
}

void memset32(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* location,
              uint32_t pattern, uint64_t size, TF_Status* status) {
  SetStatus(status,
            drv_fill32_async(stream->handle, location->opaque, pattern, size),
            "memset32");
}

// ---- SP_StreamExecutor: waiting and host tasks ------------------------------

void block_host_until_done(const SP_Device*, SP_Stream stream,
                           TF_Status* status) {
  SetStatus(status, drv_stream_synchronize(stream->handle),
            "block_host_until_done");
}

void synchronize_all_activity(const SP_Device* device, TF_Status* status) {
  SetStatus(status, drv_device_synchronize(Driver(device)),
            "synchronize_all_activity");
}

struct HostTask {
  SE_StatusCallbackFn callback_fn;
  void* callback_arg;
};

int RunHostTask(void* argument) {
  auto* task = static_cast<HostTask*>(argument);
  TF_Status* status = TF_NewStatus();
  task->callback_fn(task->callback_arg, status);
  const TF_Code code = TF_GetCode(status);
  TF_DeleteStatus(status);
  delete task;
  return code == TF_OK ? DRV_OK : DRV_HOST_TASK_FAILED;
}

TF_Bool host_callback(const SP_Device*, SP_Stream stream,
                      SE_StatusCallbackFn callback_fn, void* callback_arg) {
  auto* task = New<HostTask>(callback_fn, callback_arg);
  const int result = task == nullptr
                         ? DRV_OUT_OF_MEMORY
                         : drv_host_task(stream->handle, RunHostTask, task);
  if (__builtin_expect(result == DRV_OK, true)) return true;
  Log(result, "host_callback");
  delete task;
  return false;
}

// ---- SP_StreamExecutor and SP_TimerFns: timers ------------------------------

int64_t Now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

int StampStart(void* timer) {
  static_cast<SP_Timer>(timer)->start = Now();
  return DRV_OK;
}

int StampStop(void* timer) {
  static_cast<SP_Timer>(timer)->stop = Now();
  return DRV_OK;
}

void create_timer(const SP_Device*, SP_Timer* timer, TF_Status* status) {
  *timer = New<SP_Timer_st>();
  SetStatus(status, *timer == nullptr ? DRV_OUT_OF_MEMORY : DRV_OK,
            "create_timer");
}

void destroy_timer(const SP_Device*, SP_Timer timer) { delete timer; }

void start_timer(const SP_Device*, SP_Stream stream, SP_Timer timer,
                 TF_Status* status) {
  SetStatus(status, drv_host_task(stream->handle, StampStart, timer),
            "start_timer");
}

void stop_timer(const SP_Device*, SP_Stream stream, SP_Timer timer,
                TF_Status* status) {
  SetStatus(status, drv_host_task(stream->handle, StampStop, timer),
            "stop_timer");
}

uint64_t nanoseconds(SP_Timer timer) { return timer->stop - timer->start; }

// ---- SP_DeviceFns, SP_PlatformFns -------------------------------------------

int32_t get_numa_node(const SP_Device*) { return 0; }

void get_device_count(const SP_Platform*, int* device_count,
                      TF_Status* status) {
  *device_count = 0;
  const int result = drv_device_count(device_count);
  if (result != DRV_OK) Log(result, "get_device_count");
  TF_SetStatus(status, TF_OK, "");
}

void create_device(const SP_Platform*, SE_CreateDeviceParams* params,
                   TF_Status* status) {
  auto* created = New<Device>();
  int result = DRV_OUT_OF_MEMORY;
  if (created != nullptr) {
    result = drv_device_open(params->ordinal, &created->driver);
    if (result != DRV_OK) {
      delete created;
      created = nullptr;
    }
  }
  params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
  params->device->ordinal = params->ordinal;
  params->device->device_handle = created;
  params->device->hardware_name = "by hand";
  params->device->device_vendor = "tfplug";
  SetStatus(status, result, "create_device");
}

void destroy_device(const SP_Platform*, SP_Device* device) {
  auto* self = static_cast<Device*>(device->device_handle);
  if (self == nullptr) return;
  drv_device_close(self->driver);
  delete self;
  device->device_handle = nullptr;
}

void create_device_fns(const SP_Platform*, SE_CreateDeviceFnsParams* params,
                       TF_Status* status) {
  params->device_fns->struct_size = SP_DEVICE_FNS_STRUCT_SIZE;
  params->device_fns->get_numa_node = get_numa_node;
  TF_SetStatus(status, TF_OK, "");
}

void destroy_device_fns(const SP_Platform*, SP_DeviceFns*) {}

void create_stream_executor(const SP_Platform*,
                            SE_CreateStreamExecutorParams* params,
                            TF_Status* status) {
  SP_StreamExecutor& table = *params->stream_executor;
  table.struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE;
  table.allocate = allocate;
  table.deallocate = deallocate;
  table.host_memory_allocate = host_memory_allocate;
  table.host_memory_deallocate = host_memory_deallocate;
  table.get_allocator_stats = get_allocator_stats;
  table.device_memory_usage = device_memory_usage;
  table.create_stream = create_stream;
  table.destroy_stream = destroy_stream;
  table.create_stream_dependency = create_stream_dependency;
  table.get_stream_status = get_stream_status;
  table.create_event = create_event;
  table.destroy_event = destroy_event;
  table.get_event_status = get_event_status;
  table.record_event = record_event;
  table.wait_for_event = wait_for_event;
  table.create_timer = create_timer;
  table.destroy_timer = destroy_timer;
  table.start_timer = start_timer;
  table.stop_timer = stop_timer;
  table.memcpy_dtoh = memcpy_dtoh;
  table.memcpy_htod = memcpy_htod;
  table.memcpy_dtod = memcpy_dtod;
  table.sync_memcpy_dtoh = sync_memcpy_dtoh;
  table.sync_memcpy_htod = sync_memcpy_htod;
  table.sync_memcpy_dtod = sync_memcpy_dtod;
  table.block_host_for_event = block_host_for_event;
  table.block_host_until_done = block_host_until_done;
  table.synchronize_all_activity = synchronize_all_activity;
  table.mem_zero = mem_zero;
  table.memset = memset;
  table.memset32 = memset32;
  table.host_callback = host_callback;
  TF_SetStatus(status, TF_OK, "");
}

void destroy_stream_executor(const SP_Platform*, SP_StreamExecutor*) {}

void create_timer_fns(const SP_Platform*, SP_TimerFns* timer_fns,
                      TF_Status* status) {
  timer_fns->struct_size = SP_TIMER_FNS_STRUCT_SIZE;
  timer_fns->nanoseconds = nanoseconds;
  TF_SetStatus(status, TF_OK, "");
}

void destroy_timer_fns(const SP_Platform*, SP_TimerFns*) {}

void destroy_platform(SP_Platform*) {}

void destroy_platform_fns(SP_PlatformFns*) {}

}  // namespace

// ---- The entry point --------------------------------------------------------

extern "C" __attribute__((visibility("default"))) void SE_InitPlugin(
    SE_PlatformRegistrationParams* params, TF_Status* status) {
  SP_Platform& platform = *params->platform;
  platform.struct_size = SP_PLATFORM_STRUCT_SIZE;
  platform.name = "BY_HAND";
  platform.type = "BY_HAND";
  platform.supports_unified_memory = false;
  platform.use_bfc_allocator = true;
  platform.force_memory_growth = false;

  SP_PlatformFns& fns = *params->platform_fns;
  fns.struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
  fns.get_device_count = get_device_count;
  fns.create_device = create_device;
  fns.destroy_device = destroy_device;
  fns.create_device_fns = create_device_fns;
  fns.destroy_device_fns = destroy_device_fns;
  fns.create_stream_executor = create_stream_executor;
  fns.destroy_stream_executor = destroy_stream_executor;
  fns.create_timer_fns = create_timer_fns;
  fns.destroy_timer_fns = destroy_timer_fns;

  params->destroy_platform = destroy_platform;
  params->destroy_platform_fns = destroy_platform_fns;
  TF_SetStatus(status, TF_OK, "");
}
