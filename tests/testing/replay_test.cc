// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <tfplug/testing.h>
#include <tfplug/testing/executor.h>
#include <tfplug/testing/graph_text.h>
#include <tfplug/testing/process.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "float_tensors.h"
#include "op_defs.h"

// What the host does for the scripts of tools/record, with the probe of
// testing/record, must be what stock TensorFlow did: line by line, in each
// recorded release. $TFPLUG_TEST_PROBES has the paths of the probes,
// $TFPLUG_TEST_LOGS the folder of the logs. Each script runs in a process of its
// own, because a plug-in is loaded once.
namespace tfplug::replay_test {
namespace {

using testing::Executor;
using testing::HostDevice;
using testing::Process;
using testing::TF_Tensor;

HostDevice& Device(Process& process, int ordinal = 0) {
  return *process.Device("ALPHA", ordinal).value();
}

// Runs an op eagerly: on tensors of the device, which stay there.
absl::StatusOr<TF_Tensor> RunOp(HostDevice& device, const std::string& op,
                                const std::vector<TF_Tensor>& inputs) {
  static auto* const kernels =
      new std::map<std::string,
                   std::unique_ptr<testing::FakeKernel>>;  // as TensorFlow has
  auto& kernel = (*kernels)[op];
  if (kernel == nullptr) {
    auto created = testing::FakeKernel::Create(
        {op, op, {{"T", DataType::kFloat}}, {}}, "ALPHA");
    if (!created.ok()) return created.status();
    kernel = *std::move(created);
  }
  testing::KernelRun run(*kernel, &device.device());
  for (const TF_Tensor& input : inputs) run.AddInput(input);
  run.AddOutput(DataType::kFloat);
  const absl::Status status = run.Compute();
  if (!status.ok()) return status;
  return *run.output(0);
}

// ---- The scripts: see tools/lib/record/scripts.py ------------------------------

absl::Status Start(Process& process) {
  auto device = process.Device("ALPHA");
  if (!device.ok()) return device.status();
  return (*device)->CopyFromHost(Floats({1}, {1})).status();
}

// Scripts run in processes of their own, of which only the exit status counts: no
// CHECK there would be noticed.
absl::Status Wrong() { return absl::DataLossError("a result is wrong"); }

absl::Status Copies(Process& process) {
  for (const size_t count : {0, 1, 1000}) {
    const TF_Tensor host =
        Floats({static_cast<int64_t>(count)}, std::vector<float>(count, 1));
    auto tensor = Device(process).CopyFromHost(host);
    if (!tensor.ok()) return tensor.status();
    auto back = Device(process).CopyToHost(*tensor);
    if (!back.ok()) return back.status();
    if (!(Elements(*back) == Elements(host))) return Wrong();
  }
  return absl::OkStatus();
}

absl::Status MatMul(Process& process) {
  auto device = process.Device("ALPHA");
  if (!device.ok()) return device.status();
  auto x = (*device)->CopyFromHost(Floats({2, 2}, {1, 2, 3, 4}));
  if (!x.ok()) return x.status();
  auto y = (*device)->CopyFromHost(Floats({2, 2}, {1, 0, 0, 1}));
  if (!y.ok()) return y.status();
  auto z = RunOp(**device, "MatMul", {*x, *y});
  if (!z.ok()) return z.status();
  auto back = (*device)->CopyToHost(*z);
  if (!back.ok()) return back.status();
  if (!(Elements(*back) == std::vector<float>{1, 2, 3, 4})) return Wrong();
  return absl::OkStatus();
}

// Reads a variable, a tensor that is replaced.
absl::Status Variable(Process& process) {
  HostDevice& device = Device(process);
  TF_Tensor value = device.CopyFromHost(Floats({2}, {1, 2})).value();
  device.CopyToHost(value).value();
  value = device.CopyFromHost(Floats({2}, {3, 4})).value();
  if (!(Elements(device.CopyToHost(value).value()) == std::vector<float>{3, 4}))
    return Wrong();
  return absl::OkStatus();
}

absl::Status Move(HostDevice& from, HostDevice& to) {
  const TF_Tensor x = from.CopyFromHost(Floats({2}, {1, 2})).value();
  auto y = from.CopyTo(to, x);
  if (!y.ok()) return y.status();
  auto back = to.CopyToHost(*y);
  if (!back.ok()) return back.status();
  if (!(Elements(*back) == std::vector<float>{1, 2})) return Wrong();
  return absl::OkStatus();
}
absl::Status TwoDevices(Process& process) {
  return Move(Device(process), Device(process, 1));
}
absl::Status TwoPlugins(Process& process) {
  HostDevice& beta = *process.Device("BETA").value();
  return Move(Device(process), beta);
}

absl::Status Function(Process& process) {
  DefineOp("MatMul", {"a: T", "b: T"}, {"product: T"});
  DefineOp("AddV2", {"x: T", "y: T"}, {"z: T"});
  DefineOp("Relu", {"features: T"}, {"activations: T"});
  Graph graph;
  testing::GraphTextOptions text;
  text.device = "ALPHA";
  text.attrs = "T=float";
  const auto last = testing::AddNodes(graph, R"(
      x = _Arg()
      y = _Arg()
      MatMul = MatMul(x, y)
      add = AddV2(MatMul, x)
      Relu = Relu(add)
      result = _Retval(Relu))",
                                      text);
  REQUIRE_MESSAGE(last.ok(), last.status().ToString());
  HostDevice& device = Device(process);
  const TF_Tensor x =
      device.CopyFromHost(Floats({2, 2}, {1, -2, 3, 4})).value();
  const testing::TF_GrapplerItem item;
  auto outcome = process.Optimize("ALPHA", graph.ToString(), item);
  if (!outcome.ok()) return outcome.status();
  auto executor = Executor::Create(process, graph, {});
  if (!executor.ok()) return executor.status();
  for (int i = 0; i < 2; ++i) {
    auto values = (*executor)->RunLocated(
        {{"x", {x, &device}}, {"y", {x, &device}}}, {"result"});
    if (!values.ok()) return values.status();
    auto back = device.CopyToHost(*(*values)[0].tensor);
    if (!back.ok()) return back.status();
    if (!(Elements(*back) == std::vector<float>{0, 0, 18, 14})) return Wrong();
  }
  return absl::OkStatus();
}

// In a session, what is fed and fetched is on the host.
absl::Status VirtualDevices(Process& process) {
  DefineOp("AddV2", {"x: T", "y: T"}, {"z: T"});
  DefineOp("Relu", {"features: T"}, {"activations: T"});
  Graph graph;
  testing::GraphTextOptions text;
  text.attrs = "T=float";
  const auto last = testing::AddNodes(graph, R"(
      x = Placeholder() {dtype=float}
      Relu = Relu(x) @/device:ALPHA:0
      Relu_1 = Relu(Relu) @/device:ALPHA:1
      add = AddV2(Relu, Relu_1) @/device:ALPHA:0)",
                                      text);
  if (!last.ok()) return last.status();
  auto executor = Executor::Create(process, graph, {});
  if (!executor.ok()) return executor.status();
  auto values = (*executor)->Run({{"x", Floats({2}, {1, -2})}}, {"add"});
  if (!values.ok()) return values.status();
  return Elements((*values)[0]) == std::vector<float>{2, 0} ? absl::OkStatus()
                                                            : Wrong();
}

absl::Status OutOfMemory(Process& process) {
  HostDevice& device = Device(process);
  auto first = device.CopyFromHost(Floats({1}, {1}));
  first = absl::UnknownError("destroyed");
  const TF_Tensor large = testing::MakeTensor(capi::TF_FLOAT, {1 << 23});
  if (!(absl::IsResourceExhausted(device.CopyFromHost(large).status())))
    return Wrong();
  auto second = device.CopyFromHost(Floats({1}, {2}));
  return second.ok() ? device.CopyToHost(*second).status() : second.status();
}

absl::Status Growth(Process& process) {
  HostDevice& device = Device(process);
  std::vector<TF_Tensor> tensors;
  for (const int64_t n : {1, 100, 1000, 300000, 600000, 1000000}) {
    tensors.push_back(
        device.CopyFromHost(testing::MakeTensor(capi::TF_FLOAT, {n})).value());
    device.events().Wait();
  }
  tensors.erase(tensors.begin() + 3);
  return device.CopyFromHost(testing::MakeTensor(capi::TF_FLOAT, {200000}))
      .status();
}

absl::Status KernelFails(Process& process) {
  HostDevice& device = Device(process);
  const TF_Tensor x = device.CopyFromHost(Floats({1, 1}, {1})).value();
  if (!(absl::IsInternal(RunOp(device, "MatMul", {x, x}).status())))
    return Wrong();
  auto y = RunOp(device, "Relu", {x});
  return y.ok() ? device.CopyToHost(*y).status() : y.status();
}

absl::Status CopyFails(Process& process) {
  HostDevice& device = Device(process);
  const TF_Tensor x = device.CopyFromHost(Floats({1}, {1})).value();
  absl::Status failed = device.CopyToHost(x).status();
  if (!absl::IsInternal(failed)) return failed;
  return device.CopyToHost(x).status();
}

absl::Status Profile(Process& process) {
  HostDevice& device = Device(process);
  const TF_Tensor x = device.CopyFromHost(Floats({1, 1}, {1})).value();
  absl::Status status = process.StartProfilers();
  if (!status.ok()) return status;
  auto y = RunOp(device, "MatMul", {x, x});
  if (!y.ok()) return y.status();
  status = device.CopyToHost(*y).status();
  if (status.ok()) status = process.StopProfilers().status();
  return status;
}

absl::Status Gpu(Process& process) {
  auto device = process.Device("GPU");
  if (!device.ok()) return device.status();
  return (*device)->CopyFromHost(Floats({1}, {1})).status();
}
// TensorFlow takes the memory of a device that is called CPU for host memory.
absl::Status Cpu(Process& process) { return process.Device("CPU").status(); }

struct Script {
  absl::Status (*run)(Process& process);
  std::string types, settings;
  bool grows = false;
  testing::VirtualDevices virtual_devices = {};
};
const std::map<std::string, Script>& Scripts() {
  static const auto* const scripts = new std::map<std::string, Script>{
      {"start", {Start, "ALPHA", ""}},
      {"memory_1g", {Start, "ALPHA", "memory=1073741824"}},
      {"memory_8g", {Start, "ALPHA", "memory=8589934592"}},
      {"copies", {Copies, "ALPHA", ""}},
      {"own_allocator", {Copies, "ALPHA", "bfc=0"}},
      {"matmul", {MatMul, "ALPHA", ""}},
      {"variable", {Variable, "ALPHA", ""}},
      {"two_devices", {TwoDevices, "ALPHA", "devices=2"}},
      {"two_plugins", {TwoPlugins, "ALPHA BETA", ""}},
      {"virtual_devices",
       {VirtualDevices,
        "ALPHA",
        "devices=2",
        /*grows=*/false,
        {{{4 << 20, 1}, {8 << 20, 2}}, {}}}},
      {"function", {Function, "ALPHA", ""}},
      {"pass_fails", {Function, "ALPHA", "fail=optimize_func:all"}},
      {"gpu", {Gpu, "ALPHA", "_ALPHA:=type=GPU"}},
      {"cpu", {Cpu, "ALPHA", "_ALPHA:=type=CPU"}},
      {"two_profilers", {Profile, "ALPHA BETA", ""}},
      {"two_paths", {Start, "ALPHA ALPHA@", ""}},
      {"loaded_twice", {Start, "ALPHA ALPHA", ""}},
      {"same_type", {Start, "ALPHA BETA", "_BETA:=type=ALPHA"}},
      {"out_of_memory", {OutOfMemory, "ALPHA", ""}},
      {"growth", {Growth, "ALPHA", "", true}},
      {"kernel_fails", {KernelFails, "ALPHA", "fail=compute_func:1"}},
      {"copy_fails", {CopyFails, "ALPHA", "fail=memcpy_dtoh:1"}},
      {"device_fails", {MatMul, "ALPHA", "fail=create_device:1"}},
      {"usage_fails", {MatMul, "ALPHA", "fail=device_memory_usage:1"}},
      {"event_fails", {MatMul, "ALPHA", "fail=record_event:1"}},
      {"profile", {Profile, "ALPHA", ""}},
  };
  return *scripts;
}

// Where the host does something else, and why. All other logs must agree.
struct Difference {
  std::string script, releases;  // all if empty
  std::string reason;
};
const std::vector<Difference>& Differences() {
  static const auto* const differences = new std::vector<Difference>{
      {"two_plugins", "2.12.1 2.15.1 2.18.1",
       "Python passes a list of devices that TensorFlow refuses; the host has "
       "no "
       "such list"},
      {"two_profilers", "2.12.1 2.15.1 2.18.1", "for the same reason"},
      {"virtual_devices", "2.15.1",
       "a session of this release takes the plug-in's first device for the "
       "host, and copies neither what is fed nor what is fetched"},
      {"stream_fails", "",
       "TensorFlow goes on with a stream that it has not, and calls the "
       "plug-in "
       "with null; the host returns the error of create_stream"},
      {"folding", "", "the host has none of TensorFlow's own rewriters"},
      {"no_folding", "",
       "the executor of TensorFlow folds constants, whatever the settings"},
      {"equal_settings", "",
       "the host runs one optimizer at a time: Process::Optimize"},
      {"different_settings", "",
       "the host returns the error instead: Process::Settings"},
  };
  return *differences;
}
bool IsDifferent(const std::string& script, const std::string& release) {
  for (const Difference& each : Differences()) {
    if (each.script == script &&
        (each.releases.empty() ||
         each.releases.find(release) != std::string::npos)) {
      return true;
    }
  }
  return false;
}

// ---- Logs ----------------------------------------------------------------------

using Lines = std::vector<std::string>;

Lines ReadLines(const std::string& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file, path);
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Does the same as normalized() in tools/lib/record/main.py.
Lines Normalized(const std::string& name, const Lines& raw) {
  static const std::regex registration(
      " (SE_InitPlugin|TF_Init\\w+|create_(device_fns|stream_executor|"
      "timer_fns)\\(\\)|destroy_profiler(_fns)?\\(\\))$");
  const bool has_registration = name == "start" || name == "loaded_twice" ||
                                name == "same_type" || name == "two_paths";
  static const std::regex left_out(
      " get_event_status\\(| create_event\\(| get_device_count\\(");
  static const std::regex in_any_order(
      "block_host_until_done|synchronize_all_activity|optimize|(create|delete)_"
      "func");
  static const std::regex event("(record_event\\(.*), \\S*\\)");
  Lines lines;
  for (const std::string& line : raw) {
    if (std::regex_search(line, left_out)) continue;
    if (name == "virtual_devices" && std::regex_search(line, in_any_order))
      continue;
    if (!has_registration && std::regex_search(line, registration)) continue;
    lines.push_back(
        std::regex_replace(line.substr(line.find(' ') + 1), event, "$1)"));
  }
  return lines;
}

// Returns the recorded lines by release.
std::map<std::string, Lines> ReadRecording(const std::string& name) {
  const char* const folder = std::getenv("TFPLUG_TEST_LOGS");
  REQUIRE(folder != nullptr);
  std::map<std::string, Lines> logs;
  std::vector<std::string> releases;
  for (const std::string& line :
       ReadLines(std::string(folder) + "/" + name + ".log")) {
    if (line.compare(0, 3, "== ") == 0) {
      releases = absl::StrSplit(line.substr(3), ' ');
    } else if (line[0] != '#') {
      for (const std::string& release : releases) {
        logs[release].push_back(line);
      }
    }
  }
  return logs;
}

// Returns the path of a probe or, for "ALPHA@", of a link to it.
std::string PathOf(const std::string& type) {
  if (type.back() == '@') {
    char folder[] = "/tmp/tfplug_replay_XXXXXX";
    REQUIRE(mkdtemp(folder) != nullptr);
    const std::filesystem::path probe = PathOf(type.substr(0, type.size() - 1));
    const auto link = folder / probe.filename();
    std::filesystem::create_symlink(probe, link);
    return link;
  }
  const char* const all = std::getenv("TFPLUG_TEST_PROBES");
  REQUIRE(all != nullptr);
  for (const std::string& path :
       std::vector<std::string>(absl::StrSplit(all, ':'))) {
    if (path.find("_" + type + ".so") != std::string::npos) return path;
  }
  FAIL("there is no probe ", type);
  return "";
}

// Runs a script in the host, in a process of its own, and returns its lines.
Lines Replay(const std::string& name, const std::string& release) {
  const Script& script = Scripts().at(name);
  char path[] = "/tmp/tfplug_replay_XXXXXX";
  close(mkstemp(path));
  setenv("TFPLUG_PROBE_LOG", path, 1);
  for (const char* const variable :
       {"TFPLUG_PROBE", "TFPLUG_PROBE_ALPHA", "TFPLUG_PROBE_BETA"}) {
    unsetenv(variable);
  }
  for (const std::string& setting : std::vector<std::string>(
           absl::StrSplit(script.settings, ' ', absl::SkipEmpty()))) {
    const size_t at = setting.find(":=");
    const bool is_own = at != std::string::npos;
    setenv(("TFPLUG_PROBE" + (is_own ? setting.substr(0, at) : "")).c_str(),
           setting.substr(is_own ? at + 2 : 0).c_str(), 1);
  }
  std::cout.flush();
  const pid_t child = fork();
  if (child == 0) {
    Process::Options options;
    options.release = testing::ParseRelease(release.c_str());
    options.grows = script.grows;
    options.virtual_devices = script.virtual_devices;
    testing::FakeOptions functions;
    functions.release = options.release;
    testing::ScopedFakeTensorFlow tensorflow(functions);
    Process process(options);
    absl::Status status;
    for (const std::string& type :
         std::vector<std::string>(absl::StrSplit(script.types, ' '))) {
      if (!status.ok()) break;
      const std::string library = PathOf(type);
      status = process.Load(library);
      if (type.back() == '@') {
        std::filesystem::remove_all(
            std::filesystem::path(library).parent_path());
      }
    }
    if (status.ok()) status = script.run(process);
    if (!status.ok()) std::printf("%s\n", status.ToString().c_str());
    std::fflush(nullptr);
    _exit(status.ok() ? 0 : absl::IsAborted(status) ? 100 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Lines lines = Normalized(name, ReadLines(path));
  std::remove(path);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 100) {
    lines.push_back("- exit status -6");  // what TensorFlow's abort gives
  } else {
    lines.push_back("- exit status " + std::to_string(WIFEXITED(status)
                                                          ? WEXITSTATUS(status)
                                                          : -WTERMSIG(status)));
  }
  return lines;
}

// ---- Tests ----------------------------------------------------------------------

TEST_CASE("the host makes the calls that stock TensorFlow made") {
  int compared = 0;
  for (const auto& script : Scripts()) {
    const std::string& name = script.first;
    for (const auto& log : ReadRecording(name)) {
      const std::string& release = log.first;
      if (IsDifferent(name, release)) continue;
      const Lines &recorded = log.second, replayed = Replay(name, release);
      const auto differ = std::mismatch(recorded.begin(), recorded.end(),
                                        replayed.begin(), replayed.end());
      const std::string expected =
          differ.first == recorded.end() ? "(the end)" : *differ.first;
      const std::string found =
          differ.second == replayed.end() ? "(the end)" : *differ.second;
      CHECK_MESSAGE(recorded == replayed, name, " in ", release, ", line ",
                    differ.first - recorded.begin() + 1,
                    ": TensorFlow: ", expected, "; the host: ", found);
      ++compared;
    }
  }
  CHECK(compared >= 20);
}

TEST_CASE("each recording is compared, or listed with the reason") {
  const char* const folder = std::getenv("TFPLUG_TEST_LOGS");
  REQUIRE(folder != nullptr);
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().stem();
    CAPTURE(name);
    CHECK((Scripts().count(name) > 0 || IsDifferent(name, "any release")));
  }
}

}  // namespace
}  // namespace tfplug::replay_test
