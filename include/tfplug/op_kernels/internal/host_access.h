// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_HOST_ACCESS_H_
#define TFPLUG_OP_KERNELS_INTERNAL_HOST_ACCESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "tfplug/base/device_memory.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/device/host_task.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// The functions of a device's stream with which kernels compute on the host.
struct HostAccess {
  absl::Status (*get_status)(void* stream);
  absl::Status (*copy_to_host)(void* stream, void* to, DeviceMemory from);
  absl::Status (*copy_to_device)(void* stream, DeviceMemory to,
                                 const void* from);
  // Enqueues the task. It is not freed if that fails, because the stream may
  // still have it.
  absl::Status (*run)(void* stream, std::function<void()> task);
  // Does the same for a HostTask that is short.
  absl::Status (*run_short)(void* stream, std::function<void()> task);
};

template <class S, class = void>
inline constexpr bool kRunsOnHost = false;
template <class S>
inline constexpr bool
    kRunsOnHost<S, std::void_t<decltype(std::declval<S&>().RunOnHost(
                       std::declval<HostTask>()))>> = true;

template <class S>
struct HostAccessTo {
  using Task = std::function<void()>;
  static S& Self(void* stream) { return *static_cast<S*>(stream); }

  static absl::Status GetStatus(void* stream) {
    return Self(stream).S::GetStatus();
  }
  static absl::Status CopyToHost(void* stream, void* to, DeviceMemory from) {
    return Self(stream).S::CopyDeviceToHost(to, from, from.size());
  }
  static absl::Status CopyToDevice(void* stream, DeviceMemory to,
                                   const void* from) {
    return Self(stream).S::CopyHostToDevice(to, from, to.size());
  }
  template <bool is_short>
  static absl::Status Run(void* stream, Task task) {
    return Self(stream).S::RunOnHost(
        HostTask(&RunTask, new Task(std::move(task)), is_short));
  }
  // A task that throws does not fail the stream: the log has the exception, and
  // an op whose run the task owned fails.
  static void RunTask(void* task, capi::TF_Status* /*status*/) {
    internal::GuardOrLog("a host task of a kernel", [&] {
      const std::unique_ptr<Task> owned(static_cast<Task*>(task));
      (*owned)();
      return absl::OkStatus();
    });
  }

  static constexpr HostAccess kAccess = {&GetStatus, &CopyToHost, &CopyToDevice,
                                         &Run<false>, &Run<true>};
};

// Returns null if S is not a device's stream.
template <class S>
constexpr const HostAccess* HostAccessOf() {
  if constexpr (kRunsOnHost<S>) {
    return &HostAccessTo<S>::kAccess;
  } else {
    return nullptr;
  }
}

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_HOST_ACCESS_H_
