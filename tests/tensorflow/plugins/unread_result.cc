// SPDX-License-Identifier: Apache-2.0
#include <tfplug/abi/tp_optimizer.h>
#include <tfplug/graph_pass.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

// An optimizer for the CPU that shows how TensorFlow uses its result.
// $UNREAD_RESULT selects the status, "OK" or "ABORTED", and the contents of the
// buffer, "garbage" or "edited" (the graph with Cos instead of Sin and 32 MiB
// of attributes). When TensorFlow releases the buffer, the time since the call
// is printed to standard error.
namespace unread_result {

namespace capi = tfplug::capi;
using Clock = std::chrono::steady_clock;

Clock::time_point returned;

std::string Edited(const capi::TF_Buffer& bytes) {
  auto graph = tfplug::Graph::Parse(
      absl::string_view(static_cast<const char*>(bytes.data), bytes.length));
  if (!graph.ok() || !graph->has_op("Sin")) return "";
  for (tfplug::Node node : graph->nodes("Sin")) {
    node.SetOp("Cos");
    node.SetAttr("_large", std::string(32 << 20, 'x'));
  }
  return graph->ToString();
}

void Optimize(void*, const capi::TF_Buffer* graph, const capi::TF_GrapplerItem*,
              capi::TF_Buffer* result, capi::TF_Status* status) {
  const std::string mode = std::getenv("UNREAD_RESULT");
  const bool garbage = mode.find("garbage") != mode.npos;
  static std::string bytes;
  bytes = garbage ? "\xff no GraphDef" : Edited(*graph);
  const bool ok = mode.find("OK") == 0 && !bytes.empty();
  tfplug::internal::tensorflow.TF_SetStatus(
      status, ok ? capi::TF_OK : capi::TF_ABORTED, "");
  if (bytes.empty()) return;
  result->data = bytes.data();
  result->length = bytes.size();
  result->data_deallocator = [](void*, size_t) {
    const std::chrono::duration<double, std::milli> later =
        Clock::now() - returned;
    std::fprintf(stderr, "released after %.3f ms\n", later.count());
  };
  returned = Clock::now();
}

struct NoPasses : tfplug::GraphOptimizer<> {
  static constexpr char kDeviceType[] = "CPU";
};

}  // namespace unread_result

extern "C" __attribute__((visibility("default"))) void TF_InitGraph(
    tfplug::capi::TP_OptimizerRegistrationParams* params,
    tfplug::capi::TF_Status* status) {
  tfplug::passes_internal::OptimizerRegistration<
      unread_result::NoPasses>::InitGraph(params, status);
  params->optimizer->optimize_func = &unread_result::Optimize;
}
