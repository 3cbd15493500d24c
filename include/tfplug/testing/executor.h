// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_EXECUTOR_H_
#define TFPLUG_TESTING_EXECUTOR_H_

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tfplug/graph/graph.h"
#include "tfplug/testing/internal/placed_graph.h"
#include "tfplug/testing/process.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// Runs a graph without functions, loops and variables on the devices of a
// process: places each node, copies tensors between devices and the host, and
// runs kernels on several threads as soon as their inputs are there. The ops
// need definitions (KnownOpDefs).
//
//   auto executor = Executor::Create(process, graph, options).value();
//   auto values = executor->Run({{"x", x}}, {"y"}).value();
//
// A node is on the device that it names or on the default one, if a plug-in has
// a kernel for it there. Otherwise it is on the host: there are kernels of
// plug-ins for CPU, and Const, Identity, Reshape and the like. TensorFlow's own kernels
// are not here.
class Executor {
 public:
  struct Options {
    // The device of nodes that name none, such as "MY_DEVICE:0".
    std::string device;
    int threads = 4;
    // Selects the order of nodes that are ready at the same time.
    uint64_t seed = 1;
  };
  using Feeds = std::map<std::string, TF_Tensor>;
  using LocatedFeeds = std::map<std::string, Located>;

  // Places the nodes and constructs their kernels, in the order of the graph.
  // Errors name the node. The process must outlive the executor.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(
      Process& process, const Graph& graph, const Options& options) {
    std::unique_ptr<Executor> executor(new Executor(options));
    absl::Status status = executor->graph_.Init(process, graph, options.device);
    if (!status.ok()) return status;
    return executor;
  }
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Runs what the fetched values depend on, with these tensors in host memory
  // instead of the outputs of nodes, named "x" or "x:1". Returns the values of
  // outputs, named likewise, in host memory. Returns the first failure, after
  // the kernels that were running. One call at a time.
  absl::StatusOr<std::vector<TF_Tensor>> Run(
      const Feeds& feeds, const std::vector<std::string>& fetches);
  // Does the same with tensors on devices or in host memory. Values stay where they are.
  absl::StatusOr<std::vector<Located>> RunLocated(
      const LocatedFeeds& feeds, const std::vector<std::string>& fetches);

  // Returns where a node is, such as "MY_DEVICE:0", or "host".
  std::string PlaceOf(const std::string& node) const {
    auto source = graph_.ParseSource(node);
    return source.ok() ? graph_.nodes()[source->node]->place : "";
  }

 private:
  // One run.
  struct Step {
    std::mutex mutex;
    std::condition_variable changed;
    std::mt19937_64 random;
    std::vector<int> waiting;   // inputs and controls of each node
    std::vector<bool> is_used;  // by node
    std::vector<size_t> ready;
    size_t unfinished = 0, running = 0;
    std::map<Source, Located> values;
    std::map<Source, int> uses;  // that are left of each value
    absl::Status status;
  };

  explicit Executor(const Options& options) : options_(options) {}

  void Select(Step& step, const std::vector<Source>& fetches) const;
  void Work(Step& step);
  void Start(Step& step, size_t index);
  void Finish(Step& step, size_t index, const absl::Status& status,
              std::vector<Located> outputs);

  const Options options_;
  PlacedGraph graph_;
};

// Finds what the fetches depend on. What is fed depends on nothing.
inline void Executor::Select(Step& step,
                             const std::vector<Source>& fetches) const {
  std::vector<size_t> stack;
  const auto use = [&](const Source& source) {
    if (step.values.count(source) > 0 || step.is_used[source.node]) return;
    step.is_used[source.node] = true;
    stack.push_back(source.node);
  };
  for (const Source& fetch : fetches) {
    ++step.uses[fetch];
    use(fetch);
  }
  while (!stack.empty()) {
    const size_t index = stack.back();
    stack.pop_back();
    for (const Source& from : graph_.nodes()[index]->inputs) use(from);
    for (const size_t from : graph_.nodes()[index]->controls) {
      // As in TensorFlow, a placeholder that is fed has no control outputs.
      const bool is_fed = graph_.nodes()[from]->op == "Placeholder" &&
                          step.values.count({from, 0}) > 0;
      if (!is_fed) use({from, -1});
    }
  }
  for (size_t i = 0; i < graph_.nodes().size(); ++i) {
    if (!step.is_used[i]) continue;
    ++step.unfinished;
    for (const Source& from : graph_.nodes()[i]->inputs) {
      ++step.uses[from];
      if (step.is_used[from.node]) ++step.waiting[i];
    }
    for (const size_t from : graph_.nodes()[i]->controls) {
      if (step.is_used[from]) ++step.waiting[i];
    }
    if (step.waiting[i] == 0) step.ready.push_back(i);
  }
}

inline absl::StatusOr<std::vector<TF_Tensor>> Executor::Run(
    const Feeds& feeds, const std::vector<std::string>& fetches) {
  LocatedFeeds located;
  for (const auto& [name, tensor] : feeds) located[name] = {tensor, nullptr};
  auto values = RunLocated(located, fetches);
  if (!values.ok()) return values.status();
  std::vector<TF_Tensor> results;
  for (const Located& value : *values) {
    auto result = MoveTo(value, nullptr);
    if (!result.ok()) return result.status();
    results.push_back(*std::move(result));
  }
  return results;
}

inline absl::StatusOr<std::vector<Located>> Executor::RunLocated(
    const LocatedFeeds& feeds, const std::vector<std::string>& fetches) {
  Step step;
  step.random.seed(options_.seed);
  step.waiting.resize(graph_.nodes().size());
  step.is_used.resize(graph_.nodes().size());
  for (const auto& [name, value] : feeds) {
    auto source = graph_.ParseSource(name);
    if (!source.ok()) return source.status();
    step.values.insert_or_assign(*source, value);
  }
  std::vector<Source> sources;
  for (const std::string& name : fetches) {
    auto source = graph_.ParseSource(name);
    if (!source.ok()) return source.status();
    sources.push_back(*source);
  }
  Select(step, sources);
  std::vector<std::thread> threads;
  for (int i = 0; i < std::max(options_.threads, 1); ++i) {
    threads.emplace_back([&] { Work(step); });
  }
  for (std::thread& thread : threads) thread.join();
  if (!step.status.ok()) return step.status;
  std::vector<Located> results;
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto found = step.values.find(sources[i]);
    if (found == step.values.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", fetches[i], "' is not an output of the node"));
    }
    results.push_back(found->second);
  }
  return results;
}

inline void Executor::Work(Step& step) {
  std::unique_lock<std::mutex> lock(step.mutex);
  while (true) {
    step.changed.wait(lock, [&] {
      const bool is_over = step.unfinished == 0 || !step.status.ok() ||
                           (step.ready.empty() && step.running == 0);
      return !step.ready.empty() || (is_over && step.running == 0);
    });
    if (step.running == 0 && step.ready.empty() && step.unfinished > 0) {
      step.status.Update(
          absl::InvalidArgumentError("the graph has a loop: flat graphs only"));
    }
    if (!step.status.ok() || step.unfinished == 0) {
      step.ready.clear();
      if (step.running == 0) break;
      continue;
    }
    if (step.ready.empty()) continue;
    std::swap(step.ready[step.random() % step.ready.size()], step.ready.back());
    const size_t index = step.ready.back();
    step.ready.pop_back();
    ++step.running;
    lock.unlock();
    HostDevice* const device = graph_.nodes()[index]->device;
    if (device != nullptr) device->jitter().Pause();
    Start(step, index);
    lock.lock();
  }
  step.changed.notify_all();
}

// Runs a node on the calling thread; an asynchronous kernel may finish on
// another.
inline void Executor::Start(Step& step, size_t index) {
  PlacedNode& node = *graph_.nodes()[index];
  std::vector<Located> inputs;
  absl::Status status;
  for (size_t i = 0; i < node.inputs.size() && status.ok(); ++i) {
    Located value;
    {
      std::lock_guard<std::mutex> lock(step.mutex);
      const auto found = step.values.find(node.inputs[i]);
      if (found == step.values.end()) {
        status = absl::InvalidArgumentError(absl::StrCat(
            "node '", node.name, "': input ", i, " is not an output of '",
            graph_.nodes()[node.inputs[i].node]->name, "'"));
        break;
      }
      // The last user may forward the value.
      if (--step.uses[node.inputs[i]] > 0) {
        value = found->second;
      } else {
        value = std::move(found->second);
        step.values.erase(found);
      }
    }
    if (node.kernel == nullptr) {
      inputs.push_back(std::move(value));
      continue;
    }
    HostDevice* const to = node.is_input_on_host(i) ? nullptr : node.device;
    auto moved = MoveTo(value, to);
    status = moved.status();
    if (moved.ok()) inputs.push_back({*std::move(moved), to});
  }
  if (!status.ok()) return Finish(step, index, status, {});
  if (node.kernel == nullptr) {
    auto outputs = RunWithoutKernel(node, std::move(inputs));
    if (!outputs.ok()) return Finish(step, index, outputs.status(), {});
    return Finish(step, index, absl::OkStatus(), *std::move(outputs));
  }
  RunKernel(node, std::move(inputs),
            [this, &step, index](const absl::Status& failure,
                                 std::vector<Located> outputs) {
              Finish(step, index, failure, std::move(outputs));
            });
}

inline void Executor::Finish(Step& step, size_t index,
                             const absl::Status& status,
                             std::vector<Located> outputs) {
  std::lock_guard<std::mutex> lock(step.mutex);
  step.status.Update(status);
  for (size_t port = 0; port < outputs.size(); ++port) {
    const Source source{index, static_cast<int>(port)};
    // A value that was fed stays.
    if (step.uses.count(source) > 0) {
      step.values.emplace(source, std::move(outputs[port]));
    }
  }
  --step.running;
  --step.unfinished;
  for (const size_t next : graph_.nodes()[index]->successors) {
    if (step.is_used[next] && --step.waiting[next] == 0) {
      step.ready.push_back(next);
    }
  }
  step.changed.notify_all();
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_EXECUTOR_H_
