// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/async_kernel.h>
#include <tfplug/plugin.h>
#include <tfplug/testing.h>
#include <tfplug/testing/executor.h>
#include <tfplug/testing/graph_text.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "float_tensors.h"
#include "op_defs.h"

// Asynchronous kernels, in host memory, that finish on threads of their own.
extern "C" void TF_InitKernel();

namespace tfplug::executor_async_test {
namespace {

using testing::Executor;

// Lets nobody pass until `count` runs have arrived.
class Barrier {
 public:
  void Reset(int count) {
    std::lock_guard<std::mutex> lock(mutex_);
    missing_ = count;
  }
  void Pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    --missing_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return missing_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_ = 0;
};
Barrier barrier;
std::mutex threads_mutex;
std::set<std::thread::id> compute_threads;

// Adds 1 on another thread, once enough runs have arrived.
class Later : public AsyncKernel {
 public:
  absl::Status Init(KernelConstruction& node) override {
    TFPLUG_ASSIGN_OR_RETURN(fails_, node.GetAttr<bool>("fails"));
    return absl::OkStatus();
  }
  absl::Status ComputeAsync(AsyncRun& run) override {
    {
      std::lock_guard<std::mutex> lock(threads_mutex);
      compute_threads.insert(std::this_thread::get_id());
    }
    std::thread([run = std::move(run), fails = fails_]() mutable {
      barrier.Pass();
      run.Finish(fails ? absl::DataLossError("later") : Add(run.context()));
    }).detach();
    return absl::OkStatus();
  }

 private:
  static absl::Status Add(KernelContext& context) {
    TFPLUG_ASSIGN_OR_RETURN(const Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(Tensor y, context.AllocateOutput(0, x.shape()));
    for (size_t i = 0; i < x.flat<float>().size(); ++i) {
      y.flat<float>()[i] = x.flat<float>()[i] + 1;
    }
    return absl::OkStatus();
  }
  bool fails_ = false;
};
TFPLUG_REGISTER_KERNEL(Later, KernelDef("Later").Device("CPU"));

// Runs a layer of nodes, each of which waits for the others, and then one that
// takes the first and is after all of them.
absl::StatusOr<std::vector<float>> RunLayer(testing::Release release, int width,
                                            int threads, int failing = -1) {
  DefineOp("Later", {"x: float"}, {"y: float"}, {"fails: bool"});
  testing::FakeOptions functions;
  functions.release = release;
  const testing::ScopedFakeTensorFlow tensorflow(functions);
  testing::Process process;
  TFPLUG_RETURN_IF_ERROR(
      process.Load({nullptr, &TF_InitKernel, nullptr, nullptr}));
  std::string text = "x = Placeholder()\n", controls;
  for (int i = 0; i < width; ++i) {
    const std::string n = std::to_string(i);
    text += "n" + n +
            " = Later(x) {fails=" + (i == failing ? "true" : "false") + "}\n";
    controls += ", ^n" + n;
  }
  text += "last = Later(n0" + controls + ") {fails=false}";
  Graph graph;
  TFPLUG_RETURN_IF_ERROR(testing::AddNodes(graph, text).status());
  Executor::Options options;
  options.device = "CPU";
  options.threads = threads;
  TFPLUG_ASSIGN_OR_RETURN(auto executor,
                          Executor::Create(process, graph, options));
  barrier.Reset(width);
  compute_threads.clear();
  TFPLUG_ASSIGN_OR_RETURN(
      const auto out, executor->Run({{"x", Floats({2}, {1, 2})}}, {"last"}));
  return Elements(out[0]);
}

TEST_CASE(
    "kernels that wait for each other run on fewer threads than they are") {
  const std::vector<float> expected = {3, 4};
  CHECK(RunLayer(capi::kNewestRelease, 8, 1).value() == expected);
  CHECK(compute_threads.size() == 1);
  CHECK(RunLayer(capi::kNewestRelease, 8, 3).value() == expected);
  CHECK(RunLayer({2, 13}, 8, 2).value() == expected);
}

TEST_CASE("where the C API has no asynchronous kernels, each takes a thread") {
  CHECK(RunLayer({2, 12}, 4, 4).value() == std::vector<float>{3, 4});
  CHECK(compute_threads.size() == 4);
}

TEST_CASE("a failure on another thread ends the run") {
  for (const int threads : {1, 4}) {
    const auto failed = RunLayer(capi::kNewestRelease, 8, threads, 5);
    CHECK(failed.status() ==
          absl::DataLossError("op 'Later', node 'n5': later"));
  }
}

}  // namespace
}  // namespace tfplug::executor_async_test
