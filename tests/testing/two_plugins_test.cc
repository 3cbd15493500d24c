// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <tfplug/testing.h>
#include <tfplug/testing/process.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tfplug/testing/graph_host.h"

// Loads two plug-ins that have the same classes and were compiled without
// tfplug's flags, at the paths $TFPLUG_TEST_TWIN_1 and $TFPLUG_TEST_TWIN_2.
// Without hidden symbols, the dynamic linker would merge their variables.
namespace tfplug::two_plugins_test {
namespace {

using testing::FakeKernel;
using testing::GraphHost;
using testing::Host;
using testing::KernelRegistry;
using testing::RegisteredOps;

template <class Function>
Function Find(const std::string& path, const char* name) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  void* const symbol = dlsym(library, name);
  REQUIRE(symbol != nullptr);
  return reinterpret_cast<Function>(symbol);
}

// A loaded twin.
struct Twin {
  explicit Twin(int i) : factor(i), type(i == 1 ? "TWIN_A" : "TWIN_B") {
    const std::string variable = "TFPLUG_TEST_TWIN_" + std::to_string(i);
    REQUIRE(std::getenv(variable.c_str()) != nullptr);
    path = std::getenv(variable.c_str());
    auto loaded = Host::Load(path);
    REQUIRE_MESSAGE(loaded.ok(), loaded.status().ToString());
    host = *std::move(loaded);
  }

  const int factor;
  const std::string type;
  std::string path;
  std::unique_ptr<Host> host;
};

void CheckDevice(Twin& twin) {
  CHECK(twin.host->platform_name() == twin.type);
  CHECK(twin.host->device_type() == twin.type);
  REQUIRE(twin.host->DeviceCount().value() == 1);
  testing::FakeDevice& device = *twin.host->Device(0).value();
  const DeviceMemory memory = device.Allocate(4);
  int in = twin.factor, out = 0;
  CHECK(device.compute().CopyHostToDevice(memory, &in, 4).ok());
  CHECK(device.compute().CopyDeviceToHost(&out, memory, 4).ok());
  CHECK(out == in);
  device.Deallocate(memory);
}

void CheckOpAndKernel(Twin& twin) {
  RegisteredOps().clear();
  KernelRegistry::Get().Refill(Find<void (*)()>(twin.path, "TF_InitKernel"));
  REQUIRE(RegisteredOps().size() == 1);
  capi::TF_ShapeInferenceContext inference;
  inference.outputs.resize(twin.factor);
  const absl::Status inferred =
      testing::CallWithStatus(RegisteredOps()[0]->shape_function, &inference);
  CHECK_MESSAGE(inferred.ok(), inferred.ToString());

  REQUIRE(KernelRegistry::Get().kernels().size() == 1);
  const auto kernel = FakeKernel::Create({"Scale", "scale", {}, {}}, twin.type);
  REQUIRE_MESSAGE(kernel.ok(), kernel.status().ToString());
  testing::KernelRun run(**kernel, twin.host->Device(0).value());
  run.AddInput<float>({{1}, {3}});
  run.AddOutput(DataType::kFloat);
  const absl::Status status = run.Run();
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  CHECK(run.Output<float>(0).elements ==
        std::vector<float>{3.0f * static_cast<float>(twin.factor)});
}

void CheckPass(Twin& twin) {
  const auto host = GraphHost::Register(
      Find<GraphHost::InitGraph>(twin.path, "TF_InitGraph"));
  REQUIRE_MESSAGE(host.ok(), host.status().ToString());
  CHECK((*host)->device_type() == twin.type);
  const testing::TF_GrapplerItem item;
  const GraphHost::Outcome outcome = (*host)->Optimize("", item, 1);
  REQUIRE_MESSAGE(outcome.runs[0].ok(), outcome.runs[0].ToString());
  CHECK(outcome.graph.find(twin.type) != std::string::npos);
}

TEST_CASE("two plug-ins with the same classes, without our compiler flags") {
  testing::MakeFakeTensorFlow();  // sets the result of TF_Version
  Twin first(1), second(2);
  for (Twin* const twin : {&first, &second, &first}) {
    CheckDevice(*twin);
    CheckOpAndKernel(*twin);
    CheckPass(*twin);
  }
}

// ---- What `import tensorflow` loads --------------------------------------------

namespace fs = std::filesystem;

// A folder with a folder tensorflow-plugins.
class SitePackages {
 public:
  SitePackages() {
    char path[] = "/tmp/tfplug_site_XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    path_ = path;
    fs::create_directory(plugins());
  }
  ~SitePackages() { fs::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string plugins() const { return path_ + "/tensorflow-plugins"; }
  // Adds a link to one of the twins.
  void Link(const std::string& name, int twin) const {
    const std::string variable = "TFPLUG_TEST_TWIN_" + std::to_string(twin);
    fs::create_symlink(std::getenv(variable.c_str()), plugins() + "/" + name);
  }
  void Write(const std::string& name) const {
    std::ofstream(plugins() + "/" + name) << "no library";
  }

 private:
  std::string path_;
};

TEST_CASE("import loads the libraries of each folder, and no other file") {
  testing::MakeFakeTensorFlow();
  const SitePackages first, second;
  first.Link("libtwin_a.so", 1);
  second.Link("libtwin_b.so.1.2", 2);
  for (const char* const name :
       {"readme.txt", "libx.so.old", "libx.so.", "x.dll", "so"}) {
    first.Write(name);
  }
  testing::Process process;
  const absl::Status status =
      process.Import({"/tmp/no such folder", first.path(), second.path()});
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  CHECK(process.Device("TWIN_A").ok());
  CHECK(process.Device("TWIN_B").ok());
  CHECK(process.Problems() == absl::OkStatus());
}

TEST_CASE("$TF_PLUGGABLE_DEVICE_LIBRARY_PATH is a file or a folder") {
  testing::MakeFakeTensorFlow();
  const SitePackages site;
  site.Link("libtwin_b.so", 2);
  for (const std::string& path : std::vector<std::string>{
           site.plugins(), site.plugins() + "/libtwin_b.so", std::string()}) {
    CAPTURE(path);
    setenv("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", path.c_str(), 1);
    testing::Process process;
    CHECK(process.Import({}) == absl::OkStatus());
    CHECK(process.Device("TWIN_B").ok() == !path.empty());
  }
  setenv("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", "/tmp/no such folder", 1);
  testing::Process process;
  CHECK(process.Import({}).message() ==
        "there is no file or folder /tmp/no such folder");
  unsetenv("TF_PLUGGABLE_DEVICE_LIBRARY_PATH");
}

TEST_CASE("what makes an import fail, or abort") {
  testing::MakeFakeTensorFlow();
  const SitePackages site, same;
  site.Link("libtwin_a.so", 1);
  same.Link("libtwin_a.so", 1);
  {  // one library by two paths, as in lib and lib64
    testing::Process process;
    const absl::Status status = process.Import({site.path(), same.path()});
    CHECK(absl::IsAborted(status));
    CHECK(status.message().find("have the platform TWIN_A: TensorFlow would "
                                "abort") != std::string::npos);
  }
  site.Write("liba.so");  // in front of the twin
  testing::Process process;
  const absl::Status status = process.Import({site.path()});
  CHECK(absl::IsNotFound(status));
  CHECK(status.message().find("liba.so") != std::string::npos);
}

}  // namespace
}  // namespace tfplug::two_plugins_test
