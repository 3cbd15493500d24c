// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_REGISTERED_PLATFORM_H_
#define TFPLUG_TESTING_INTERNAL_REGISTERED_PLATFORM_H_

#include <string>

#include "absl/status/status.h"
#include "tfplug/abi/abi.h"
#include "tfplug/testing/host_options.h"
#include "tfplug/testing/internal/status_functions.h"
#include "tfplug/testing/internal/validate.h"
#include "tfplug/testing/internal/with_canary.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// Holds what TensorFlow keeps of a device plug-in: its structs, copied as TensorFlow
// copies them, and the functions that destroy them.
class RegisteredPlatform {
 public:
  using InitPlugin = void (*)(capi::SE_PlatformRegistrationParams* params,
                              capi::TF_Status* status);

  explicit RegisteredPlatform(const HostOptions& options)
      : options_(options),
        platform_(options.sizes.platform),
        platform_fns_(options.sizes.platform_fns),
        device_fns_(options.sizes.device_fns),
        stream_executor_(options.sizes.stream_executor),
        timer_fns_(options.sizes.timer_fns) {}
  RegisteredPlatform(const RegisteredPlatform&) = delete;
  RegisteredPlatform& operator=(const RegisteredPlatform&) = delete;
  ~RegisteredPlatform() {
    const capi::SP_PlatformFns fns = platform_fns_.Read();
    if (has_tables_) {
      fns.destroy_device_fns(platform_.get(), device_fns_.get());
      fns.destroy_stream_executor(platform_.get(), stream_executor_.get());
      fns.destroy_timer_fns(platform_.get(), timer_fns_.get());
    }
    if (destroy_platform_ != nullptr) destroy_platform_(platform_.get());
    if (destroy_platform_fns_ != nullptr) {
      destroy_platform_fns_(platform_fns_.get());
    }
  }

  // Registers and validates the plug-in. Called once.
  absl::Status Initialize(InitPlugin init_plugin);

  const WithCanary<capi::SP_Platform>& platform() const { return platform_; }
  const WithCanary<capi::SP_PlatformFns>& platform_fns() const {
    return platform_fns_;
  }
  const capi::SP_DeviceFns& device_fns() const { return read_device_fns_; }
  const capi::SP_StreamExecutor& stream_executor() const {
    return read_stream_executor_;
  }
  const capi::SP_TimerFns& timer_fns() const { return read_timer_fns_; }

  // Returns an error if the plug-in wrote beyond a struct.
  absl::Status Problems() const {
    if (platform_.intact() && platform_fns_.intact() && device_fns_.intact() &&
        stream_executor_.intact() && timer_fns_.intact()) {
      return absl::OkStatus();
    }
    return absl::InternalError(
        "the plug-in wrote beyond one of TensorFlow's structs");
  }

  // Returns the status of a call that filled a struct, or an error if the
  // plug-in wrote beyond the struct.
  template <class Struct>
  static absl::Status CheckFilled(const WithCanary<Struct>& filled,
                                  absl::Status status) {
    if (filled.intact()) return status;
    return absl::InternalError(std::string("the plug-in wrote beyond an ") +
                               capi::StructInfo<Struct>::kName);
  }

 private:
  const HostOptions options_;
  WithCanary<capi::SP_Platform> platform_;
  WithCanary<capi::SP_PlatformFns> platform_fns_;
  WithCanary<capi::SP_DeviceFns> device_fns_;
  WithCanary<capi::SP_StreamExecutor> stream_executor_;
  WithCanary<capi::SP_TimerFns> timer_fns_;
  void (*destroy_platform_)(capi::SP_Platform*) = nullptr;
  void (*destroy_platform_fns_)(capi::SP_PlatformFns*) = nullptr;
  bool has_tables_ = false;
  capi::SP_DeviceFns read_device_fns_ = {};
  capi::SP_StreamExecutor read_stream_executor_ = {};
  capi::SP_TimerFns read_timer_fns_ = {};
};

inline absl::Status RegisteredPlatform::Initialize(InitPlugin init_plugin) {
  const StructSizes& sizes = options_.sizes;
  // TensorFlow keeps these on the stack during registration, and copies them.
  WithCanary<capi::SE_PlatformRegistrationParams> params(
      sizes.registration_params);
  WithCanary<capi::SP_Platform> platform(sizes.platform);
  WithCanary<capi::SP_PlatformFns> platform_fns(sizes.platform_fns);
  params->major_version = options_.major_version;
  params->minor_version = options_.minor_version;
  params->patch_version = options_.patch_version;
  params->platform = platform.get();
  params->platform_fns = platform_fns.get();
  absl::Status status = CallWithStatus(init_plugin, params.get());
  const bool intact =
      params.intact() && platform.intact() && platform_fns.intact();
  if (status.ok()) {
    platform_ = platform;
    platform_fns_ = platform_fns;
    destroy_platform_ = params->destroy_platform;
    destroy_platform_fns_ = params->destroy_platform_fns;
  }
  if (!intact) {
    return absl::InternalError("SE_InitPlugin wrote beyond a struct");
  }
  if (!status.ok()) return status;
  if (status = Validate(params.Read()); !status.ok()) return status;
  if (status = Validate(platform.Read()); !status.ok()) return status;
  if (status = Validate(platform_fns.Read()); !status.ok()) return status;

  WithCanary<capi::SE_CreateDeviceFnsParams> device_fns_params(
      sizes.device_fns_params);
  WithCanary<capi::SP_DeviceFns> device_fns(sizes.device_fns);
  device_fns_params->device_fns = device_fns.get();
  status = CheckFilled(device_fns,
                       CallWithStatus(platform_fns->create_device_fns,
                                      platform.get(), device_fns_params.get()));
  if (!status.ok()) return status;
  if (status = Validate(device_fns.Read()); !status.ok()) return status;

  WithCanary<capi::SE_CreateStreamExecutorParams> stream_executor_params(
      sizes.stream_executor_params);
  WithCanary<capi::SP_StreamExecutor> stream_executor(sizes.stream_executor);
  stream_executor_params->stream_executor = stream_executor.get();
  status =
      CheckFilled(stream_executor,
                  CallWithStatus(platform_fns->create_stream_executor,
                                 platform.get(), stream_executor_params.get()));
  if (!status.ok()) return status;
  read_stream_executor_ = stream_executor.Read();
  status = Validate(read_stream_executor_, sizes.stream_executor,
                    platform->supports_unified_memory != 0);
  if (!status.ok()) return status;

  if (options_.create_timers) {
    WithCanary<capi::SP_TimerFns> timer_fns(sizes.timer_fns);
    status =
        CheckFilled(timer_fns, CallWithStatus(platform_fns->create_timer_fns,
                                              platform.get(), timer_fns.get()));
    if (!status.ok()) return status;
    if (status = Validate(timer_fns.Read()); !status.ok()) return status;
    timer_fns_ = timer_fns;
    read_timer_fns_ = timer_fns.Read();
  }

  device_fns_ = device_fns;
  stream_executor_ = stream_executor;
  read_device_fns_ = device_fns.Read();
  has_tables_ = true;
  return absl::OkStatus();
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_REGISTERED_PLATFORM_H_
