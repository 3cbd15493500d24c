// SPDX-License-Identifier: Apache-2.0
// Times the jobs of graph_jobs.h. See tools/benchmarks/graph.py, which builds
// and calls it.
//
//   graph pairs GRAPH ROUNDS   each job in turns on views and on messages, and
//                              memcpy; a line of JSON with the seconds
//   graph cold SIDE JOB GRAPH  the first call of a process: seconds, and the
//                              peak of its memory in KiB; SIDE copy: a memcpy
//   graph nodes GRAPH          how many it has
//   graph count SIDE JOB GRAPH what callgrind looks at: one call, after another
//
// GRAPH is a file or synthetic:NODES[:shuffled]; SIDE view or messages.
#include "tfplug/graph/graph.h"

#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "graph_jobs.h"

namespace {

constexpr const char* kJobs[] = {"order", "fuse", "idle"};

std::string ReadGraph(const std::string& name) {
  const std::string synthetic = "synthetic:";
  if (name.rfind(synthetic, 0) == 0) {
    const std::string rest = name.substr(synthetic.size());
    return SyntheticGraph(std::atoi(rest.c_str()),
                          rest.find("shuffled") != rest.npos);
  }
  std::ifstream file(name, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", name.c_str());
    std::exit(2);
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// What no side can do without: to write as many bytes as there are.
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
  std::fprintf(stderr, "no job %s\n", name.c_str());
  std::exit(2);
}

// Of the processor, for this thread: what else the machine does is not in it.
double Now() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}
template <class F>
double Seconds(const F& f) {
  const double start = Now();
  f();
  return Now() - start;
}

int Pairs(const std::string& graph, int rounds) {
  const std::unique_ptr<Worker> view = MakeViewWorker();
  const std::unique_ptr<Worker> messages = MakeMessageWorker(graph);
  OutputBuffer view_out(true), messages_out(false), copy(false);
  std::vector<double> seconds[3][2], copies;
  int fused[2] = {};
  std::string idle;
  for (int round = -1; round < rounds; ++round) {  // The first one warms up.
    for (int i = 0; i < 3; ++i) {
      const Job job = static_cast<Job>(i);
      int* const result = job == Job::kFuse ? fused : nullptr;
      int ignored[2];
      const double by_view = Seconds([&] {
        (result ? result : ignored)[0] = view->Run(job, graph, view_out);
      });
      const double by_messages = Seconds([&] {
        (result ? result : ignored)[1] =
            messages->Run(job, graph, messages_out);
      });
      if (round < 0) {
        if (job != Job::kIdle &&
            !SameMessage(view_out.bytes(), messages_out.bytes())) {
          std::fprintf(stderr, "%s: the results differ\n", kJobs[i]);
          return 1;
        }
        continue;
      }
      seconds[i][0].push_back(by_view);
      seconds[i][1].push_back(by_messages);
    }
    char* const to = copy.Reserve(graph.size());
    const double by_copy = Seconds([&] {
      std::memcpy(to, graph.data(), graph.size());
      asm volatile("" ::"r"(to) : "memory");
    });
    if (round >= 0) copies.push_back(by_copy);
  }
  if (fused[0] != fused[1]) {
    std::fprintf(stderr, "fused: %d and %d\n", fused[0], fused[1]);
    return 1;
  }
  const auto print = [](const char* name, const std::vector<double>& values) {
    std::printf("\"%s\": [", name);
    for (size_t i = 0; i < values.size(); ++i) {
      std::printf("%s%.9f", i > 0 ? ", " : "", values[i]);
    }
    std::printf("], ");
  };
  std::printf("{");
  for (int i = 0; i < 3; ++i) {
    print((std::string("view ") + kJobs[i]).c_str(), seconds[i][0]);
    print((std::string("messages ") + kJobs[i]).c_str(), seconds[i][1]);
  }
  print("memcpy", copies);
  std::printf("\"bytes\": %zu, \"fused\": %d}\n", graph.size(), fused[0]);
  return 0;
}

// A line of /proc/self/status, in KiB.
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

// What callgrind's --toggle-collect names.
extern "C" __attribute__((noinline)) int measured(Worker& worker, Job job,
                                                  const std::string& graph,
                                                  OutputBuffer& out) {
  return worker.Run(job, graph, out);
}

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() == 3 && args[0] == "pairs") {
    return Pairs(ReadGraph(args[1]), std::atoi(args[2].c_str()));
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
  // Memory that reading the graph took is given back, its peak forgotten.
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
  const long before = StatusKib("VmRSS");
  if (!is_cold) worker->Run(job, graph, out);
  const double seconds = Seconds([&] { measured(*worker, job, graph, out); });
  std::printf("{\"seconds\": %.9f, \"peak_kib\": %ld}\n", seconds,
              StatusKib("VmHWM") - before);
  return 0;
}
