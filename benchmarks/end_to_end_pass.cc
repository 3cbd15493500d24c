// SPDX-License-Identifier: Apache-2.0
// An optimizer for the CPU that records TensorFlow's calls. Built by
// end_to_end.py, which reads the file TFPLUG_TIMES: a line for each call, "call
// NANOSECONDS BYTES_IN BYTES_OUT", and after it, when TensorFlow has parsed the
// result, "parse NANOSECONDS". If TFPLUG_MARK is 1, its pass sets an attribute
// of each convolution and product; otherwise it finds nothing to do.
#include <tfplug/graph_pass.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

using Clock = std::chrono::steady_clock;

class Mark : public tfplug::GraphPass {
 public:
  absl::Status Run(tfplug::Graph& graph,
                   const tfplug::PassContext& /*context*/) override {
    const char* const mark = std::getenv("TFPLUG_MARK");
    if (mark == nullptr || *mark != '1') {
      graph.has_op("NoSuchOp");
      return absl::OkStatus();
    }
    for (const char* op :
         {"Conv2D", "_FusedConv2D", "MatMul", "_FusedMatMul"}) {
      for (tfplug::Node node : graph.nodes(op)) node.SetAttr("_marked", true);
    }
    return absl::OkStatus();
  }
};

struct Optimizer : tfplug::GraphOptimizer<Mark> {
  static constexpr char kDeviceType[] = "CPU";
};

long long NanosecondsSince(Clock::time_point start) {
  return std::chrono::nanoseconds(Clock::now() - start).count();
}

std::FILE* Times() {
  static std::FILE* const file = std::fopen(std::getenv("TFPLUG_TIMES"), "a");
  return file;
}

// The time at which the plug-in returned the result that TensorFlow is parsing.
// Calls do not overlap.
Clock::time_point returned;
void (*deallocate)(void*, size_t);

void Parsed(void* data, size_t size) {
  std::fprintf(Times(), "parse %lld\n", NanosecondsSince(returned));
  std::fflush(Times());
  deallocate(data, size);
}

void (*optimize)(void*, const tfplug::capi::TF_Buffer*,
                 const tfplug::capi::TF_GrapplerItem*, tfplug::capi::TF_Buffer*,
                 tfplug::capi::TF_Status*);

void Timed(void* optimizer, const tfplug::capi::TF_Buffer* graph,
           const tfplug::capi::TF_GrapplerItem* item,
           tfplug::capi::TF_Buffer* result, tfplug::capi::TF_Status* status) {
  const Clock::time_point start = Clock::now();
  optimize(optimizer, graph, item, result, status);
  std::fprintf(Times(), "call %lld %zu %zu\n", NanosecondsSince(start),
               graph->length, result->length);
  std::fflush(Times());
  if (result->data_deallocator != nullptr) {
    deallocate = result->data_deallocator;
    result->data_deallocator = &Parsed;
  }
  returned = Clock::now();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void TF_InitGraph(
    tfplug::capi::TP_OptimizerRegistrationParams* params,
    tfplug::capi::TF_Status* status) {
  tfplug::passes_internal::OptimizerRegistration<Optimizer>::InitGraph(params,
                                                                       status);
  optimize = params->optimizer->optimize_func;
  params->optimizer->optimize_func = &Timed;
}
