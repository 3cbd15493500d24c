// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_HOST_H_
#define TFPLUG_TESTING_HOST_H_

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/abi/abi.h"
#include "tfplug/base/internal/os.h"
#include "tfplug/testing/fake_device.h"
#include "tfplug/testing/host_options.h"
#include "tfplug/testing/internal/registered_platform.h"
#include "tfplug/testing/internal/status_functions.h"
#include "tfplug/testing/internal/with_canary.h"
#include "tfplug/testing/kernel_registry.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

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
  using InitPlugin = RegisteredPlatform::InitPlugin;

  // Registers a plug-in that is linked with the test.
  static absl::StatusOr<std::unique_ptr<Host>> Register(
      InitPlugin init_plugin, const HostOptions& options = HostOptions()) {
    std::unique_ptr<Host> host(new Host(options));
    absl::Status status = host->registered_.Initialize(init_plugin);
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

  std::string platform_name() const { return registered_.platform()->name; }
  std::string device_type() const { return registered_.platform()->type; }

  // Return the structs that the plug-in has filled; fields that the release
  // lacks are null.
  capi::SP_Platform platform() const { return registered_.platform().Read(); }
  capi::SP_PlatformFns platform_fns() const {
    return registered_.platform_fns().Read();
  }
  const capi::SP_DeviceFns& device_fns() const {
    return registered_.device_fns();
  }
  const capi::SP_StreamExecutor& stream_executor() const {
    return registered_.stream_executor();
  }
  const capi::SP_TimerFns& timer_fns() const { return registered_.timer_fns(); }

  // Returns the number of devices. TensorFlow logs a failure of this function
  // and continues without devices.
  absl::StatusOr<int> DeviceCount() const {
    int count = 0;
    absl::Status status =
        CallWithStatus(registered_.platform_fns()->get_device_count,
                       registered_.platform().get(), &count);
    if (!status.ok()) return status;
    return count;
  }

  // Returns the device with this ordinal; the first call creates it, or all devices
  // if some are virtual. The Host owns it.
  absl::StatusOr<FakeDevice*> Device(int ordinal) {
    auto found = devices_.find(ordinal);
    if (HasVirtualDevices()) {
      absl::Status status;
      if (devices_.empty()) status = CreateDevices();
      if (!status.ok()) return status;
      found = devices_.find(ordinal);
      if (found == devices_.end()) {
        return absl::NotFoundError("there is no device " +
                                   std::to_string(ordinal));
      }
    } else if (found == devices_.end()) {
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
    if (HasVirtualDevices()) return CreateVirtualDevices(*count);
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

  // Returns the devices that exist, by ordinal.
  const std::map<int, std::unique_ptr<FakeDevice>>& devices() const {
    return devices_;
  }

  // Returns the plug-in's first mistake that no call has reported. See
  // FakeDevice::Problems.
  absl::Status Problems() const {
    if (absl::Status status = registered_.Problems(); !status.ok()) {
      return status;
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
      : options_(options), registered_(options) {}

  absl::StatusOr<std::unique_ptr<FakeDevice>> CreateDevice(int ordinal);
  static absl::Status ReadMemoryLimit(FakeDevice& device);
  absl::Status ReadProperties(FakeDevice& device);
  absl::Status CreateStreams(FakeDevice& device,
                             std::optional<int> priority = std::nullopt) {
    if (!options_.create_streams) return absl::OkStatus();
    return device.CreateStreams(!(options_.release < Release{2, 22}), priority);
  }
  bool HasVirtualDevices() const {
    return !options_.virtual_devices.empty() &&
           !(options_.release < Release{2, 22});
  }
  absl::Status CreateVirtualDevices(int count);

  const HostOptions options_;
  RegisteredPlatform registered_;
  std::map<int, std::unique_ptr<FakeDevice>> devices_;  // destroyed first
};

// Creates a device, without its streams.
inline absl::StatusOr<std::unique_ptr<FakeDevice>> Host::CreateDevice(
    int ordinal) {
  WithCanary<capi::SE_CreateDeviceParams> params(options_.sizes.device_params);
  WithCanary<capi::SP_Device> c_device(options_.sizes.device);
  params->ordinal = ordinal;
  params->device = c_device.get();
  absl::Status status = RegisteredPlatform::CheckFilled(
      c_device, CallWithStatus(registered_.platform_fns()->create_device,
                               registered_.platform().get(), params.get()));
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
      options_.sizes, device_fns(), stream_executor(), timer_fns(), c_device,
      [this](capi::SP_Device* device) {
        registered_.platform_fns()->destroy_device(registered_.platform().get(),
                                                   device);
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

// Creates the devices as configured. TensorFlow creates one of the plug-in's when it
// first needs something of it: the memory limit of a device that is not divided
// comes before the properties of all.
inline absl::Status Host::CreateVirtualDevices(int count) {
  const VirtualDevices& configured = options_.virtual_devices;
  const size_t used = configured.size();
  if (used > static_cast<size_t>(std::max(count, 0))) {
    return absl::InvalidArgumentError(
        "Not enough devices to create virtual devices: the plug-in has " +
        std::to_string(count) + ", and there are settings for " +
        std::to_string(used));
  }
  std::vector<std::unique_ptr<FakeDevice>> first(used);
  absl::Status status;
  const auto create = [&](size_t i) {
    if (first[i] != nullptr) return;
    auto device = CreateDevice(static_cast<int>(i));
    status = device.status();
    if (device.ok()) first[i] = *std::move(device);
  };
  for (size_t i = 0; i < used && status.ok(); ++i) {
    if (!configured[i].empty()) continue;
    create(i);
    if (status.ok()) status = ReadMemoryLimit(*first[i]);
  }
  for (size_t i = 0; i < used && status.ok(); ++i) {
    create(i);
    if (status.ok()) status = ReadProperties(*first[i]);
  }
  for (size_t i = 0; i < used && status.ok(); ++i) {
    const FakeDevice& shared = *first[i];
    const size_t parts = std::max<size_t>(configured[i].size(), 1);
    for (size_t part = 0; part < parts && status.ok(); ++part) {
      auto device = part == 0 ? std::move(first[i]) : shared.CreateVirtual();
      std::optional<int> priority;
      if (!configured[i].empty()) {
        device->set_memory_limit(configured[i][part].memory_limit);
        priority = configured[i][part].priority;
      }
      status = CreateStreams(*device, priority);
      devices_.emplace(static_cast<int>(devices_.size()), std::move(device));
    }
  }
  if (!status.ok()) devices_.clear();
  return status;
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_HOST_H_
