// SPDX-License-Identifier: Apache-2.0
//
// TensorFlow's side of tfplug run: see run_graph.py, which compiles this program on
// the user's machine and converts tensors.
//
//   run_host GRAPH OPS OUT [--plugin X.so]... [--device TYPE:0] [--optimize TYPE]
//       [--threads N] [--seed N] [--jitter N] [--guards 1] [--release 2.21]
//       [--feed NAME FILE]... [--fetch NAME]...
//
// GRAPH is a serialized GraphDef, OPS a serialized OpList, a feed's FILE a serialized
// TensorProto. Writes a TensorProto for each fetch into OUT.0, OUT.1 and so on, and
// lines about the run on standard output. Exit status: 0, or 1 after an error.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "define_ops.h"
#include "tfplug/testing.h"
#include "tfplug/testing/executor.h"
#include "tfplug/testing/functions_by_name.h"
#include "tfplug/testing/guards.h"
#include "tfplug/testing/process.h"

namespace tfplug::run {
namespace {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError("there is no file " + path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

struct Settings {
  std::vector<std::string> plugins, fetches;
  std::vector<std::pair<std::string, std::string>> feeds;
  std::string optimize;
  bool has_guards = false;
  testing::Process::Options process;
  testing::Executor::Options executor;
};

Settings ParseArguments(int argc, char** argv) {
  Settings settings;
  for (int i = 4; i + 1 < argc; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    if (option == "--plugin") settings.plugins.push_back(value);
    if (option == "--fetch") settings.fetches.push_back(value);
    if (option == "--optimize") settings.optimize = value;
    if (option == "--device") settings.executor.device = value;
    if (option == "--threads")
      settings.executor.threads = std::atoi(argv[i + 1]);
    if (option == "--seed") {
      settings.executor.seed = std::strtoull(argv[i + 1], nullptr, 10);
    }
    if (option == "--jitter") {
      settings.process.jitter_seed = std::strtoull(argv[i + 1], nullptr, 10);
    }
    if (option == "--guards") settings.has_guards = true;
    if (option == "--release") {
      settings.process.release = testing::ParseRelease(argv[i + 1]);
    }
    if (option == "--feed" && i + 2 < argc) {
      settings.feeds.emplace_back(value, argv[i + 2]);
      ++i;
    }
  }
  return settings;
}

// Runs a plug-in's optimizer on the graph, whose nodes are all placed then, as
// TensorFlow's are.
absl::StatusOr<std::string> Optimize(testing::Process& process,
                                     const Settings& settings,
                                     const std::string& graph_def) {
  TFPLUG_ASSIGN_OR_RETURN(Graph graph, Graph::Parse(graph_def));
  for (const auto& node : graph.nodes()) {
    if (!node.device().empty() || settings.executor.device.empty()) continue;
    node.SetDevice("/job:localhost/replica:0/task:0/device:" +
                   settings.executor.device);
  }
  testing::TF_GrapplerItem item;
  for (const std::string& name : settings.fetches) {
    item.fetch_nodes.push_back(name.substr(0, name.find(':')));
    item.nodes_to_preserve.push_back(item.fetch_nodes.back());
  }
  for (const auto& [name, file] : settings.feeds) {
    item.nodes_to_preserve.push_back(name.substr(0, name.find(':')));
  }
  TFPLUG_ASSIGN_OR_RETURN(
      auto outcome,
      process.Optimize(settings.optimize, graph.ToString(), item));
  for (const absl::Status& status : outcome.runs) {
    if (!status.ok() && !absl::IsAborted(status)) return status;
  }
  std::printf("the optimizer for %s %s the graph\n", settings.optimize.c_str(),
              outcome.changed ? "changed" : "did not change");
  return std::move(outcome.graph);
}

absl::Status Run(const std::string& graph_path, const std::string& ops_path,
                 const std::string& out, const Settings& settings) {
  TFPLUG_RETURN_IF_ERROR(check::DefineOps(ops_path));
  TFPLUG_ASSIGN_OR_RETURN(std::string graph_def, ReadFile(graph_path));
  // Never destroyed, as in TensorFlow.
  auto& process = *new testing::Process(settings.process);
  for (const std::string& plugin : settings.plugins) {
    TFPLUG_RETURN_IF_ERROR(process.Load(plugin));
  }
  if (!settings.optimize.empty()) {
    TFPLUG_ASSIGN_OR_RETURN(graph_def, Optimize(process, settings, graph_def));
  }
  TFPLUG_ASSIGN_OR_RETURN(Graph graph, Graph::Parse(graph_def));
  TFPLUG_RETURN_IF_ERROR(graph.Check());
  TFPLUG_ASSIGN_OR_RETURN(
      auto executor,
      testing::Executor::Create(process, graph, settings.executor));
  for (const auto& node : graph.nodes()) {
    const std::string name(node.name());
    std::printf("%s (%s): %s\n", name.c_str(), std::string(node.op()).c_str(),
                executor->PlaceOf(name).c_str());
  }
  testing::Executor::Feeds feeds;
  for (const auto& [name, file] : settings.feeds) {
    TFPLUG_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file));
    TFPLUG_ASSIGN_OR_RETURN(const Constant value, Constant::Parse(bytes));
    feeds.emplace(name, testing::ToTensor(value));
  }
  TFPLUG_ASSIGN_OR_RETURN(const auto values,
                          executor->Run(feeds, settings.fetches));
  for (size_t i = 0; i < values.size(); ++i) {
    std::ofstream(out + "." + std::to_string(i), std::ios::binary)
        << testing::SerializeTensor(values[i]);
  }
  return process.Problems();
}

}  // namespace
}  // namespace tfplug::run

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const auto settings = tfplug::run::ParseArguments(argc, argv);
  tfplug::testing::FakeOptions functions;
  functions.release = settings.process.release;
  const tfplug::testing::ScopedFakeTensorFlow tensorflow(functions);
  std::optional<tfplug::testing::ScopedGuards> guards;
  if (settings.has_guards) guards.emplace();
  const absl::Status status =
      tfplug::run::Run(argv[1], argv[2], argv[3], settings);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::fflush(nullptr);
  _exit(status.ok() ? 0 : 1);  // as in TensorFlow, destructors are not run
}
