// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_PROCESS_H_
#define TFPLUG_TESTING_PROCESS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/testing/graph_host.h"
#include "tfplug/testing/guards.h"
#include "tfplug/testing/host.h"
#include "tfplug/testing/host_device.h"
#include "tfplug/testing/internal/plugin_files.h"
#include "tfplug/testing/optimizer_settings.h"
#include "tfplug/testing/profiler_host.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

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
    // Whether TensorFlow has devices of the type GPU, as wheels with CUDA do.
    bool has_gpu = false;
    // Bytes by which each struct is larger than in the release, as those of a
    // future one may be.
    size_t larger_structs = 0;
    // If not 0, selects pauses: events complete late, host tasks run late, and
    // threads come in another order.
    uint64_t jitter_seed = 0;
    VirtualDevices virtual_devices;  // of each plug-in
  };
  Process() : Process(Options()) {}
  explicit Process(const Options& options) : options_(options) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Loads what `import tensorflow` loads: the libraries in the folder
  // tensorflow-plugins of each of these folders (TensorFlow has those of
  // site-packages), and those at $TF_PLUGGABLE_DEVICE_LIBRARY_PATH.
  absl::Status Import(const std::set<std::string>& site_packages);
  // Loads a library, or all in a folder, as tf.load_pluggable_device_library does.
  // See Host::Load for what the program needs. Libraries are never unloaded.
  absl::Status Load(const std::string& path);
  // Registers what a plug-in that is linked with the program exports.
  absl::Status Load(const EntryPoints& entry_points);

  // Returns what TensorFlow does without a message: which of its own devices a
  // plug-in replaces.
  const std::vector<std::string>& notes() const { return notes_; }

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
  // profiler, in the order in which the plug-ins were loaded: TensorFlow calls
  // all of them, also if two are for one device type.
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
    return ScopedGuards::ProblemAfter(earlier_reports_);
  }

 private:
  StructSizes Sizes() const {
    StructSizes sizes(options_.release);
    sizes.Enlarge(options_.larger_structs);
    return sizes;
  }
  absl::Status AddHost(Host::InitPlugin init_plugin);
  absl::Status CreateDevices();

  const Options options_;
  const size_t earlier_reports_ = ScopedGuards::CountReports();
  std::vector<std::string> notes_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::map<std::string, std::unique_ptr<GraphHost>> optimizers_;
  std::vector<std::unique_ptr<ProfilerHost>> profilers_;  // in order
  bool has_devices_ = false;
  absl::Status creation_status_;  // why there are none
  // By type and ordinal. After hosts_: they are destroyed first.
  std::map<std::pair<std::string, int>, std::unique_ptr<HostDevice>> devices_;
};

inline absl::Status Process::Import(
    const std::set<std::string>& site_packages) {
  for (const std::string& folder : site_packages) {
    const std::string plugins = folder + "/tensorflow-plugins";
    if (absl::IsNotFound(PluginFiles(plugins).status())) continue;
    TFPLUG_RETURN_IF_ERROR(Load(plugins));
  }
  const char* const path = std::getenv("TF_PLUGGABLE_DEVICE_LIBRARY_PATH");
  const bool has_path = path != nullptr && *path != '\0';
  return has_path ? Load(std::string(path)) : absl::OkStatus();
}

inline absl::Status Process::Load(const std::string& path) {
  TFPLUG_ASSIGN_OR_RETURN(const auto files, PluginFiles(path));
  for (const std::string& file : files) {
    TFPLUG_ASSIGN_OR_RETURN(const EntryPoints found, FindEntryPoints(file));
    TFPLUG_RETURN_IF_ERROR(Load(found));
  }
  return absl::OkStatus();
}

inline absl::Status Process::Load(const EntryPoints& entry_points) {
  if (entry_points.init_plugin != nullptr) {
    absl::Status status = AddHost(entry_points.init_plugin);
    if (!status.ok()) return status;
  }
  if (entry_points.init_kernel != nullptr) entry_points.init_kernel();
  if (entry_points.init_graph != nullptr) {
    auto optimizer = GraphHost::Register(entry_points.init_graph, Sizes());
    if (!optimizer.ok()) return optimizer.status();
    const std::string type = (*optimizer)->device_type();
    if (!optimizers_.emplace(type, *std::move(optimizer)).second) {
      return absl::AbortedError(absl::StrCat(
          "two plug-ins have a graph optimizer for the device type ", type,
          ": TensorFlow would abort. Load one of them"));
    }
  }
  // 2.5 and 2.6 have no profilers.
  if (entry_points.init_profiler != nullptr && Sizes().profiler_params != 0) {
    auto profiler = ProfilerHost::Register(entry_points.init_profiler, Sizes());
    if (!profiler.ok()) return profiler.status();
    profilers_.push_back(*std::move(profiler));
  }
  return absl::OkStatus();
}

inline absl::Status Process::AddHost(Host::InitPlugin init_plugin) {
  HostOptions options(options_.release);
  options.sizes = Sizes();
  options.create_timers = options_.release < Release{2, 14};
  options.virtual_devices = options_.virtual_devices;
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
  const std::string type = (*host)->device_type();
  if (type == "CPU" || (type == "GPU" && options_.has_gpu)) {
    notes_.push_back(absl::StrCat(
        "the platform ", (*host)->platform_name(),
        " replaces TensorFlow's own ", type,
        " devices: the priority of plug-ins is 220, theirs ",
        type == "CPU" ? 60 : 210, ". TensorFlow's kernels for ", type,
        " get the plug-in's memory. Give the plug-in a type of its own"));
  }
  hosts_.push_back(*std::move(host));
  return absl::OkStatus();
}

// Creates the devices of the types CPU and GPU first, then of the plug-in that was
// loaded last first, as in the recorded process with two; TensorFlow's order is that
// of a hash table.
inline absl::Status Process::CreateDevices() {
  has_devices_ = true;
  std::vector<Host*> hosts;
  for (auto host = hosts_.rbegin(); host != hosts_.rend(); ++host) {
    hosts.push_back(host->get());
  }
  std::stable_partition(hosts.begin(), hosts.end(), [](Host* host) {
    return host->device_type() == "GPU";
  });
  std::stable_partition(hosts.begin(), hosts.end(), [](Host* host) {
    return host->device_type() == "CPU";
  });
  for (Host* const host : hosts) {
    absl::Status status = host->CreateDevices();
    if (!status.ok()) return status;
    const capi::SP_Platform platform = host->platform();
    HostDevice::Options options;
    options.release = options_.release;
    options.jitter_seed = options_.jitter_seed;
    options.use_bfc_allocator = platform.use_bfc_allocator != 0;
    options.grows = options_.grows || platform.force_memory_growth != 0;
    const HostDevice* first = nullptr;
    for (const auto& [ordinal, device] : host->devices()) {
      if (first != nullptr && !first->SharesDevice(*device)) first = nullptr;
      auto created = std::make_unique<HostDevice>(*device, options, first);
      if (first == nullptr) first = created.get();
      devices_.emplace(std::make_pair(host->device_type(), ordinal),
                       std::move(created));
    }
  }
  return absl::OkStatus();
}

inline absl::StatusOr<HostDevice*> Process::Device(const std::string& type,
                                                   int ordinal) {
  if (!has_devices_) creation_status_ = CreateDevices();
  if (!creation_status_.ok()) return creation_status_;
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

// TensorFlow calls every profiler, whatever the others return.
inline absl::Status Process::StartProfilers() {
  absl::Status status;
  for (const auto& profiler : profilers_) status.Update(profiler->Start());
  return status;
}
inline absl::StatusOr<std::vector<std::string>> Process::StopProfilers() {
  absl::Status status;
  for (const auto& profiler : profilers_) status.Update(profiler->Stop());
  std::vector<std::string> profiles;
  for (const auto& profiler : profilers_) {
    auto profile = profiler->Collect();
    status.Update(profile.status());
    if (profile.ok()) profiles.push_back(*std::move(profile));
  }
  if (!status.ok()) return status;
  return profiles;
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_PROCESS_H_
