// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_DEVICE_INTERNAL_STREAM_SLOTS_H_
#define TFPLUG_DEVICE_INTERNAL_STREAM_SLOTS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/abi/sp_device.h"
#include "tfplug/abi/sp_stream_options.h"
#include "tfplug/base/internal/access.h"
#include "tfplug/base/internal/construct.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/override.h"
#include "tfplug/base/internal/struct_copy.h"
#include "tfplug/device/internal/handles.h"
#include "tfplug/device/internal/upload_order.h"

#pragma GCC visibility push(hidden)

namespace tfplug::device_internal {

// The trampolines of SP_StreamExecutor for streams, synchronization and host
// tasks.
template <class DeviceT>
struct StreamSlots {
  using H = Handles<DeviceT>;
  using EventT = typename H::EventT;
  using StreamBase = typename H::StreamBase;
  using StreamT = typename H::StreamT;

  static void create_stream(const capi::SP_Device* device,
                            capi::SP_Stream* stream, capi::TF_Status* status) {
    internal::Guard(status, "create_stream", [&] {
      return CreateHandleOfStream(stream, H::ToDevice(device), StreamOptions());
    });
    IdentifyStream(*device, *stream);
  }

  static void create_stream_with_options(const capi::SP_Device* device,
                                         const capi::SP_StreamOptions* options,
                                         capi::SP_Stream* stream,
                                         capi::TF_Status* status) {
    internal::Guard(status, "create_stream_with_options", [&] {
      return CreateHandleOfStream(stream, H::ToDevice(device), *options);
    });
    IdentifyStream(*device, *stream);
  }

  static void destroy_stream([[maybe_unused]] const capi::SP_Device* device,
                             capi::SP_Stream stream) {
    auto* const self = reinterpret_cast<StreamT*>(stream);
    UploadOrder<DeviceT>::Remove(H::ToDevice(device), self);
    internal::Destroy("destroy_stream", self);
  }

  static void create_stream_dependency(const capi::SP_Device*,
                                       capi::SP_Stream dependent,
                                       capi::SP_Stream other,
                                       capi::TF_Status* status) {
    internal::Guard(status, "create_stream_dependency", [&] {
      return UploadOrder<DeviceT>::WaitForStream(H::ToStream(dependent),
                                                 H::ToStream(other));
    });
  }

  static void get_stream_status(const capi::SP_Device*, capi::SP_Stream stream,
                                capi::TF_Status* status) {
    internal::Guard(status, "get_stream_status",
                    [&] { return H::ToStream(stream).StreamT::GetStatus(); });
  }

  static void block_host_until_done(const capi::SP_Device*,
                                    capi::SP_Stream stream,
                                    capi::TF_Status* status) {
    internal::Guard(status, "block_host_until_done", [&] {
      return H::ToStream(stream).StreamT::BlockHostUntilDone();
    });
  }

  static void synchronize_all_activity(const capi::SP_Device* device,
                                       capi::TF_Status* status) {
    internal::Guard(status, "synchronize_all_activity", [&] {
      return H::ToDevice(device).DeviceT::SynchronizeAllActivity();
    });
  }

  static capi::TF_Bool host_callback(const capi::SP_Device*,
                                     capi::SP_Stream stream,
                                     capi::SE_StatusCallbackFn callback_fn,
                                     void* callback_arg) {
    return internal::GuardOrLog("host_callback", [&] {
      return H::ToStream(stream).StreamT::RunOnHost(
          HostTask(callback_fn, callback_arg));
    });
  }

  // Creates a stream; passes the options if the author's class takes them.
  static absl::StatusOr<internal::Owned<StreamT>> CreateStream(
      DeviceT& device, StreamOptions options) {
    if constexpr (H::kTakesStreamOptions) {
      return internal::Create<StreamT>(device, options);
    } else {
      return internal::Create<StreamT>(device);
    }
  }

 private:
  static void IdentifyStream(const capi::SP_Device& device,
                             capi::SP_Stream stream) {
    if (stream == nullptr) return;
    StreamBase& base = H::ToStream(stream);
    internal::Access::state(base).trace_id = NextTraceId(device.ordinal);
    internal::Access::state(base).device = device.device_handle;
  }

  static absl::Status CreateHandleOfStream(
      capi::SP_Stream* to, DeviceT& device,
      const capi::SP_StreamOptions& options) {
    *to = nullptr;
    if (absl::Status s = internal::CheckStruct(options); !s.ok()) return s;
    return CreateHandleOfStream(
        to, device, StreamOptions{options.has_priority != 0, options.priority});
  }

  // Creates a stream for TensorFlow and stores it in the handle `*to`; stores
  // null on failure.
  static absl::Status CreateHandleOfStream(capi::SP_Stream* to, DeviceT& device,
                                           StreamOptions options) {
    *to = nullptr;
    auto stream = CreateStream(device, options);
    if (!stream.ok()) return stream.status();
    if constexpr (!internal::Overrides(&StreamT::WaitForStream,
                                       &StreamBase::WaitForStream)) {
      auto fence = internal::Create<EventT>(device);
      if (!fence.ok()) return fence.status();
      StreamBase& base = **stream;
      internal::Access::state(base).fence = *std::move(fence);
    }
    UploadOrder<DeviceT>::Add(device, stream->get());
    *to = reinterpret_cast<capi::SP_Stream>(stream->release());
    return absl::OkStatus();
  }
};

}  // namespace tfplug::device_internal

#pragma GCC visibility pop

#endif  // TFPLUG_DEVICE_INTERNAL_STREAM_SLOTS_H_
