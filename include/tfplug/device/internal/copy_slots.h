// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_COPY_SLOTS_H_
#define TFPLUG_DEVICE_INTERNAL_COPY_SLOTS_H_

#include <cstdint>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "tfplug/abi/sp_device.h"
#include "tfplug/abi/sp_device_memory_base.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/device/internal/handles.h"
#include "tfplug/device/internal/upload_order.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// The trampolines of SP_StreamExecutor that copy and fill memory.
template <class DeviceT>
struct CopySlots {
  using H = Handles<DeviceT>;
  using StreamT = typename H::StreamT;

  static void memcpy_dtoh(const capi::SP_Device*, capi::SP_Stream stream,
                          void* host_dst,
                          const capi::SP_DeviceMemoryBase* device_src,
                          uint64_t size, capi::TF_Status* status) {
    internal::Guard(status, "memcpy_dtoh", [&] {
      return H::ToStream(stream).StreamT::CopyDeviceToHost(
          host_dst, H::ToMemory(device_src), size);
    });
  }

  static void memcpy_htod(const capi::SP_Device* device, capi::SP_Stream stream,
                          capi::SP_DeviceMemoryBase* device_dst,
                          const void* host_src, uint64_t size,
                          capi::TF_Status* status) {
    if (ABSL_PREDICT_FALSE(
            UploadOrder<DeviceT>::MustWait(H::ToStream(stream)))) {
      return WaitAndCopy(device, stream, device_dst, host_src, size, status);
    }
    internal::Guard(status, "memcpy_htod", [&] {
      return H::ToStream(stream).StreamT::CopyHostToDevice(
          H::ToMemory(device_dst), host_src, size);
    });
  }

  static void memcpy_dtod(const capi::SP_Device*, capi::SP_Stream stream,
                          capi::SP_DeviceMemoryBase* device_dst,
                          const capi::SP_DeviceMemoryBase* device_src,
                          uint64_t size, capi::TF_Status* status) {
    internal::Guard(status, "memcpy_dtod", [&] {
      return H::ToStream(stream).StreamT::CopyDeviceToDevice(
          H::ToMemory(device_dst), H::ToMemory(device_src), size);
    });
  }

  static void sync_memcpy_dtoh(const capi::SP_Device* device, void* host_dst,
                               const capi::SP_DeviceMemoryBase* device_src,
                               uint64_t size, capi::TF_Status* status) {
    internal::Guard(status, "sync_memcpy_dtoh", [&] {
      return H::ToDevice(device).DeviceT::CopyDeviceToHostSync(
          host_dst, H::ToMemory(device_src), size);
    });
  }

  static void sync_memcpy_htod(const capi::SP_Device* device,
                               capi::SP_DeviceMemoryBase* device_dst,
                               const void* host_src, uint64_t size,
                               capi::TF_Status* status) {
    internal::Guard(status, "sync_memcpy_htod", [&] {
      return H::ToDevice(device).DeviceT::CopyHostToDeviceSync(
          H::ToMemory(device_dst), host_src, size);
    });
  }

  static void sync_memcpy_dtod(const capi::SP_Device* device,
                               capi::SP_DeviceMemoryBase* device_dst,
                               const capi::SP_DeviceMemoryBase* device_src,
                               uint64_t size, capi::TF_Status* status) {
    internal::Guard(status, "sync_memcpy_dtod", [&] {
      return H::ToDevice(device).DeviceT::CopyDeviceToDeviceSync(
          H::ToMemory(device_dst), H::ToMemory(device_src), size);
    });
  }

  static void mem_zero(const capi::SP_Device*, capi::SP_Stream stream,
                       capi::SP_DeviceMemoryBase* location, uint64_t size,
                       capi::TF_Status* status) {
    internal::Guard(status, "mem_zero", [&] {
      return H::ToStream(stream).StreamT::MemZero(H::ToMemory(location), size);
    });
  }

  static void memset(const capi::SP_Device*, capi::SP_Stream stream,
                     capi::SP_DeviceMemoryBase* location, uint8_t pattern,
                     uint64_t size, capi::TF_Status* status) {
    internal::Guard(status, "memset", [&] {
      return H::ToStream(stream).StreamT::Memset(H::ToMemory(location),
                                                 BytePattern{pattern}, size);
    });
  }

  static void memset32(const capi::SP_Device*, capi::SP_Stream stream,
                       capi::SP_DeviceMemoryBase* location, uint32_t pattern,
                       uint64_t size, capi::TF_Status* status) {
    internal::Guard(status, "memset32", [&] {
      return H::ToStream(stream).StreamT::Memset32(H::ToMemory(location),
                                                   WordPattern{pattern}, size);
    });
  }

 private:
  // Implements memcpy_htod for a copy that TensorFlow has not ordered. This is
  // a separate function because, with the wait in memcpy_htod itself, copies
  // that need no wait would take more instructions.
  [[gnu::noinline]] static void WaitAndCopy(
      const capi::SP_Device* device, capi::SP_Stream stream,
      capi::SP_DeviceMemoryBase* device_dst, const void* host_src,
      uint64_t size, capi::TF_Status* status) {
    internal::Guard(status, "memcpy_htod", [&] {
      absl::Status waited =
          UploadOrder<DeviceT>::Wait(H::ToDevice(device), H::ToStream(stream));
      if (ABSL_PREDICT_FALSE(!waited.ok())) return waited;
      return H::ToStream(stream).StreamT::CopyHostToDevice(
          H::ToMemory(device_dst), host_src, size);
    });
  }
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_COPY_SLOTS_H_
