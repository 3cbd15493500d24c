// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace {

// Blocks of 2^6 to 2^29 bytes, each after a header with its size class.
constexpr uint64_t kMemory = uint64_t{1} << 30;
constexpr unsigned kSmallest = 6, kClasses = 24;

struct alignas(256) Block {
  Block* next;
  unsigned size_class;
};

// Reuses objects of one type.
template <class T>
class Pool {
 public:
  T* Get() {
    T* object = free_;
    if (object == nullptr) return new (std::nothrow) T();
    free_ = object->next;
    return object;
  }
  void Release(T* object) {
    object->next = free_;
    free_ = object;
  }
  ~Pool() {
    while (free_ != nullptr) delete std::exchange(free_, free_->next);
  }

 private:
  T* free_ = nullptr;
};

}  // namespace

struct drv_stream {
  drv_stream* next = nullptr;
  drv_device* device = nullptr;
  uint64_t done = 0;  // completed operations
  int error = DRV_OK;
};

struct drv_event {
  drv_event* next = nullptr;
  drv_device* device = nullptr;
  drv_stream* stream = nullptr;  // null if never recorded
  uint64_t point = 0;
};

struct drv_device {
  Block* free_blocks[kClasses] = {};
  int64_t free_bytes = kMemory;
  Pool<drv_stream> streams;
  Pool<drv_event> events;
};

extern "C" {

const char* drv_error_string(int result) {
  switch (result) {
    case DRV_OK:
      return "no error";
    case DRV_NOT_READY:
      return "not ready";
    case DRV_OUT_OF_MEMORY:
      return "out of memory";
    case DRV_INVALID_VALUE:
      return "invalid value";
    case DRV_HOST_TASK_FAILED:
      return "a host task failed";
  }
  return "unknown error";
}

int drv_device_count(int* count) {
  *count = 1;
  return DRV_OK;
}

int drv_device_open(int ordinal, drv_device** device) {
  if (ordinal != 0) return DRV_INVALID_VALUE;
  *device = new (std::nothrow) drv_device();
  return *device != nullptr ? DRV_OK : DRV_OUT_OF_MEMORY;
}

int drv_device_close(drv_device* device) {
  for (Block* block : device->free_blocks) {
    while (block != nullptr) std::free(std::exchange(block, block->next));
  }
  delete device;
  return DRV_OK;
}

int drv_device_synchronize(drv_device*) { return DRV_OK; }

int drv_memory_info(drv_device* device, int64_t* free, int64_t* total) {
  *free = device->free_bytes;
  *total = kMemory;
  return DRV_OK;
}

int drv_alloc(drv_device* device, uint64_t size, void** memory) {
  if (size > kMemory / 2) return DRV_OUT_OF_MEMORY;
  const unsigned bits = 64 - __builtin_clzll((size - 1) | 1);
  const unsigned size_class = bits <= kSmallest ? 0 : bits - kSmallest;
  const int64_t bytes = int64_t{1} << (size_class + kSmallest);
  if (bytes > device->free_bytes) return DRV_OUT_OF_MEMORY;
  Block* block = device->free_blocks[size_class];
  if (block != nullptr) {
    device->free_blocks[size_class] = block->next;
  } else {
    block = static_cast<Block*>(
        std::aligned_alloc(alignof(Block), sizeof(Block) + bytes));
    if (block == nullptr) return DRV_OUT_OF_MEMORY;
    block->size_class = size_class;
  }
  device->free_bytes -= bytes;
  *memory = block + 1;
  return DRV_OK;
}

int drv_free(drv_device* device, void* memory) {
  if (memory == nullptr) return DRV_OK;
  Block* block = static_cast<Block*>(memory) - 1;
  if (block->size_class >= kClasses) return DRV_INVALID_VALUE;
  block->next = device->free_blocks[block->size_class];
  device->free_blocks[block->size_class] = block;
  device->free_bytes += int64_t{1} << (block->size_class + kSmallest);
  return DRV_OK;
}

int drv_stream_create(drv_device* device, drv_stream** stream) {
  drv_stream* created = device->streams.Get();
  *stream = created;
  if (created == nullptr) return DRV_OUT_OF_MEMORY;
  created->device = device;
  created->done = 0;
  created->error = DRV_OK;
  return DRV_OK;
}

int drv_stream_destroy(drv_stream* stream) {
  if (stream == nullptr) return DRV_OK;
  stream->device->streams.Release(stream);
  return DRV_OK;
}

int drv_stream_query(drv_stream* stream) { return stream->error; }

int drv_stream_synchronize(drv_stream* stream) { return stream->error; }

int drv_stream_wait_event(drv_stream* stream, drv_event* event) {
  if (event->stream == nullptr) return DRV_OK;
  if (event->stream->done < event->point) return DRV_NOT_READY;
  if (stream->error == DRV_OK) stream->error = event->stream->error;
  ++stream->done;
  return DRV_OK;
}

int drv_event_create(drv_device* device, drv_event** event) {
  drv_event* created = device->events.Get();
  *event = created;
  if (created == nullptr) return DRV_OUT_OF_MEMORY;
  created->device = device;
  created->stream = nullptr;
  created->point = 0;
  return DRV_OK;
}

int drv_event_destroy(drv_event* event) {
  if (event == nullptr) return DRV_OK;
  event->device->events.Release(event);
  return DRV_OK;
}

int drv_event_record(drv_event* event, drv_stream* stream) {
  event->stream = stream;
  event->point = stream->done;
  return DRV_OK;
}

int drv_event_query(drv_event* event) {
  if (event->stream == nullptr) return DRV_OK;
  if (event->stream->done < event->point) return DRV_NOT_READY;
  return event->stream->error;
}

int drv_event_synchronize(drv_event* event) { return drv_event_query(event); }

int drv_copy(drv_device*, void* dst, const void* src, uint64_t size) {
  std::memmove(dst, src, size);
  return DRV_OK;
}

int drv_copy_async(drv_stream* stream, void* dst, const void* src,
                   uint64_t size) {
  if (stream->error != DRV_OK) return DRV_OK;
  std::memmove(dst, src, size);
  ++stream->done;
  return DRV_OK;
}

int drv_fill8_async(drv_stream* stream, void* dst, uint8_t value,
                    uint64_t size) {
  if (stream->error != DRV_OK) return DRV_OK;
  std::memset(dst, value, size);
  ++stream->done;
  return DRV_OK;
}

int drv_fill32_async(drv_stream* stream, void* dst, uint32_t value,
                     uint64_t size) {
  if (size % 4 != 0) return DRV_INVALID_VALUE;
  if (stream->error != DRV_OK) return DRV_OK;
  std::fill_n(static_cast<uint32_t*>(dst), size / 4, value);
  ++stream->done;
  return DRV_OK;
}

int drv_host_task(drv_stream* stream, drv_host_fn function, void* argument) {
  const int result = function(argument);
  if (stream->error == DRV_OK) stream->error = result;
  ++stream->done;
  return DRV_OK;
}

int drv_scale_async(drv_stream* stream, float* y, const float* x, float alpha,
                    int64_t n) {
  if (stream->error != DRV_OK) return DRV_OK;
  for (int64_t i = 0; i < n; ++i) y[i] = alpha * x[i];
  ++stream->done;
  return DRV_OK;
}

int drv_add_async(drv_stream* stream, float* z, const float* x, const float* y,
                  int64_t n) {
  if (stream->error != DRV_OK) return DRV_OK;
  for (int64_t i = 0; i < n; ++i) z[i] = x[i] + y[i];
  ++stream->done;
  return DRV_OK;
}

int drv_spread_async(drv_stream* stream, float* y, const float* x, int64_t n) {
  if (stream->error != DRV_OK) return DRV_OK;
  std::fill_n(y, n, *x);
  ++stream->done;
  return DRV_OK;
}

}  // extern "C"
