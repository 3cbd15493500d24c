// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <search.h>
#include <sys/wait.h>
#include <tfplug/testing.h>
#include <tfplug/testing/executor.h>
#include <tfplug/testing/functions_by_name.h>
#include <tfplug/testing/graph_text.h>
#include <tfplug/testing/process.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "float_tensors.h"
#include "op_defs.h"

#ifdef __SANITIZE_THREAD__
// Mesa's driver for CPUs synchronizes its threads by code that is not instrumented.
extern "C" [[gnu::visibility("default")]] const char*
__tsan_default_suppressions() {
  return "race:libvulkan_lvp.so";
}
#endif

// Each of the plug-ins $TFPLUG_TEST_PLUGINS ("TYPE=path ...") in each release's
// TensorFlow, with its structs and functions, and in one whose structs are larger:
// with guard pages, late events and host tasks, and threads in another order. Each
// run is a process of its own, because a plug-in is loaded once. The last one has two
// TensorFlow devices on the plug-in's first.
namespace tfplug::host_releases_test {
namespace {

using testing::Process;

// The first release with the functions that kernels need.
constexpr uint8_t kFirstWithKernels = 11;

constexpr char kGraph[] = R"(
    x: float[4,4] = Placeholder() {dtype=float}
    w: float[4,4] = 2
    b: float[4] = 1
    axes: int32[1] = [1]
    product: float[4,4] = MatMul(x, w)
    biased: float[4,4] = BiasAdd(product, b) {data_format="NHWC"}
    active: float[4,4] = Relu(biased)
    negative: float[4,4] = Neg(active, ^w)
    square: float[4,4] = Mul(negative, active)
    sum: float[4] = Sum(square, axes)
    out: float[4] = AddV2(sum, b))";

absl::Status RunGraph(Process& process, const Graph& graph, uint64_t seed) {
  testing::Executor::Options options;
  options.seed = seed;
  TFPLUG_ASSIGN_OR_RETURN(auto executor,
                          testing::Executor::Create(process, graph, options));
  std::vector<float> x(16);
  for (size_t i = 0; i < 16; ++i) x[i] = static_cast<float>(i % 5) - 2;
  std::vector<float> expected;
  for (size_t row = 0; row < 4; ++row) {
    float value = 1;  // of b and, four times, of Relu
    for (size_t i = 0; i < 4; ++i) value += 2 * x[row * 4 + i];
    value = value > 0 ? value : 0;
    expected.push_back(1 - 4 * value * value);
  }
  TFPLUG_ASSIGN_OR_RETURN(const auto out,
                          executor->Run({{"x", Floats({4, 4}, x)}}, {"out"}));
  if (Elements(out[0]) == expected) return absl::OkStatus();
  return absl::DataLossError("the result is wrong");
}

absl::Status UseDevice(Process& process, const std::string& type,
                       bool is_divided) {
  TFPLUG_ASSIGN_OR_RETURN(testing::HostDevice* const device,
                          process.Device(type));
  TFPLUG_ASSIGN_OR_RETURN(testing::HostDevice* const other,
                          process.Device(type, is_divided ? 1 : 0));
  if (!other->SharesDevice(device->device()) ||
      (other != device) != is_divided) {
    return absl::DataLossError("the devices are not the virtual ones");
  }
  std::vector<float> values(1000, 1.5f);
  for (const int64_t size : {1, 7, 1000}) {
    values.resize(static_cast<size_t>(size));
    TFPLUG_ASSIGN_OR_RETURN(const auto x,
                            device->CopyFromHost(Floats({size}, values)));
    TFPLUG_ASSIGN_OR_RETURN(const auto y, device->CopyTo(*other, x));
    TFPLUG_ASSIGN_OR_RETURN(const auto back, other->CopyToHost(y));
    if (Elements(back) != values) return absl::DataLossError("a copy is wrong");
    values.resize(1000, 1.5f);
  }
  device->device().Stats();
  return absl::OkStatus();
}

absl::Status Use(const std::string& type, const std::string& path,
                 const Process::Options& options, uint64_t seed) {
  // Never destroyed, as in TensorFlow.
  static auto& process = *new Process(options);
  TFPLUG_RETURN_IF_ERROR(process.Load(path));
  TFPLUG_RETURN_IF_ERROR(
      UseDevice(process, type, !options.virtual_devices.empty()));
  testing::TF_GrapplerItem item;
  item.nodes_to_preserve = item.fetch_nodes = {"out"};
  Graph graph;
  testing::GraphTextOptions text;
  text.device = type;
  text.attrs = "T=float";
  text.item = &item;
  TFPLUG_RETURN_IF_ERROR(testing::AddNodes(graph, kGraph, text).status());
  TFPLUG_RETURN_IF_ERROR(process.StartProfilers());
  absl::Status ran = RunGraph(process, graph, seed);
  TFPLUG_ASSIGN_OR_RETURN(const auto outcome,
                          process.Optimize(type, graph.ToString(), item));
  for (const absl::Status& status : outcome.runs) {
    if (!absl::IsAborted(status)) TFPLUG_RETURN_IF_ERROR(status);
  }
  TFPLUG_ASSIGN_OR_RETURN(const Graph optimized, Graph::Parse(outcome.graph));
  if (ran.ok()) ran = RunGraph(process, optimized, seed);
  TFPLUG_ASSIGN_OR_RETURN(const auto profiles, process.StopProfilers());
  if (options.release.minor < kFirstWithKernels) {
    const bool is_refused =
        absl::IsUnimplemented(ran) &&
        ran.message().find("releases from 2.11 on have it") !=
            absl::string_view::npos;
    return is_refused ? process.Problems() : ran;
  }
  TFPLUG_RETURN_IF_ERROR(ran);
  if (profiles.empty() || profiles[0].find(type) == std::string::npos) {
    return absl::DataLossError("the profile does not name the device");
  }
  return process.Problems();
}

// Returns "" or what is wrong.
std::string UseInChild(const std::string& type, const std::string& path,
                       const Process::Options& options) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::cout.flush();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    testing::FakeOptions functions;
    functions.release = options.release;
    const testing::ScopedFakeTensorFlow tensorflow(functions);
    const testing::ScopedGuards guards;
    const absl::Status status = Use(type, path, options, options.jitter_seed);
    const std::string text = status.ok() ? "" : status.ToString();
    const bool is_written = write(ends[1], text.data(), text.size()) ==
                            static_cast<ssize_t>(text.size());
    _exit(is_written && status.ok() ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    text += " killed by signal " + std::to_string(WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    text += " exit status " + std::to_string(WEXITSTATUS(status));
  }
  return text;
}

TEST_CASE("each example in each release, with guards and late callbacks") {
  DefineMathOps();
  const char* const plugins = std::getenv("TFPLUG_TEST_PLUGINS");
  REQUIRE(plugins != nullptr);
  int runs = 0;
  for (const std::string& plugin :
       std::vector<std::string>(absl::StrSplit(plugins, ' '))) {
    const size_t at = plugin.find('=');
    const std::string type = plugin.substr(0, at), path = plugin.substr(at + 1);
    CAPTURE(type);
    Process::Options options;
    for (uint8_t minor = 5; minor <= capi::kNewestRelease.minor + 1; ++minor) {
      CAPTURE(int{minor});
      const bool is_future = minor > capi::kNewestRelease.minor;
      options.release = {2, is_future ? capi::kNewestRelease.minor : minor};
      options.larger_structs = is_future ? 40 : 0;
      options.jitter_seed = minor;
      if (is_future) options.virtual_devices = {{{32 << 20, 1}, {64 << 20, 2}}};
      CHECK(UseInChild(type, path, options) == "");
      ++runs;
    }
  }
  CHECK(runs >= 19);
}

// A search in the C library calls dlsym(RTLD_NEXT, "lfind"): behind the C library
// there is no lfind. Behind the program, there is the C library's.
TEST_CASE("dlsym knows which library calls it") {
  const char name[] = "lfind";
  size_t count = 1;
  const auto compare = reinterpret_cast<int (*)(const void*, const void*)>(
      reinterpret_cast<void*>(&dlsym));
  CHECK(dlsym(RTLD_NEXT, name) != nullptr);
  CHECK(lfind(RTLD_NEXT, name, &count, sizeof(name), compare) == name);
}

}  // namespace
}  // namespace tfplug::host_releases_test
