// SPDX-License-Identifier: Apache-2.0
//
// A device, a kernel, a graph pass and a profiler, written by hand against the
// C API: correct, or with the one fault that $TFPLUG_TEST_FAULT names. See
// check_test.py.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "api.h"
#include "stream.h"

using namespace tfplug::capi;  // NOLINT(google-build-using-namespace)

namespace {

// ---- Memory -----------------------------------------------------------------

std::mutex mutex;
std::map<void*, uint64_t> sizes;
int64_t in_use = 0, peak = 0, allocations = 0, largest = 0;

void* Align256(uint64_t size, bool is_host) {
  if (Has("aligned_alloc_misfit")) return std::aligned_alloc(256, size);
  if (size > UINT64_MAX - 256 && !Has("huge_overflow")) return nullptr;
  if (Has("misaligned") || (is_host && Has("host_misaligned"))) {
    auto* const memory = static_cast<char*>(
        std::aligned_alloc(256, (size + 511) & ~uint64_t{255}));
    return memory == nullptr ? nullptr : memory + 64;
  }
  return std::aligned_alloc(256, (size + 255) & ~uint64_t{255});
}
void FreeAligned(void* memory, bool is_host) {
  const bool is_moved =
      Has("misaligned") || (is_host && Has("host_misaligned"));
  if (is_moved && memory != nullptr) {
    memory = static_cast<char*>(memory) - 64;
  }
  std::free(memory);
}

void allocate(const SP_Device*, uint64_t size, int64_t,
              SP_DeviceMemoryBase* mem) {
  if (Has("reads_environment")) std::getenv("TFPLUG_CHECK_NOTHING");
  if (Has("huge_throws")) std::vector<char>().resize(size);
  mem->opaque = Align256(size, false);
  mem->size = mem->opaque == nullptr ? 0 : size;
  mem->payload = 0;
  if (mem->opaque == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex);
  sizes[mem->opaque] = size;
  in_use += static_cast<int64_t>(size);
  peak = std::max(peak, in_use);
  largest = std::max(largest, static_cast<int64_t>(size));
  ++allocations;
}

void deallocate(const SP_Device*, SP_DeviceMemoryBase* mem) {
  if (mem->opaque == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex);
  in_use -= static_cast<int64_t>(sizes[mem->opaque]);
  sizes.erase(mem->opaque);
  FreeAligned(mem->opaque, false);
}

void* host_memory_allocate(const SP_Device*, uint64_t size) {
  return Align256(size, true);
}
void host_memory_deallocate(const SP_Device*, void* mem) {
  FreeAligned(mem, true);
}

TF_Bool get_allocator_stats(const SP_Device*, SP_AllocatorStats* stats) {
  if (Has("no_statistics")) return 0;
  std::lock_guard<std::mutex> lock(mutex);
  stats->struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
  stats->bytes_in_use = Has("statistics_invented") ? 123 : in_use;
  stats->peak_bytes_in_use = peak;
  stats->num_allocs = allocations;
  stats->largest_alloc_size = largest;
  return 1;
}

TF_Bool device_memory_usage(const SP_Device*, int64_t* free, int64_t* total) {
  *free = *total = int64_t{1} << 30;
  return 1;
}

// ---- Streams ----------------------------------------------------------------

void Ok(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

void create_stream(const SP_Device*, SP_Stream* stream, TF_Status* status) {
  *stream = new SP_Stream_st;
  Ok(status);
}
void destroy_stream(const SP_Device*, SP_Stream stream) { delete stream; }
void create_stream_dependency(const SP_Device*, SP_Stream dependent,
                              SP_Stream other, TF_Status* status) {
  const auto point = other->Record();
  if (!Has("dependency_ignored")) dependent->Add([point] { point->Wait(); });
  Ok(status);
}
void get_stream_status(const SP_Device*, SP_Stream, TF_Status* status) {
  Ok(status);
}

void create_event(const SP_Device*, SP_Event* event, TF_Status* status) {
  if (Has("handle_unset")) return Ok(status);
  if (Has("threads_race")) {
    static SP_Event created;
    created = new SP_Event_st;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    *event = created;
    return Ok(status);
  }
  *event = new SP_Event_st;
  Ok(status);
}
void destroy_event(const SP_Device*, SP_Event event) { delete event; }
SE_EventStatus get_event_status(const SP_Device*, SP_Event event) {
  const auto point = event->Get();
  const bool is_complete = point == nullptr || point->is_reached();
  return is_complete || Has("event_complete") ? SE_EVENT_COMPLETE
                                              : SE_EVENT_PENDING;
}
void record_event(const SP_Device*, SP_Stream stream, SP_Event event,
                  TF_Status* status) {
  std::lock_guard<std::mutex> lock(event->mutex);
  event->point = stream->Record();
  Ok(status);
}
void wait_for_event(const SP_Device*, SP_Stream stream, SP_Event event,
                    TF_Status* status) {
  if (const auto point = event->Get()) stream->Add([point] { point->Wait(); });
  Ok(status);
}
void block_host_for_event(const SP_Device*, SP_Event event, TF_Status* status) {
  if (const auto point = event->Get()) point->Wait();
  Ok(status);
}
void block_host_until_done(const SP_Device*, SP_Stream stream,
                           TF_Status* status) {
  stream->Record()->Wait();
  Ok(status);
}

std::set<SP_Stream> streams;  // guarded by `mutex`
void create_listed_stream(const SP_Device* device, SP_Stream* stream,
                          TF_Status* status) {
  if (Has("stream_unset")) return Ok(status);
  create_stream(device, stream, status);
  std::lock_guard<std::mutex> lock(mutex);
  streams.insert(*stream);
}
void destroy_listed_stream(const SP_Device* device, SP_Stream stream) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    streams.erase(stream);
  }
  destroy_stream(device, stream);
}
void synchronize_all_activity(const SP_Device*, TF_Status* status) {
  std::vector<std::shared_ptr<Point>> points;
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (SP_Stream stream : streams) points.push_back(stream->Record());
  }
  for (const auto& point : points) point->Wait();
  Ok(status);
}

// ---- Copies and fills -------------------------------------------------------

void memcpy_dtoh(const SP_Device*, SP_Stream stream, void* dst,
                 const SP_DeviceMemoryBase* src, uint64_t size,
                 TF_Status* status) {
  void* const from = src->opaque;
  stream->Add([=] { std::memcpy(dst, from, size); });
  Ok(status);
}
void memcpy_htod(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* dst,
                 const void* src, uint64_t size, TF_Status* status) {
  if (Has("task_refers_to_stack")) {
    stream->Add([&] { std::memcpy(dst->opaque, src, size); });
    return Ok(status);
  }
  void* const to = dst->opaque;
  stream->Add([=] { std::memcpy(to, src, size); });
  Ok(status);
}
void memcpy_dtod(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* dst,
                 const SP_DeviceMemoryBase* src, uint64_t size,
                 TF_Status* status) {
  void* const to = dst->opaque;
  void* const from = src->opaque;
  stream->Add([=] { std::memcpy(to, from, size); });
  Ok(status);
}
void sync_memcpy_dtoh(const SP_Device*, void* dst,
                      const SP_DeviceMemoryBase* src, uint64_t size,
                      TF_Status* status) {
  // Copies four bytes at a time, and so may lose the last three.
  std::memcpy(dst, src->opaque, Has("copy_rounds_down") ? size / 4 * 4 : size);
  Ok(status);
}
void sync_memcpy_htod(const SP_Device*, SP_DeviceMemoryBase* dst,
                      const void* src, uint64_t size, TF_Status* status) {
  std::memcpy(dst->opaque, src, size);
  Ok(status);
}
void sync_memcpy_dtod(const SP_Device*, SP_DeviceMemoryBase* dst,
                      const SP_DeviceMemoryBase* src, uint64_t size,
                      TF_Status* status) {
  std::memcpy(dst->opaque, src->opaque, size);
  Ok(status);
}

void Fill(SP_Stream stream, SP_DeviceMemoryBase* location, uint32_t pattern,
          uint64_t size) {
  void* const to = location->opaque;
  stream->Add([=] {
    for (uint64_t i = 0; i < size; ++i) {
      static_cast<uint8_t*>(to)[i] = static_cast<uint8_t>(pattern >> i % 4 * 8);
    }
  });
}
void mem_zero(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* location,
              uint64_t size, TF_Status* status) {
  Fill(stream, location, 0, size);
  Ok(status);
}
void FillBytes(const SP_Device*, SP_Stream stream,
               SP_DeviceMemoryBase* location, uint8_t pattern, uint64_t size,
               TF_Status* status) {
  if (Has("fill_swapped"))
    std::swap(*reinterpret_cast<uint8_t*>(&size), pattern);
  Fill(stream, location, pattern * 0x01010101u, size);
  Ok(status);
}
void memset32(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* location,
              uint32_t pattern, uint64_t size, TF_Status* status) {
  Fill(stream, location, pattern, size);
  Ok(status);
}

TF_Bool host_callback(const SP_Device*, SP_Stream stream,
                      SE_StatusCallbackFn callback_fn, void* callback_arg) {
  if (Has("host_callback_dropped")) return TF_OK;
  if (Has("host_callback_lost")) return 1;
  stream->Add([=] {
    TF_Status* const status = TF_NewStatus();
    callback_fn(callback_arg, status);
    // On a thread that nobody else guards.
    if (Has("task_error_throws") && TF_GetCode(status) != TF_OK) throw 1;
    TF_DeleteStatus(status);
  });
  return 1;
}

// ---- Timers -----------------------------------------------------------------

uint64_t Now() {
  return static_cast<uint64_t>(
      std::chrono::steady_clock::now().time_since_epoch().count());
}
void create_timer(const SP_Device*, SP_Timer* timer, TF_Status* status) {
  *timer = new SP_Timer_st;
  Ok(status);
}
void destroy_timer(const SP_Device*, SP_Timer timer) { delete timer; }
void start_timer(const SP_Device*, SP_Stream stream, SP_Timer timer,
                 TF_Status* status) {
  stream->Add([timer] { timer->start = Now(); });
  Ok(status);
}
void stop_timer(const SP_Device*, SP_Stream stream, SP_Timer timer,
                TF_Status* status) {
  stream->Add([timer] { timer->stop = Now(); });
  Ok(status);
}
uint64_t nanoseconds(SP_Timer timer) {
  const uint64_t time = timer->stop - timer->start;
  return Has("timer_in_picoseconds") ? time * 1000 : time;
}

// ---- Registration -----------------------------------------------------------

void get_device_count(const SP_Platform*, int* count, TF_Status* status) {
  *count = Has("no_device") ? 0 : 1;
  Ok(status);
}
void create_device(const SP_Platform*, SE_CreateDeviceParams* params,
                   TF_Status* status) {
  params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
  params->device->ordinal = params->ordinal;
  params->device->hardware_name = "none";
  if (Has("device_fails")) {
    return TF_SetStatus(status, TF_INTERNAL, "no driver");
  }
  Ok(status);
}
void destroy_device(const SP_Platform*, SP_Device*) {}
void create_device_fns(const SP_Platform*, SE_CreateDeviceFnsParams* params,
                       TF_Status* status) {
  params->device_fns->struct_size =
      Has("struct_size_zero") ? 0 : SP_DEVICE_FNS_STRUCT_SIZE;
  Ok(status);
}
void destroy_device_fns(const SP_Platform*, SP_DeviceFns*) {}
void create_stream_executor(const SP_Platform*,
                            SE_CreateStreamExecutorParams* params,
                            TF_Status* status) {
  SP_StreamExecutor table = {};
  table.allocate = allocate;
  table.deallocate = deallocate;
  table.host_memory_allocate = host_memory_allocate;
  table.host_memory_deallocate = host_memory_deallocate;
  table.get_allocator_stats = get_allocator_stats;
  table.device_memory_usage = device_memory_usage;
  table.create_stream = create_listed_stream;
  table.destroy_stream = destroy_listed_stream;
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
  table.memset = FillBytes;
  table.memset32 = memset32;
  table.host_callback = Has("callback_null") ? nullptr : host_callback;
  const size_t size = params->stream_executor->struct_size;
  table.struct_size = std::min(size, sizeof(table));
  if (Has("struct_size_ignored")) {
    table.struct_size = sizeof(table);
    *params->stream_executor = table;
  } else if (size < offsetof(SP_StreamExecutor, create_stream_with_options)) {
    CopyTo(*reinterpret_cast<SP_StreamExecutor_2_5*>(params->stream_executor),
           table);
  } else {
    std::memcpy(params->stream_executor, &table, table.struct_size);
  }
  Ok(status);
}
void destroy_stream_executor(const SP_Platform*, SP_StreamExecutor*) {}
void create_timer_fns(const SP_Platform*, SP_TimerFns* fns, TF_Status* status) {
  fns->struct_size = SP_TIMER_FNS_STRUCT_SIZE;
  fns->nanoseconds = nanoseconds;
  Ok(status);
}
void destroy_timer_fns(const SP_Platform*, SP_TimerFns*) {}
void destroy_platform(SP_Platform*) {}
void destroy_platform_fns(SP_PlatformFns*) {}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params,
                          TF_Status* status) {
  SP_Platform& platform = *params->platform;
  platform.struct_size =
      std::min<size_t>(platform.struct_size, SP_PLATFORM_STRUCT_SIZE);
  const std::string name = "HAND_WRITTEN_PLATFORM";
  platform.name = Has("name_dangling")     ? name.c_str()
                  : Has("name_lower_case") ? "hand written"
                                           : DeviceType();
  platform.type = DeviceType();
  platform.use_bfc_allocator = 1;
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
  params->destroy_platform =
      Has("destroy_missing") ? nullptr : destroy_platform;
  params->destroy_platform_fns = destroy_platform_fns;
  Ok(status);
}
