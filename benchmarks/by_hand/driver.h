// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BENCHMARKS_BY_HAND_DRIVER_H_
#define TFPLUG_BENCHMARKS_BY_HAND_DRIVER_H_

#include <cstdint>

// The driver of a fictitious device, with an interface like that of real ones:
// C functions that return an error code. Both plug-ins in this directory use
// it. It completes each call immediately and in few instructions, so that the
// overhead of a plug-in is visible.
extern "C" {

enum drv_result {
  DRV_OK = 0,
  DRV_NOT_READY = 1,
  DRV_OUT_OF_MEMORY = 2,
  DRV_INVALID_VALUE = 3,
  DRV_HOST_TASK_FAILED = 4,
};

struct drv_device;
struct drv_stream;
struct drv_event;

// Returns a drv_result; any but DRV_OK stops the stream.
typedef int (*drv_host_fn)(void* argument);

const char* drv_error_string(int result);

int drv_device_count(int* count);
int drv_device_open(int ordinal, drv_device** device);
int drv_device_close(drv_device* device);
int drv_device_synchronize(drv_device* device);
int drv_memory_info(drv_device* device, int64_t* free, int64_t* total);

// Memory is aligned to 256 bytes. Freeing null has no effect.
int drv_alloc(drv_device* device, uint64_t size, void** memory);
int drv_free(drv_device* device, void* memory);

// On failure, drv_stream_create and drv_event_create set the handle to null.
// Destroying null has no effect.
int drv_stream_create(drv_device* device, drv_stream** stream);
int drv_stream_destroy(drv_stream* stream);
int drv_stream_query(drv_stream* stream);  // Returns its first error.
int drv_stream_synchronize(drv_stream* stream);
int drv_stream_wait_event(drv_stream* stream, drv_event* event);

int drv_event_create(drv_device* device, drv_event** event);
int drv_event_destroy(drv_event* event);
int drv_event_record(drv_event* event, drv_stream* stream);
int drv_event_query(drv_event* event);  // DRV_NOT_READY: pending
int drv_event_synchronize(drv_event* event);

// Source and destination may be in host memory.
int drv_copy(drv_device* device, void* dst, const void* src, uint64_t size);
int drv_copy_async(drv_stream* stream, void* dst, const void* src,
                   uint64_t size);
int drv_fill8_async(drv_stream* stream, void* dst, uint8_t value,
                    uint64_t size);
int drv_fill32_async(drv_stream* stream, void* dst, uint32_t value,
                     uint64_t size);
int drv_host_task(drv_stream* stream, drv_host_fn function, void* argument);

// Kernels on n floats: y = alpha x, z = x + y, y[i] = *x.
int drv_scale_async(drv_stream* stream, float* y, const float* x, float alpha,
                    int64_t n);
int drv_add_async(drv_stream* stream, float* z, const float* x, const float* y,
                  int64_t n);
int drv_spread_async(drv_stream* stream, float* y, const float* x, int64_t n);

}  // extern "C"

#endif  // TFPLUG_BENCHMARKS_BY_HAND_DRIVER_H_
