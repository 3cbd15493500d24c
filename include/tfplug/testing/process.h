// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_PROCESS_H_
#define TFPLUG_TESTING_PROCESS_H_

#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tfplug/base/internal/os.h"
#include "tfplug/testing/graph_host.h"
#include "tfplug/testing/host.h"
#include "tfplug/testing/host_device.h"
#include "tfplug/testing/kernel_registry.h"
#include "tfplug/testing/optimizer_settings.h"
#include "tfplug/testing/profiler_host.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// The entry points of a plug-in; null if it lacks one.
struct EntryPoints {
  Host::InitPlugin init_plugin = nullptr;
  void (*init_kernel)() = nullptr;
  GraphHost::InitGraph init_graph = nullptr;
  ProfilerHost::InitProfiler init_profiler = nullptr;
};

// A process with TensorFlow, which loads plug-ins, creates their devices when
// one is first used, and runs their graph optimizers and profilers. What aborts
// in TensorFlow returns ABORTED. Destroys everything in the end, which
// TensorFlow never does. Not thread-safe; its devices are.
//
//   testing::Process process;
//   CHECK(process.Load("libplugin.so").ok());
//   testing::HostDevice& device = *process.Device("MY_DEVICE").value();
class Process {
 public:
  struct Options {
    Release release = capi::kNewestRelease;
    bool grows = false;  // tf.config.experimental.set_memory_growth
  };
  Process() : Process(Options()) {}
  explicit Process(const Options& options) : options_(options) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Loads a library as tf.load_pluggable_device_library does. See Host::Load for
  // what the program needs. The library is never unloaded.
  absl::Status Load(const std::string& path);
  // Registers what a plug-in that is linked with the program exports.
  absl::Status Load(const EntryPoints& entry_points);

  // Returns a device; the first call creates all devices of all plug-ins.
  // NOT_FOUND if there is none of this type and ordinal.
  absl::StatusOr<HostDevice*> Device(const std::string& type, int ordinal = 0);

  // Runs the optimizer for a device type twice on a graph, as TensorFlow does
  // for a graph with at least four nodes, one of them on such a device.
  absl::StatusOr<GraphHost::Outcome> Optimize(const std::string& type,
                                              std::string graph_def,
                                              const TF_GrapplerItem& item);
  // Returns TensorFlow's settings for a graph with nodes on these device types.
  absl::StatusOr<MergedSettings> Settings(
      const std::set<std::string>& types) const;

  // Records a profile between two calls. Stop returns an XSpace for each
  // profiler.
  absl::Status StartProfilers();
  absl::StatusOr<std::vector<std::string>> StopProfilers();

  // Returns the first mistake that no call has reported.
  absl::Status Problems() const {
    for (const auto& host : hosts_) {
      if (absl::Status status = host->Problems(); !status.ok()) return status;
    }
    for (const auto& [name, device] : devices_) {
      if (absl::Status status = device->Problems(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status AddHost(Host::InitPlugin init_plugin);
  absl::Status CreateDevices();

  const Options options_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::map<std::string, std::unique_ptr<GraphHost>> optimizers_;
  std::map<std::string, std::unique_ptr<ProfilerHost>> profilers_;
  bool has_devices_ = false;
  absl::Status created_;  // why there are none
  // By type and ordinal. After hosts_: they are destroyed first.
  std::map<std::pair<std::string, int>, std::unique_ptr<HostDevice>> devices_;
};

inline absl::Status Process::Load(const std::string& path) {
  char* const resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no file ", path));
  }
  const std::string real = resolved;
  std::free(resolved);
  const auto library =
      internal::OpenLibrary(real.c_str(), /*own_symbols_first=*/false);
  if (library == nullptr) return absl::NotFoundError(internal::LoaderError());
  const auto find = [&](auto& to, const char* name) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(
        internal::FindIn(library, name));
  };
  EntryPoints found;
  find(found.init_plugin, "SE_InitPlugin");
  find(found.init_kernel, "TF_InitKernel");
  find(found.init_graph, "TF_InitGraph");
  find(found.init_profiler, "TF_InitProfiler");
  return Load(found);
}

inline absl::Status Process::Load(const EntryPoints& entry_points) {
  if (entry_points.init_plugin != nullptr) {
    absl::Status status = AddHost(entry_points.init_plugin);
    if (!status.ok()) return status;
  }
  if (entry_points.init_kernel != nullptr) entry_points.init_kernel();
  if (entry_points.init_graph != nullptr) {
    auto optimizer =
        GraphHost::Register(entry_points.init_graph, options_.release);
    if (!optimizer.ok()) return optimizer.status();
    const std::string type = (*optimizer)->device_type();
    if (!optimizers_.emplace(type, *std::move(optimizer)).second) {
      return absl::AbortedError(absl::StrCat(
          "two plug-ins have a graph optimizer for the device type ", type,
          ": TensorFlow would abort. Load one of them"));
    }
  }
  if (entry_points.init_profiler != nullptr) {
    auto profiler =
        ProfilerHost::Register(entry_points.init_profiler, options_.release);
    if (!profiler.ok()) return profiler.status();
    const std::string type = (*profiler)->device_type();
    profilers_.emplace(type, *std::move(profiler));
  }
  return absl::OkStatus();
}

inline absl::Status Process::AddHost(Host::InitPlugin init_plugin) {
  HostOptions options(options_.release);
  options.create_timers = options_.release < Release{2, 14};
  auto host = Host::Register(init_plugin, options);
  if (!host.ok()) return host.status();
  for (const auto& other : hosts_) {
    const bool has_same_name =
        other->platform_name() == (*host)->platform_name();
    if (!has_same_name && other->device_type() != (*host)->device_type()) {
      continue;
    }
    absl::Status status = absl::AbortedError(absl::StrCat(
        "two plug-ins, or one that is loaded twice, have the ",
        has_same_name ? absl::StrCat("platform ", other->platform_name())
                      : absl::StrCat("device type ", other->device_type()),
        ": TensorFlow would abort. Load one of them once, or give one another "
        "name and type"));
    // Of two with one name, TensorFlow destroys the second before it aborts.
    if (!has_same_name) hosts_.push_back(*std::move(host));
    return status;
  }
  hosts_.push_back(*std::move(host));
  return absl::OkStatus();
}

// Creates the devices of the plug-in that was loaded last first, as in the
// recorded process with two; TensorFlow's order is that of a hash table.
inline absl::Status Process::CreateDevices() {
  has_devices_ = true;
  for (auto host = hosts_.rbegin(); host != hosts_.rend(); ++host) {
    absl::Status status = (*host)->CreateDevices();
    if (!status.ok()) return status;
    const capi::SP_Platform platform = (*host)->platform();
    HostDevice::Options options;
    options.release = options_.release;
    options.use_bfc_allocator = platform.use_bfc_allocator != 0;
    options.grows = options_.grows || platform.force_memory_growth != 0;
    const auto count = (*host)->DeviceCount();
    if (!count.ok()) return count.status();
    for (int ordinal = 0; ordinal < *count; ++ordinal) {
      auto device = (*host)->Device(ordinal);
      if (!device.ok()) return device.status();
      devices_.emplace(std::make_pair((*host)->device_type(), ordinal),
                       std::make_unique<HostDevice>(**device, options));
    }
  }
  return absl::OkStatus();
}

inline absl::StatusOr<HostDevice*> Process::Device(const std::string& type,
                                                   int ordinal) {
  if (!has_devices_) created_ = CreateDevices();
  if (!created_.ok()) return created_;
  const auto found = devices_.find({type, ordinal});
  if (found != devices_.end()) return found->second.get();
  return absl::NotFoundError(
      absl::StrCat("there is no device ", type, ":", ordinal));
}

inline absl::StatusOr<GraphHost::Outcome> Process::Optimize(
    const std::string& type, std::string graph_def,
    const TF_GrapplerItem& item) {
  const auto found = optimizers_.find(type);
  if (found == optimizers_.end()) {
    return absl::NotFoundError(
        absl::StrCat("no plug-in has a graph optimizer for ", type));
  }
  return found->second->Optimize(std::move(graph_def), item);
}

inline absl::StatusOr<MergedSettings> Process::Settings(
    const std::set<std::string>& types) const {
  std::vector<capi::TP_OptimizerConfigs> configs;
  for (const std::string& type : types) {
    const auto found = optimizers_.find(type);
    if (found != optimizers_.end()) {
      configs.push_back(found->second->configs());
    }
  }
  return MergeSettings(configs);
}

inline absl::Status Process::StartProfilers() {
  for (const auto& [type, profiler] : profilers_) {
    if (absl::Status status = profiler->Start(); !status.ok()) return status;
  }
  return absl::OkStatus();
}
inline absl::StatusOr<std::vector<std::string>> Process::StopProfilers() {
  for (const auto& [type, profiler] : profilers_) {
    if (absl::Status status = profiler->Stop(); !status.ok()) return status;
  }
  std::vector<std::string> profiles;
  for (const auto& [type, profiler] : profilers_) {
    auto profile = profiler->Collect();
    if (!profile.ok()) return profile.status();
    profiles.push_back(*std::move(profile));
  }
  return profiles;
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_PROCESS_H_
