// SPDX-License-Identifier: Apache-2.0
// Times the jobs of graph_opponents/worker.h. Built and run by
// benchmarks/graph.py.
//
//   graph pairs GRAPH ROUNDS MS [NAME=LIBRARY]...
//                              each job in turns on views, on messages, on the
//                              libraries of graph_opponents/, and memcpy; each
//                              turn makes as many calls as take MS
//                              milliseconds, at least one; prints a line of
//                              JSON with the seconds of a call
//   graph cold SIDE JOB GRAPH  the first call of a process: seconds, and the
//                              peak of its memory in KiB; SIDE copy: a memcpy
//   graph nodes GRAPH          prints the number of nodes
//   graph count SIDE JOB GRAPH for callgrind: one call, after another one
//
// GRAPH is a file or synthetic:NODES[:shuffled]; SIDE view, messages or a
// library.
#include "tfplug/graph/graph.h"

#include <dlfcn.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph_jobs.h"
#include "processor_time.h"

namespace {

constexpr const char* kJobs[] = {"order", "fuse", "idle"};

// The lower bound for each side: copies the graph.
class CopyWorker : public Worker {
 public:
  int Run(Job, std::string_view graph, Output& out) override {
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

// Loads a library of graph_opponents/. Its symbols, such as those of another
// protobuf, stay its own.
std::unique_ptr<Worker> LoadWorker(const std::string& path,
                                   std::string_view graph) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const make =
      library == nullptr ? nullptr : dlsym(library, "MakeWorker");
  if (make == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(2);
  }
  return std::unique_ptr<Worker>(
      reinterpret_cast<decltype(&MakeWorker)>(make)(graph));
}

// One implementation, and the times of its calls for each job.
struct Side {
  std::string name;
  std::unique_ptr<Worker> worker;
  std::unique_ptr<OutputBuffer> out;
  Turns turns[3];
  int found[3] = {};
};

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

// The number of bytes that fusing with views touches: the graph, and the memory
// that the first call takes.
size_t TouchedBytes(const std::string& graph) {
  malloc_trim(0);
  const long before = StatusKib("VmRSS");
  const std::unique_ptr<Worker> worker = MakeViewWorker();
  OutputBuffer out(true);
  worker->Run(Job::kFuse, graph, out);
  return graph.size() + static_cast<size_t>(StatusKib("VmRSS") - before) * 1024;
}

int Pairs(const std::string& graph, int rounds, double least,
          const std::vector<std::string>& libraries) {
  std::vector<Side> sides(2 + libraries.size());
  sides[0] = {"view", MakeViewWorker(), std::make_unique<OutputBuffer>(true)};
  sides[1] = {"messages", MakeMessageWorker(graph)};
  for (size_t i = 0; i < libraries.size(); ++i) {
    const size_t equal = libraries[i].find('=');
    sides[2 + i] = {libraries[i].substr(0, equal),
                    LoadWorker(libraries[i].substr(equal + 1), graph)};
  }
  for (size_t i = 1; i < sides.size(); ++i) {
    sides[i].out = std::make_unique<OutputBuffer>(false);
  }
  OutputBuffer copy(false);
  Turns by_copy, by_touching;
  const size_t touched = TouchedBytes(graph);
  const std::vector<char> from(touched / 2, 1);
  std::vector<char> to(touched / 2, 1);
  for (int round = -2; round < rounds; ++round) {  // The first ones warm up.
    // The second one measures how long a call takes with allocated memory.
    if (round == -1) {
      for (Side& side : sides) std::fill_n(side.turns, 3, Turns());
      by_copy = by_touching = Turns();
    }
    for (int i = 0; i < 3; ++i) {
      const Job job = static_cast<Job>(i);
      for (Side& side : sides) {
        side.turns[i].Take(least, [&] {
          side.found[i] = side.worker->Run(job, graph, *side.out);
        });
        if (side.found[i] == sides[0].found[i] &&
            (round >= 0 || job == Job::kIdle ||
             SameMessage(side.out->bytes(), sides[0].out->bytes()))) {
          continue;
        }
        std::fprintf(stderr, "%s: %s differs from the view: %d and %d fused\n",
                     kJobs[i], side.name.c_str(), side.found[i],
                     sides[0].found[i]);
        return 1;
      }
    }
    const auto copy_all = [](char* to, const char* from, size_t size) {
      std::memcpy(to, from, size);
      asm volatile("" ::"r"(to) : "memory");
    };
    by_copy.Take(least, [&] {
      copy_all(copy.Reserve(graph.size()), graph.data(), graph.size());
    });
    by_touching.Take(least,
                     [&] { copy_all(to.data(), from.data(), to.size()); });
  }
  const auto print = [](const std::string& name, const Turns& turns) {
    std::printf("\"%s\": ", name.c_str());
    PrintSeconds(turns.seconds());
    std::printf(", ");
  };
  std::printf("{");
  for (const Side& side : sides) {
    for (int i = 0; i < 3; ++i) {
      print(side.name + " " + kJobs[i], side.turns[i]);
    }
  }
  print("memcpy", by_copy);
  print("touch", by_touching);
  std::printf("\"bytes\": %zu, \"touched\": %zu, \"fused\": %d}\n",
              graph.size(), touched,
              sides[0].found[static_cast<int>(Job::kFuse)]);
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
  if (args.size() >= 4 && args[0] == "pairs") {
    return Pairs(ReadGraph(args[1]), std::atoi(args[2].c_str()),
                 std::atof(args[3].c_str()) * 1e-3,
                 std::vector<std::string>(args.begin() + 4, args.end()));
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
  const std::string_view known = is_cold ? "" : std::string_view(graph);
  std::unique_ptr<Worker> worker =
      args[1] == "view"       ? MakeViewWorker()
      : args[1] == "copy"     ? std::unique_ptr<Worker>(new CopyWorker)
      : args[1] == "messages" ? MakeMessageWorker(known)
                              : LoadWorker(args[1], known);
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
