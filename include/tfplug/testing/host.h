// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_HOST_H_
#define TFPLUG_TESTING_HOST_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/abi/abi.h"
#include "tfplug/base/internal/os.h"
#include "tfplug/testing/fake_device.h"
#include "tfplug/testing/internal/status_functions.h"
#include "tfplug/testing/internal/validate.h"
#include "tfplug/testing/internal/with_canary.h"
#include "tfplug/testing/kernel_registry.h"
#include "tfplug/testing/struct_sizes.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// Describes the TensorFlow that a Host fakes for a device plug-in.
struct HostOptions {
  HostOptions() : HostOptions(capi::kNewestRelease) {}
  explicit HostOptions(Release release) : release(release), sizes(release) {}

  // The release whose calls the host makes.
  Release release;
  // The sizes of TensorFlow's structs in a release, which tests may change.
  StructSizes sizes;
  // SE_MAJOR, SE_MINOR and SE_PATCH, which are the same in every release.
  int32_t major_version = 0;
  int32_t minor_version = 0;
  int32_t patch_version = 1;
  // If true, creates the four streams of each device, as TensorFlow does when
  // it first uses the device.
  bool create_streams = true;
  // If true, calls create_timer_fns, as TensorFlow does up to 2.13.
  bool create_timers = true;
};

// TensorFlow's side of a device plug-in: registers and validates it, creates
// its devices and their streams, and destroys everything, with TensorFlow's
// calls in TensorFlow's order. Each struct has its size in the release and lies
// between canary bytes. Where TensorFlow would abort, Host returns an error.
//
//   tfplug::testing::ScopedFakeTensorFlow tensorflow;
//   auto host = tfplug::testing::Host::Register(&SE_InitPlugin).value();
//   tfplug::testing::FakeDevice& device = *host->Device(0).value();
//   tfplug::DeviceMemory memory = device.Allocate(64);
//   device.compute().CopyHostToDevice(memory, data, 64);
//   ...
//   CHECK(host->Problems().ok());
//
// Unlike TensorFlow, which never destroys devices and platforms, Host destroys
// them in its destructor, devices first.
class Host {
 public:
  using InitPlugin = void (*)(capi::SE_PlatformRegistrationParams* params,
                              capi::TF_Status* status);

  // Registers a plug-in that is linked with the test.
  static absl::StatusOr<std::unique_ptr<Host>> Register(
      InitPlugin init_plugin, const HostOptions& options = HostOptions()) {
    std::unique_ptr<Host> host(new Host(options));
    absl::Status status = host->Initialize(init_plugin);
    if (!status.ok()) return status;
    return host;
  }

  // Loads a plug-in's .so and registers it and its kernels. As in TensorFlow,
  // it is never unloaded. It finds the fake's functions only if this program is
  // compiled with -DTFPLUG_TESTING_EXPORT_C_API and linked with -rdynamic.
  static absl::StatusOr<std::unique_ptr<Host>> Load(
      const std::string& path, const HostOptions& options = HostOptions()) {
    void* const library =
        internal::OpenLibrary(path.c_str(), /*own_symbols_first=*/false);
    if (library == nullptr) return absl::NotFoundError(internal::LoaderError());
    void* const symbol = internal::FindIn(library, "SE_InitPlugin");
    if (symbol == nullptr) return absl::NotFoundError(internal::LoaderError());
    auto host = Register(reinterpret_cast<InitPlugin>(symbol), options);
    if (!host.ok()) return host;
    if (void* const init_kernel = internal::FindIn(library, "TF_InitKernel")) {
      KernelRegistry::Get().Refill(reinterpret_cast<void (*)()>(init_kernel));
    }
    return host;
  }

  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host() {
    devices_.clear();
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

  std::string platform_name() const { return platform_->name; }
  std::string device_type() const { return platform_->type; }

  // Return the structs that the plug-in has filled; fields that the release
  // lacks are null.
  capi::SP_Platform platform() const { return platform_.Read(); }
  capi::SP_PlatformFns platform_fns() const { return platform_fns_.Read(); }
  const capi::SP_DeviceFns& device_fns() const { return read_device_fns_; }
  const capi::SP_StreamExecutor& stream_executor() const {
    return read_stream_executor_;
  }
  const capi::SP_TimerFns& timer_fns() const { return read_timer_fns_; }

  // Returns the number of devices. TensorFlow logs a failure of this function
  // and continues without devices.
  absl::StatusOr<int> DeviceCount() const {
    int count = 0;
    absl::Status status = CallWithStatus(platform_fns_->get_device_count,
                                         platform_.get(), &count);
    if (!status.ok()) return status;
    return count;
  }

  // Returns the device with this ordinal; the first call creates it. The Host
  // owns it.
  absl::StatusOr<FakeDevice*> Device(int ordinal) {
    auto found = devices_.find(ordinal);
    if (found == devices_.end()) {
      auto device = CreateDevice(ordinal);
      if (!device.ok()) return device.status();
      found = devices_.emplace(ordinal, *std::move(device)).first;
      absl::Status status = ReadMemoryLimit(*found->second);
      if (status.ok()) status = ReadProperties(*found->second);
      if (status.ok()) status = CreateStreams(*found->second);
      if (!status.ok()) {
        devices_.erase(found);
        return status;
      }
    }
    return found->second.get();
  }
  // Creates all devices that Device has not returned, as TensorFlow does when it
  // first uses any of them: each is created before the streams of the first.
  absl::Status CreateDevices() {
    auto count = DeviceCount();
    if (!count.ok()) return count.status();
    std::vector<FakeDevice*> created;
    absl::Status status;
    for (int ordinal = 0; ordinal < *count && status.ok(); ++ordinal) {
      if (devices_.count(ordinal) > 0) continue;
      auto device = CreateDevice(ordinal);
      status = device.status();
      if (!status.ok()) break;
      created.push_back(device->get());
      devices_.emplace(ordinal, *std::move(device));
      status = ReadMemoryLimit(*created.back());
    }
    // From 2.22 on, the properties of all devices are read before any stream is
    // created.
    const bool is_new = !(options_.release < Release{2, 22});
    for (FakeDevice* const device : created) {
      if (status.ok()) status = ReadProperties(*device);
      if (status.ok() && !is_new) status = CreateStreams(*device);
    }
    for (FakeDevice* const device : created) {
      if (status.ok() && is_new) status = CreateStreams(*device);
    }
    return status;
  }

  // Returns the plug-in's first mistake that no call has reported. See
  // FakeDevice::Problems.
  absl::Status Problems() const {
    if (!platform_.intact() || !platform_fns_.intact() ||
        !device_fns_.intact() || !stream_executor_.intact() ||
        !timer_fns_.intact()) {
      return absl::InternalError(
          "the plug-in wrote beyond one of TensorFlow's structs");
    }
    for (const auto& [ordinal, device] : devices_) {
      if (absl::Status status = device->Problems(); !status.ok()) {
        return status;
      }
    }
    return absl::OkStatus();
  }

 private:
  explicit Host(const HostOptions& options)
      : options_(options),
        platform_(options.sizes.platform),
        platform_fns_(options.sizes.platform_fns),
        device_fns_(options.sizes.device_fns),
        stream_executor_(options.sizes.stream_executor),
        timer_fns_(options.sizes.timer_fns) {}

  absl::Status Initialize(InitPlugin init_plugin);
  absl::StatusOr<std::unique_ptr<FakeDevice>> CreateDevice(int ordinal);
  static absl::Status ReadMemoryLimit(FakeDevice& device);
  absl::Status ReadProperties(FakeDevice& device);
  absl::Status CreateStreams(FakeDevice& device) {
    return options_.create_streams
               ? device.CreateStreams(!(options_.release < Release{2, 22}))
               : absl::OkStatus();
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
  std::map<int, std::unique_ptr<FakeDevice>> devices_;
};

inline absl::Status Host::Initialize(InitPlugin init_plugin) {
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

// Creates a device, without its streams.
inline absl::StatusOr<std::unique_ptr<FakeDevice>> Host::CreateDevice(
    int ordinal) {
  WithCanary<capi::SE_CreateDeviceParams> params(options_.sizes.device_params);
  WithCanary<capi::SP_Device> c_device(options_.sizes.device);
  params->ordinal = ordinal;
  params->device = c_device.get();
  absl::Status status =
      CheckFilled(c_device, CallWithStatus(platform_fns_->create_device,
                                           platform_.get(), params.get()));
  if (!status.ok() && options_.release < Release{2, 15}) {
    return absl::AbortedError("TensorFlow would abort: create_device: " +
                              std::string(status.message()));
  }
  if (!status.ok()) return status;
  if (c_device->struct_size == 0) {
    return absl::FailedPreconditionError("SP_Device::struct_size is 0");
  }
  const bool computes_on_last_stream =
      !(options_.release < Release{2, 17}) && options_.release < Release{2, 19};
  auto device = std::make_unique<FakeDevice>(
      options_.sizes, read_device_fns_, read_stream_executor_, read_timer_fns_,
      c_device,
      [this](capi::SP_Device* device) {
        platform_fns_->destroy_device(platform_.get(), device);
      },
      computes_on_last_stream);
  return device;
}

// Reads how much memory TensorFlow's allocator may have.
inline absl::Status Host::ReadMemoryLimit(FakeDevice& device) {
  if (device.ReadMemoryLimit()) return absl::OkStatus();
  return absl::UnknownError(
      "Failed to query available memory for PluggableDevice " +
      std::to_string(device.ordinal()));
}

inline absl::Status Host::ReadProperties(FakeDevice& device) {
  if (auto count = DeviceCount(); !count.ok()) return count.status();
  device.NumaNode();
  device.MemoryBandwidth();
  return absl::OkStatus();
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_HOST_H_
