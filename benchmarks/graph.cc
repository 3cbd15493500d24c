// SPDX-License-Identifier: Apache-2.0
// Times the jobs of graph_jobs.h. Built and run by benchmarks/graph.py.
//
//   graph pairs GRAPH ROUNDS MS
//                              each job in turns on views and on messages, and
//                              memcpy; each turn makes as many calls as take MS
//                              milliseconds, at least one; prints a line of
//                              JSON with the seconds of a call
//   graph cold SIDE JOB GRAPH  the first call of a process: seconds, and the
//                              peak of its memory in KiB; SIDE copy: a memcpy
//   graph nodes GRAPH          prints the number of nodes
//   graph count SIDE JOB GRAPH for callgrind: one call, after another one
//
// GRAPH is a file or synthetic:NODES[:shuffled]; SIDE view or messages.
#include "tfplug/graph/graph.h"

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "graph_jobs.h"
#include "processor_time.h"

namespace {

constexpr const char* kJobs[] = {"order", "fuse", "idle"};

// The lower bound for each side: copies the graph.
class CopyWorker : public Worker {
 public:
  int Run(Job, absl::string_view graph, OutputBuffer& out) override {
    std::memcpy(out.Reserve(graph.size()), graph.data(), graph.size());
    return 0;
  }
};

Job JobOf(const std::string& name) {
  for (int i = 0; i < 3; ++i) {
    if (name == kJobs[i]) return static_cast<Job>(i);
  }
  std::fprintf(stderr, "there is no job %s\n", name.c_str());
  std::exit(2);
}

// The turns of one side. The duration of the first call determines how many
// calls make a turn of at least `least` seconds.
class Turns {
 public:
  template <class F>
  void Take(double least, const F& call) {
    if (calls_ == 0) {
      calls_ = 1 + static_cast<int>(least / (Seconds(call) + 1e-7));
      return;
    }
    seconds_.push_back(Seconds([&] {
                         for (int i = 0; i < calls_; ++i) call();
                       }) /
                       calls_);
  }
  const std::vector<double>& seconds() const { return seconds_; }

 private:
  int calls_ = 0;
  std::vector<double> seconds_;
};

int Pairs(const std::string& graph, int rounds, double least) {
  const std::unique_ptr<Worker> view = MakeViewWorker();
  const std::unique_ptr<Worker> messages = MakeMessageWorker(graph);
  OutputBuffer view_out(true), messages_out(false), copy(false);
  Turns by_view[3], by_messages[3], by_copy;
  int fused[2] = {};
  for (int round = -2; round < rounds; ++round) {  // The first ones warm up.
    // The second one measures how long a call takes with allocated memory.
    if (round == -1) {
      for (Turns* turns : {by_view, by_messages}) {
        std::fill_n(turns, 3, Turns());
      }
      by_copy = Turns();
    }
    for (int i = 0; i < 3; ++i) {
      const Job job = static_cast<Job>(i);
      int found[2];
      by_view[i].Take(least,
                      [&] { found[0] = view->Run(job, graph, view_out); });
      by_messages[i].Take(
          least, [&] { found[1] = messages->Run(job, graph, messages_out); });
      if (job == Job::kFuse) std::copy_n(found, 2, fused);
      if (round < 0 && job != Job::kIdle &&
          !SameMessage(view_out.bytes(), messages_out.bytes())) {
        std::fprintf(stderr, "%s: the results differ\n", kJobs[i]);
        return 1;
      }
    }
    char* const to = copy.Reserve(graph.size());
    by_copy.Take(least, [&] {
      std::memcpy(to, graph.data(), graph.size());
      asm volatile("" ::"r"(to) : "memory");
    });
  }
  if (fused[0] != fused[1]) {
    std::fprintf(stderr, "the sides fused %d and %d\n", fused[0], fused[1]);
    return 1;
  }
  const auto print = [](const std::string& name, const Turns& turns) {
    std::printf("\"%s\": ", name.c_str());
    PrintSeconds(turns.seconds());
    std::printf(", ");
  };
  std::printf("{");
  for (int i = 0; i < 3; ++i) {
    print(std::string("view ") + kJobs[i], by_view[i]);
    print(std::string("messages ") + kJobs[i], by_messages[i]);
  }
  print("memcpy", by_copy);
  std::printf("\"bytes\": %zu, \"fused\": %d}\n", graph.size(), fused[0]);
  return 0;
}

// Reads a line of /proc/self/status, in KiB.
long StatusKib(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ":", 0) == 0) {
      return std::atol(line.c_str() + name.size() + 1);
    }
  }
  return 0;
}

}  // namespace

// The function that callgrind's --toggle-collect names.
extern "C" __attribute__((noinline)) int measured(Worker& worker, Job job,
                                                  const std::string& graph,
                                                  OutputBuffer& out) {
  return worker.Run(job, graph, out);
}

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() == 4 && args[0] == "pairs") {
    return Pairs(ReadGraph(args[1]), std::atoi(args[2].c_str()),
                 std::atof(args[3].c_str()) * 1e-3);
  }
  if (args.size() == 2 && args[0] == "nodes") {
    const std::string graph = ReadGraph(args[1]);
    std::printf("%lld\n", static_cast<long long>(
                              tfplug::Graph::Parse(graph)->num_nodes()));
    return 0;
  }
  if (args.size() != 4) return 2;
  const std::string graph = ReadGraph(args[3]);
  const Job job = JobOf(args[2]);
  const bool is_cold = args[0] == "cold";
  std::unique_ptr<Worker> worker =
      args[1] == "view"   ? MakeViewWorker()
      : args[1] == "copy" ? std::unique_ptr<Worker>(new CopyWorker)
                          : MakeMessageWorker(is_cold ? "" : graph);
  OutputBuffer out(args[1] == "view");
  // Releases the memory that reading the graph took, and resets the peak.
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
  const long before = StatusKib("VmRSS");
  if (!is_cold) worker->Run(job, graph, out);
  const double seconds = Seconds([&] { measured(*worker, job, graph, out); });
  std::printf("{\"seconds\": %.9f, \"peak_kib\": %ld}\n", seconds,
              StatusKib("VmHWM") - before);
  return 0;
}
