// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/plugin.h>
#include <tfplug/testing.h>
#include <tfplug/testing/executor.h>
#include <tfplug/testing/graph_text.h>
#include <tfplug/testing/guards.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "op_defs.h"

// A fault in the hooks of a device and of a kernel that a step calls, and in every
// call of TensorFlow's functions, at each of the first 20 calls: the process lives,
// the step fails or computes what it must, the next step computes what it must,
// and nothing leaks.
extern "C" void TF_InitKernel();

namespace tfplug::host_faults_test {
namespace {

enum class Kind { kStatus, kException, kBadAlloc };
constexpr Kind kKinds[] = {
    Kind::kStatus,
#if defined(__cpp_exceptions)
    Kind::kException,
    Kind::kBadAlloc,
#endif
};

// Makes one call of a hook fail.
class Plan {
 public:
  static Plan& Get() {
    static Plan* const plan = new Plan;
    return *plan;
  }
  // Fails call `call` of `hook` from now on; 0 fails none.
  void Set(const std::string& hook, int call, Kind kind) {
    std::lock_guard<std::mutex> lock(mutex_);
    hook_ = hook;
    call_ = call;
    kind_ = kind;
    calls_.clear();
  }
  absl::Status Reach(const char* hook) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (++calls_[hook] != call_ || hook != hook_) return absl::OkStatus();
    const Kind kind = kind_;
    lock.unlock();
#if defined(__cpp_exceptions)
    if (kind == Kind::kException) throw std::runtime_error("injected");
    if (kind == Kind::kBadAlloc) throw std::bad_alloc();
#endif
    return kind == Kind::kStatus ? absl::DataLossError("injected")
                                 : absl::OkStatus();
  }
  std::map<std::string, int> calls() {
    std::lock_guard<std::mutex> lock(mutex_);
    return calls_;
  }

 private:
  std::mutex mutex_;
  std::string hook_;
  int call_ = 0;
  Kind kind_ = Kind::kStatus;
  std::map<std::string, int> calls_;
};
absl::Status Reach(const char* hook) { return Plan::Get().Reach(hook); }

std::atomic<int> live{0};  // allocations
struct Live {              // and objects
  Live() { ++live; }
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;
  ~Live() { --live; }
};

class Event : public tfplug::Event {
 public:
  absl::Status Init() override { return Reach("Event::Init"); }
  absl::StatusOr<EventStatus> Poll() override {
    TFPLUG_RETURN_IF_ERROR(Reach("Poll"));
    return EventStatus::kComplete;
  }
  absl::Status BlockHost() override { return Reach("Event::BlockHost"); }

 private:
  const Live live_;
};

class Stream : public tfplug::Stream<Stream, Event> {
 public:
  absl::Status Init() override { return Reach("Stream::Init"); }
  absl::Status GetStatus() override { return Reach("GetStatus"); }
  absl::Status RecordEvent(Event&) override { return Reach("RecordEvent"); }
  absl::Status WaitForEvent(Event&) override { return Reach("WaitForEvent"); }
  absl::Status WaitForStream(Stream&) override {
    return Reach("WaitForStream");
  }
  absl::Status CopyHostToDevice(DeviceMemory dst, const void* src,
                                uint64_t size) override {
    return Copy("CopyHostToDevice", dst.opaque(), src, size);
  }
  absl::Status CopyDeviceToHost(void* dst, DeviceMemory src,
                                uint64_t size) override {
    return Copy("CopyDeviceToHost", dst, src.opaque(), size);
  }
  absl::Status CopyDeviceToDevice(DeviceMemory dst, DeviceMemory src,
                                  uint64_t size) override {
    return Copy("CopyDeviceToDevice", dst.opaque(), src.opaque(), size);
  }
  absl::Status Memset(DeviceMemory, BytePattern, uint64_t) override {
    return Reach("Memset");
  }
  absl::Status RunOnHost(HostTask task) override { return task.Run(); }

 private:
  static absl::Status Copy(const char* hook, void* dst, const void* src,
                           uint64_t size) {
    TFPLUG_RETURN_IF_ERROR(Reach(hook));
    std::memmove(dst, src, size);
    return absl::OkStatus();
  }
  const Live live_;
};

class Memory : public Allocator {
 public:
  absl::StatusOr<DeviceMemory> Allocate(uint64_t size, int64_t) override {
    TFPLUG_RETURN_IF_ERROR(Reach("Allocate"));
    ++live;
    return DeviceMemory(std::aligned_alloc(256, (size + 255) / 256 * 256),
                        size);
  }
  absl::Status Deallocate(DeviceMemory memory) override {
    --live;
    std::free(memory.opaque());
    return Reach("Deallocate");  // only logged: TensorFlow cannot be told
  }
  absl::StatusOr<void*> AllocateHost(uint64_t size) override {
    TFPLUG_RETURN_IF_ERROR(Reach("AllocateHost"));
    ++live;
    return std::aligned_alloc(256, (size + 255) / 256 * 256);
  }
  absl::Status DeallocateHost(void* memory) override {
    --live;
    std::free(memory);
    return Reach("DeallocateHost");
  }
  absl::StatusOr<MemoryUsage> Usage() override {
    TFPLUG_RETURN_IF_ERROR(Reach("Usage"));
    return MemoryUsage{1 << 20, 1 << 20};
  }
};

class Device : public tfplug::Device<Stream, Memory> {
 public:
  absl::Status Init() override { return Reach("Device::Init"); }
  absl::Status SynchronizeAllActivity() override {
    return Reach("SynchronizeAllActivity");
  }

 private:
  const Live live_;
};

class Platform : public tfplug::Platform<Device> {
 public:
  static constexpr char kName[] = "FAULTY", kType[] = "FAULTY";
  absl::StatusOr<int> DeviceCount() override {
    TFPLUG_RETURN_IF_ERROR(Reach("DeviceCount"));
    return 2;
  }
};
TFPLUG_REGISTER_DEVICE(Platform);

std::atomic<int64_t> extra_write{0};  // where the kernel must not write

class Double : public Kernel {
 public:
  absl::Status Init(KernelConstruction&) override {
    return Reach("Kernel::Init");
  }
  absl::Status Compute(KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
    TFPLUG_RETURN_IF_ERROR(Reach("Compute"));
    TFPLUG_ASSIGN_OR_RETURN(Tensor temp,
                            context.AllocateTemp(x.dtype(), x.shape()));
    TFPLUG_ASSIGN_OR_RETURN(Tensor y, context.AllocateOutput(0, x.shape()));
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      const auto at = static_cast<size_t>(i);
      temp.flat<float>()[at] = x.flat<float>()[at];
      y.flat<float>()[at] = 2 * temp.flat<float>()[at];
    }
    if (extra_write != 0) y.flat<float>().data()[extra_write] = 1;
    return absl::OkStatus();
  }

 private:
  const Live live_;
};
TFPLUG_REGISTER_KERNEL(Double, KernelDef("Double"));

constexpr char kGraph[] = R"(
    x = Placeholder()
    one: float[64] = 1
    a = Double(x)
    b = Double(a, ^one) @/device:FAULTY:1
    c = Double(b)
    d = Double(one)
    e = Double(d) @/device:FAULTY:1)";

// A process with the device, from its start to its end.
class Run {
 public:
  explicit Run(testing::Release release) : process_(Options(release)) {
    status_ = process_.Load({&SE_InitPlugin, &TF_InitKernel, nullptr, nullptr});
  }
  // Creates the executor, if the last try failed, and runs the graph.
  absl::Status Step() {
    if (!status_.ok()) return status_;
    if (executor_ == nullptr) {
      Graph graph;
      testing::GraphTextOptions text;
      text.device = "FAULTY";
      TFPLUG_RETURN_IF_ERROR(testing::AddNodes(graph, kGraph, text).status());
      testing::Executor::Options options;
      options.threads = 2;
      TFPLUG_ASSIGN_OR_RETURN(
          executor_, testing::Executor::Create(process_, graph, options));
    }
    const std::vector<float> in(64, 3);
    TFPLUG_ASSIGN_OR_RETURN(
        const auto out,
        executor_->Run({{"x", testing::MakeTensor<float>({64}, in)}},
                       {"c", "e"}));
    for (size_t i = 0; i < 2; ++i) {
      const auto value = testing::ReadTensor<float>(nullptr, out[i]).value();
      CHECK(value.elements == std::vector<float>(64, i == 0 ? 24 : 4));
    }
    return absl::OkStatus();
  }
  absl::Status Problems() const { return process_.Problems(); }
  testing::HostDevice& device() { return *process_.Device("FAULTY").value(); }

 private:
  static testing::Process::Options Options(testing::Release release) {
    testing::Process::Options options;
    options.release = release;
    return options;
  }
  testing::Process process_;
  std::unique_ptr<testing::Executor> executor_;
  absl::Status status_;
};

std::map<std::string, int> reached;  // calls of each hook in the last run

// Runs three steps with a fault and one without. Returns whether all three
// succeeded.
bool RunWithFault(testing::Release release, const std::string& hook, int call,
                  Kind kind) {
  bool all_ok = true;
  const testing::LeakCheck leaks;
  {
    testing::FakeOptions functions;
    functions.release = release;
    const testing::ScopedFakeTensorFlow tensorflow(functions);
    Run run(release);
    Plan::Get().Set(hook, call, kind);
    for (int step = 0; step < 3; ++step) {
      const absl::Status status = run.Step();
      all_ok = all_ok && status.ok();
    }
    reached = Plan::Get().calls();
    Plan::Get().Set("", 0, kind);
    // Without devices, TensorFlow's process is of no use; it has to start again.
    const absl::Status next = run.Step();
    const bool has_no_devices =
        hook == "Device::Init" || hook == "Stream::Init" ||
        hook == "Event::Init" || hook == "Usage" || hook == "DeviceCount";
    CHECK_MESSAGE((next.ok() || has_no_devices), next.ToString());
    const absl::Status problems = run.Problems();
    CHECK_MESSAGE(problems.ok(), problems.ToString());
  }
  CHECK(live == 0);
  const absl::Status leaked = leaks.Check();
  CHECK_MESSAGE(leaked.ok(), leaked.ToString());
  return all_ok;
}

TEST_CASE("a fault in each hook at each call") {
  DefineOp("Double", {"x: float"}, {"y: float"}, {});
  for (const testing::Release release :
       {testing::Release{2, 12}, testing::Release{2, 21},
        testing::Release{2, 22}}) {
    CAPTURE(int{release.minor});
    CHECK(RunWithFault(release, "", 0, Kind::kStatus));
    const std::map<std::string, int> calls = reached;
    int failed = 0;
    std::string unreached;
    for (const std::string hook : {"Event::Init",
                                   "Poll",
                                   "Event::BlockHost",
                                   "Stream::Init",
                                   "GetStatus",
                                   "RecordEvent",
                                   "WaitForEvent",
                                   "WaitForStream",
                                   "CopyHostToDevice",
                                   "CopyDeviceToHost",
                                   "CopyDeviceToDevice",
                                   "Allocate",
                                   "Deallocate",
                                   "AllocateHost",
                                   "DeallocateHost",
                                   "Usage",
                                   "Device::Init",
                                   "SynchronizeAllActivity",
                                   "DeviceCount",
                                   "Kernel::Init",
                                   "Compute"}) {
      CAPTURE(hook);
      if (calls.count(hook) == 0) {
        unreached += hook + " ";
        continue;
      }
      const int most = calls.at(hook);
      for (int call = 1; call <= std::min(most + 1, 20); ++call) {
        CAPTURE(call);
        for (const Kind kind : kKinds) {
          if (!RunWithFault(release, hook, call, kind)) ++failed;
        }
      }
    }
    CHECK(failed > 50);
    // A step calls none of these, or only when its objects are destroyed: see
    // the next case.
    CHECK(unreached ==
          "Event::BlockHost GetStatus WaitForEvent Deallocate DeallocateHost "
          "SynchronizeAllActivity ");
  }
}

// Calls 20 times what stock Python does not, and returns how many calls failed.
int CallHooks(testing::HostDevice& host, const std::string& hook) {
  testing::FakeDevice& device = host.device();
  testing::FakeStream& stream = device.compute();
  const auto event = device.CreateEvent().value();
  int failed = 0;
  for (int i = 0; i < 20; ++i) {
    absl::Status status;
    if (hook == "Event::BlockHost") {
      status = stream.RecordEvent(*event);
      status.Update(event->BlockHost());
    } else if (hook == "GetStatus") {
      status = stream.GetStatus();
    } else if (hook == "WaitForEvent") {
      status = stream.RecordEvent(*event);
      status.Update(stream.WaitForEvent(*event));
    } else if (hook == "SynchronizeAllActivity") {
      status = device.SynchronizeAllActivity();
    } else if (hook == "Deallocate") {  // its failure is only logged
      device.Deallocate(device.Allocate(64));
    } else {
      device.DeallocateHost(device.AllocateHost(64));
    }
    if (!status.ok()) ++failed;
  }
  return failed;
}

TEST_CASE("a fault in each hook that a step does not reach, at each call") {
  DefineOp("Double", {"x: float"}, {"y: float"}, {});
  for (const std::string hook :
       {"Event::BlockHost", "GetStatus", "WaitForEvent", "Deallocate",
        "DeallocateHost", "SynchronizeAllActivity"}) {
    CAPTURE(hook);
    const bool is_reported = hook.compare(0, 10, "Deallocate") != 0;
    for (int call = 1; call <= 20; ++call) {
      CAPTURE(call);
      for (const Kind kind : kKinds) {
        const testing::LeakCheck leaks;
        {
          constexpr testing::Release kWithLog = {2, 18};  // has TF_Log
          const testing::ScopedFakeTensorFlow tensorflow({kWithLog, {}});
          Run run(kWithLog);
          REQUIRE(run.Step() == absl::OkStatus());
          const testing::LogCapture log;
          Plan::Get().Set(hook, call, kind);
          CHECK(CallHooks(run.device(), hook) == (is_reported ? 1 : 0));
          CHECK(Plan::Get().calls()[hook] == 20);
          Plan::Get().Set("", 0, kind);
          if (!is_reported) CHECK(!log.lines().empty());
          const absl::Status next = run.Step();
          CHECK_MESSAGE(next.ok(), next.ToString());
          CHECK(run.Problems() == absl::OkStatus());
        }
        CHECK(live == 0);
        CHECK(leaks.Check() == absl::OkStatus());
      }
    }
  }
}

TEST_CASE("a kernel that writes beside its output is found by guards") {
  DefineOp("Double", {"x: float"}, {"y: float"}, {});
  for (const int64_t at : {-1, 0, 64}) {
    CAPTURE(at);
    const testing::ScopedFakeTensorFlow tensorflow;
    const testing::ScopedGuards guards;
    Run run(capi::kNewestRelease);
    extra_write = at;
    CHECK(run.Step() == absl::OkStatus());
    extra_write = 0;
    const absl::Status problems = run.Problems();
    CHECK(problems.message() ==
          (at == 0 ? "" : "the plug-in wrote beside a tensor on the device"));
  }
}

// ---- Types and conflicts ------------------------------------------------------

const char* type_of_platform = "";
void InitWithType(capi::SE_PlatformRegistrationParams* params,
                  capi::TF_Status* status) {
  SE_InitPlugin(params, status);
  params->platform->type = type_of_platform;
}

TEST_CASE("a plug-in of the type GPU or CPU replaces TensorFlow's devices") {
  for (const bool has_gpu : {false, true}) {
    for (const char* const type : {"GPU", "CPU", "FAULTY"}) {
      CAPTURE(type);
      const testing::ScopedFakeTensorFlow tensorflow;
      testing::Process::Options options;
      options.has_gpu = has_gpu;
      testing::Process process(options);
      type_of_platform = type;
      REQUIRE(process.Load({&InitWithType, nullptr, nullptr, nullptr}).ok());
      CHECK(process.Device(type, 1).ok());
      const bool replaces = *type == 'C' || (*type == 'G' && has_gpu);
      REQUIRE(process.notes().size() == (replaces ? 1 : 0));
      if (!replaces) continue;
      CHECK(process.notes()[0].find(std::string("replaces TensorFlow's own ") +
                                    type) != std::string::npos);
    }
  }
}

TEST_CASE("a fault in each of TensorFlow's functions") {
  DefineOp("Double", {"x: float"}, {"y: float"}, {});
  int faults = 0;
  for (int64_t call = 1; call <= 60; ++call) {
    CAPTURE(call);
    const testing::LeakCheck leaks;
    {
      const testing::ScopedFakeTensorFlow tensorflow;
      Run run(capi::kNewestRelease);
      {
        const testing::Fault fault(call);
        const absl::Status status = run.Step();
        if (!fault.failed().empty()) {
          CHECK(!status.ok());
          ++faults;
        }
      }
      const absl::Status next = run.Step();
      CHECK_MESSAGE(next.ok(), next.ToString());
    }
    CHECK(live == 0);
    CHECK(leaks.Check() == absl::OkStatus());
  }
  CHECK(faults > 0);
}

}  // namespace
}  // namespace tfplug::host_faults_test
