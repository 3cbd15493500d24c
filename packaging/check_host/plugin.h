// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_CHECK_PLUGIN_H_
#define TFPLUG_CHECK_PLUGIN_H_

#include <dlfcn.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "report.h"
#include "tfplug/testing.h"

namespace tfplug::check {

using testing::FakeDevice;
using testing::FakeStream;
using testing::GraphHost;
using testing::Host;
using testing::ProfilerHost;
using testing::operator<;  // of releases

// Destroys an object never, as TensorFlow destroys no plug-in.
template <class T>
T* Keep(std::unique_ptr<T>& object) {
  return object.release();
}

// A plug-in that was loaded as TensorFlow loads it. It is never unloaded.
class Plugin {
 public:
  Plugin(std::string path, Report& report)
      : path_(std::move(path)), report_(report) {}

  // Loads the library, with all symbols bound unless `is_lazy`. Reports an error
  // and returns false if that fails.
  bool Load(bool is_lazy) {
    report_.Step("loading");
    const int binding = is_lazy ? RTLD_LAZY : RTLD_NOW;
    library_ = dlopen(path_.c_str(), binding | RTLD_LOCAL);
    if (library_ != nullptr) return true;
    const std::string reason = dlerror();
    if (is_lazy && reason.find("undefined symbol") != std::string::npos) {
      report_.Skip(
          "needs TensorFlow's own C++ code, of the release that it was "
          "built for: " +
          reason);
    } else {
      report_.Error(reason);
    }
    return false;
  }

  template <class Function>
  Function Find(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }
  Host::InitPlugin init_plugin() const {
    return Find<Host::InitPlugin>("SE_InitPlugin");
  }
  GraphHost::InitGraph init_graph() const {
    return Find<GraphHost::InitGraph>("TF_InitGraph");
  }

  ProfilerHost::InitProfiler init_profiler() const {
    return Find<ProfilerHost::InitProfiler>("TF_InitProfiler");
  }

  // Registers the device plug-in, unless it was registered before. Reports an
  // error and returns null if that fails, or a skip if there is none.
  Host* host() {
    if (host_ != nullptr) return host_;
    if (init_plugin() == nullptr) {
      report_.Skip("the plug-in exports no SE_InitPlugin: it adds no device");
      return nullptr;
    }
    report_.Step("registration of the device");
    testing::HostOptions options(release);
    options.create_streams = false;
    auto host = Host::Register(init_plugin(), options);
    if (!report_.Ok(host.status(), "SE_InitPlugin")) return nullptr;
    host_ = Keep(*host);
    return host_;
  }

  // Returns device 0, with its four streams if wanted; null after reporting an
  // error or a skip.
  FakeDevice* device(bool with_streams = true) {
    if (host() == nullptr) return nullptr;
    report_.Step("get_device_count");
    const auto count = host()->DeviceCount();
    if (!report_.Ok(count.status(), "get_device_count")) return nullptr;
    if (*count == 0) {
      report_.Skip("the plug-in reports no device on this machine");
      return nullptr;
    }
    report_.Step("creation of device 0");
    auto device = host()->Device(0);
    if (!report_.Ok(device.status(), "creation of device 0")) return nullptr;
    if (with_streams && !has_streams_) {
      report_.Step("creation of the device's four streams");
      const absl::Status status = (*device)->CreateStreams();
      if (!report_.Ok(status, "create_stream")) return nullptr;
      has_streams_ = true;
    }
    return *device;
  }

  // Registers the kernels. Returns false after reporting a skip.
  bool InitKernels() {
    const auto init_kernel = Find<void (*)()>("TF_InitKernel");
    if (init_kernel == nullptr) {
      report_.Skip("the plug-in exports no TF_InitKernel: it adds no kernels");
      return false;
    }
    report_.Step("TF_InitKernel");
    testing::KernelRegistry::Get().Refill(init_kernel);
    return true;
  }

  // Registers the graph optimizer, after the kernels; null as for host().
  GraphHost* graph() {
    if (graph_ != nullptr) return graph_;
    if (init_graph() == nullptr) {
      report_.Skip(
          "the plug-in exports no TF_InitGraph: it adds no graph pass");
      return nullptr;
    }
    if (Find<void (*)()>("TF_InitKernel") != nullptr) InitKernels();
    report_.Step("TF_InitGraph");
    auto graph = GraphHost::Register(init_graph(), release);
    if (!report_.Ok(graph.status(), "TF_InitGraph")) return nullptr;
    graph_ = Keep(*graph);
    return graph_;
  }

  // The release whose structs CheckLayout passes, such as 2.15.
  std::string layout;
  // The release whose structs and calls it gets.
  testing::Release release = capi::kNewestRelease;
  // Selects random graphs and programs.
  uint64_t seed = 1;

  const std::string& path() const { return path_; }
  Report& report() { return report_; }

 private:
  const std::string path_;
  Report& report_;
  void* library_ = nullptr;
  Host* host_ = nullptr;
  bool has_streams_ = false;
  GraphHost* graph_ = nullptr;
};

using Plugins = std::vector<std::unique_ptr<Plugin>>;

}  // namespace tfplug::check

#endif  // TFPLUG_CHECK_PLUGIN_H_
