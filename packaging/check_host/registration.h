// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_CHECK_REGISTRATION_H_
#define TFPLUG_CHECK_REGISTRATION_H_

#include <alloca.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plugin.h"
#include "tfplug/testing/conformance.h"
#include "tfplug/testing/optimizer_settings.h"

// Checks of what happens when TensorFlow loads a plug-in.
namespace tfplug::check {

// Main has loaded the plug-in.
inline void CheckLoad(Plugin&) {}

// Overwrites the stack that the last call has left.
[[gnu::noinline]] inline void OverwriteStack() {
  constexpr size_t kSize = 1 << 16;
  auto* const bytes = static_cast<volatile char*>(alloca(kSize));
  for (size_t i = 0; i < kSize; ++i) bytes[i] = 'z';
}

// Registration as far as SE_InitPlugin.
struct RawRegistration {
  explicit RawRegistration(const testing::StructSizes& sizes)
      : params(sizes.registration_params),
        platform(sizes.platform),
        fns(sizes.platform_fns) {}

  testing::WithCanary<capi::SE_PlatformRegistrationParams> params;
  testing::WithCanary<capi::SP_Platform> platform;
  testing::WithCanary<capi::SP_PlatformFns> fns;

  absl::Status Call(Host::InitPlugin init_plugin) {
    params->patch_version = 1;
    params->platform = platform.get();
    params->platform_fns = fns.get();
    return testing::CallWithStatus(init_plugin, params.get());
  }
};

// The strings must outlive the call: TensorFlow keeps the pointers.
inline void CheckNames(Plugin& plugin) {
  Report& report = plugin.report();
  if (plugin.init_plugin() == nullptr) {
    return report.Skip("the plug-in exports no SE_InitPlugin");
  }
  report.Step("SE_InitPlugin");
  RawRegistration raw(plugin.release);
  if (!raw.Call(plugin.init_plugin()).ok()) return;
  const auto copy = [](const char* text) -> std::string {
    return text == nullptr ? "" : text;
  };
  // Not a call that moves the stack: what dangles is still legible, or already
  // overwritten.
  const char* const fields[] = {raw.platform->name, raw.platform->type};
  const std::string before[] = {copy(fields[0]), copy(fields[1])};
  OverwriteStack();
  const char* const names[] = {"name", "type"};
  for (int i = 0; i < 2; ++i) {
    report.Step(std::string("reading SP_Platform::") + names[i]);
    const std::string after = copy(fields[i]);
    bool is_legible = true;
    for (const char c : after + before[i]) is_legible &= c >= ' ' && c <= '~';
    report.Expect(after == before[i] && is_legible,
                  std::string("SP_Platform::") + names[i] +
                      " points to memory that SE_InitPlugin has released: it "
                      "reads '" +
                      before[i] + "' at first and '" + after + "' later");
  }
}

// Reports a struct_size that was left at 0 or that no release has.
template <class Struct>
void CheckSize(Report& report, const Struct& filled) {
  using Info = capi::StructInfo<Struct>;
  bool is_known = false;
  for (const capi::Layout& layout : Info::kLayouts) {
    is_known = is_known || layout.size == filled.struct_size;
  }
  const std::string name = std::string(Info::kName) + "::struct_size";
  if (filled.struct_size == 0) {
    report.Error(name + " is 0");
  } else if (!is_known) {
    report.Error(name + " is " + std::to_string(filled.struct_size) +
                 ", which it is in no release");
  }
}

inline void CheckStructSizes(Plugin& plugin) {
  Report& report = plugin.report();
  if (plugin.init_plugin() != nullptr) {
    report.Step("SE_InitPlugin");
    RawRegistration raw(plugin.release);
    if (raw.Call(plugin.init_plugin()).ok()) {
      CheckSize(report, *raw.params.get());
      CheckSize(report, *raw.platform.get());
      CheckSize(report, *raw.fns.get());
      // The rest is filled by functions that only a whole registration calls.
      auto host = Host::Register(plugin.init_plugin(),
                                 testing::HostOptions(plugin.release));
      if (host.ok()) {
        Host* const kept = Keep(*host);
        CheckSize(report, kept->device_fns());
        CheckSize(report, kept->stream_executor());
        CheckSize(report, kept->timer_fns());
      } else if (host.status().message().find("struct_size") !=
                 absl::string_view::npos) {
        report.Error(std::string(host.status().message()));
      }
    }
  }
  if (plugin.init_graph() != nullptr) {
    report.Step("TF_InitGraph");
    auto graph = GraphHost::Register(plugin.init_graph(), plugin.release);
    if (graph.ok()) Keep(*graph);
  }
}

// Everything that makes `import tensorflow` abort or ignore the plug-in.
inline void CheckRegistration(Plugin& plugin) {
  Host* const host = plugin.host();
  if (host == nullptr) return;
  plugin.report().Note("platform " + host->platform_name() + ", device type " +
                       host->device_type());
  plugin.report().Ok(host->Problems(), "after registration");
}

// TensorFlow compares the device type's text with some that it knows.
inline void CheckTypeName(Plugin& plugin) {
  Host* const host = plugin.host();
  if (host == nullptr) return;
  const std::string type = host->device_type();
  if (type == "GPU" || type == "TPU" || type == "CPU" || type == "TPU_SYSTEM" ||
      type == "XLA_CPU" || type == "XLA_GPU" || type == "DEFAULT" ||
      type == "COMPOSITE") {
    plugin.report().Warning(
        "the device type '" + type +
        "' is one of TensorFlow's own: a wheel that has this device uses its "
        "kernels with the plug-in's memory");
  } else if (type.find("CPU") != std::string::npos ||
             type.find("GPU") != std::string::npos) {
    plugin.report().Warning(
        "the device type '" + type + "' contains '" +
        (type.find("CPU") != std::string::npos ? "CPU" : "GPU") +
        "', which parts of TensorFlow look for: grappler takes such a device "
        "for that processor");
  }
}

// TensorFlow runs passes on graphs with nodes of exactly this device type.
inline void CheckGraphType(Plugin& plugin) {
  GraphHost* const graph = plugin.graph();
  if (graph == nullptr) return;
  Report& report = plugin.report();
  const std::string passes = graph->device_type();
  if (plugin.init_plugin() == nullptr) {
    return report.Note("passes for the device type " + passes +
                       ", which this library does not add");
  }
  Host* const host = plugin.host();
  if (host == nullptr) return;
  if (passes == "CPU" || passes == "GPU") {
    return report.Note("passes for TensorFlow's own device type " + passes);
  }
  report.Expect(
      passes == host->device_type(),
      "the passes are registered for the device type '" + passes +
          "', and the device has the type '" + host->device_type() +
          "': unless another plug-in has the former, the passes never run");
}

// Runs short random programs on the first device, if there is one.
inline absl::Status Exercise(Host& host, testing::Release release,
                             uint64_t seed) {
  const auto count = host.DeviceCount();
  if (!count.ok() || *count == 0) return count.status();
  auto device = host.Device(0);
  if (!device.ok()) return device.status();
  absl::Status status =
      (*device)->CreateStreams(!(release < testing::Release{2, 22}));
  if (status.ok()) status = testing::CheckDevice(**device, {seed, 0});
  // Also writes beyond a struct while the device was used.
  return status.ok() ? host.Problems() : status;
}

// Registers the plug-in with the structs and calls of a release, between
// canaries, and uses its device.
inline absl::Status CheckLayout(Plugin& plugin, testing::Release release) {
  if (plugin.init_plugin() != nullptr) {
    testing::HostOptions options(release);
    options.create_streams = false;
    options.create_timers = release < testing::Release{2, 14};
    auto host = Host::Register(plugin.init_plugin(), options);
    if (!host.ok()) return host.status();
    Host* const kept = Keep(*host);
    const auto callback = [](Host& each) {
      return reinterpret_cast<const void*>(
          each.stream_executor().host_callback);
    };
    absl::Status status = kept->Problems();
    if (status.ok() && callback(*kept) != callback(*plugin.host())) {
      status = absl::InternalError(
          "fills the slots of another release: TensorFlow would call the "
          "wrong function for host_callback");
    }
    if (status.ok()) status = Exercise(*kept, release, plugin.seed);
    if (!status.ok()) return status;
  }
  if (plugin.init_graph() != nullptr) {
    auto graph = GraphHost::Register(plugin.init_graph(), release);
    if (!graph.ok()) return graph.status();
    Keep(*graph);
  }
  const bool has_profilers =
      testing::StructSizeIn<capi::TP_Profiler>(release) > 0;
  if (plugin.init_profiler() != nullptr && has_profilers) {
    auto profiler = ProfilerHost::Register(plugin.init_profiler(), release);
    if (!profiler.ok()) return profiler.status();
    Keep(*profiler);
  }
  return absl::OkStatus();
}

inline void CheckLayouts(Plugin& plugin) {
  Report& report = plugin.report();
  if (plugin.init_plugin() == nullptr && plugin.init_graph() == nullptr) {
    return report.Skip("the plug-in has neither a device nor a pass");
  }
  if (plugin.init_plugin() != nullptr && plugin.host() == nullptr) return;
  report.Step("registration, and random programs on the device");
  testing::FakeVersion() = plugin.layout + ".0";
  const absl::Status status =
      CheckLayout(plugin, testing::ParseRelease(plugin.layout.c_str()));
  if (!status.ok()) return report.Warning(std::string(status.message()));
  report.Note("right");
}

// Registers several plug-ins in one process.
inline void CheckTogether(Plugins& plugins) {
  std::map<std::string, std::string> names, passes;
  std::vector<capi::TP_OptimizerConfigs> settings;
  for (auto& plugin : plugins) {
    Report& report = plugin->report();
    if (plugin->init_plugin() != nullptr) {
      Host* const host = plugin->host();
      if (host == nullptr) return;
      for (const std::string& name : {"platform " + host->platform_name(),
                                      "device type " + host->device_type()}) {
        const auto [other, is_new] = names.emplace(name, plugin->path());
        if (!is_new) {
          report.Error(other->second + " and " + plugin->path() +
                       " both register the " + name);
        }
      }
    }
    if (plugin->init_graph() != nullptr) {
      GraphHost* const graph = plugin->graph();
      if (graph == nullptr) return;
      const auto [other, is_new] =
          passes.emplace(graph->device_type(), plugin->path());
      if (!is_new) {
        report.Error(other->second + " and " + plugin->path() +
                     " both have passes for the device type " +
                     graph->device_type());
      }
      settings.push_back(graph->configs());
    }
  }
  const auto merged = testing::MergeSettings(settings);
  plugins[0]->report().Ok(merged.status(),
                          "settings of TensorFlow's rewriters");
}

}  // namespace tfplug::check

#endif  // TFPLUG_CHECK_REGISTRATION_H_
