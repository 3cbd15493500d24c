// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_GRAPH_HOST_H_
#define TFPLUG_TESTING_GRAPH_HOST_H_

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/abi/abi.h"
#include "tfplug/testing/grappler_item.h"
#include "tfplug/testing/guards.h"
#include "tfplug/testing/internal/status_functions.h"
#include "tfplug/testing/internal/with_canary.h"
#include "tfplug/testing/struct_sizes.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// TensorFlow's side of a graph optimizer: registers and runs it with
// TensorFlow's calls. Each struct has its size in the release and lies between
// canary bytes.
//
//   tfplug::testing::ScopedFakeTensorFlow tensorflow;
//   auto host = tfplug::testing::GraphHost::Register(&TF_InitGraph).value();
//   tfplug::testing::TF_GrapplerItem item;
//   auto outcome = host->Optimize(graph_def, item);
class GraphHost {
 public:
  using InitGraph = void (*)(capi::TP_OptimizerRegistrationParams* params,
                             capi::TF_Status* status);

  // Registers a plug-in that is linked with the test. Fails as TensorFlow does,
  // with the plug-in's status or for a missing field.
  static absl::StatusOr<std::unique_ptr<GraphHost>> Register(
      InitGraph init_graph, const StructSizes& sizes = capi::kNewestRelease,
      int32_t major_version = 0) {
    std::unique_ptr<GraphHost> host(new GraphHost(sizes));
    host->params_->major_version = major_version;
    host->params_->patch_version = 1;
    host->params_->optimizer = host->optimizer_.get();
    host->params_->optimizer_configs = host->configs_.get();
    absl::Status status = CallWithStatus(init_graph, host->params_.get());
    if (!status.ok()) return status;
    if (host->params_->device_type == nullptr) {
      return absl::FailedPreconditionError(
          "TP_OptimizerRegistrationParams::device_type is null");
    }
    if (host->optimizer_->optimize_func == nullptr) {
      return absl::FailedPreconditionError(
          "TP_Optimizer::optimize_func is null");
    }
    if (!host->params_.intact() || !host->optimizer_.intact() ||
        !host->configs_.intact()) {
      return absl::InternalError(
          "the plug-in wrote beyond one of TensorFlow's structs");
    }
    return host;
  }

  std::string device_type() const { return params_->device_type; }

  // Returns the settings in the newest layout, converted from the layout of the
  // release. Settings that the release lacks are Default.
  capi::TP_OptimizerConfigs configs() const {
    constexpr size_t kInserted = offsetof(capi::TP_OptimizerConfigs,
                                          auto_mixed_precision_onednn_bfloat16);
    capi::TP_OptimizerConfigs fields = configs_.Read();
    if (configs_.size() == sizeof(capi::TP_OptimizerConfigs)) return fields;
    if (FindLayout(configs_.size())->is_prefix) return fields;
    const char* const from = reinterpret_cast<const char*>(configs_.get());
    char* const to = reinterpret_cast<char*>(&fields);
    std::memcpy(to + kInserted + sizeof(capi::TF_TriState), from + kInserted,
                configs_.size() - kInserted);
    fields.auto_mixed_precision_onednn_bfloat16 = capi::TF_TriState_Default;
    return fields;
  }

  // The result of one optimization.
  struct Outcome {
    std::string graph;               // serialized, after the last run
    std::vector<absl::Status> runs;  // the status of each run
    bool changed = false;            // whether a run returned a new graph
  };

  // Creates an optimizer, runs it `runs` times (TensorFlow runs it twice), and
  // destroys it. A run that fails, or returns ABORTED, leaves the graph
  // unchanged.
  Outcome Optimize(std::string graph_def, const TF_GrapplerItem& item,
                   int runs = 2) const {
    Outcome outcome;
    outcome.graph = std::move(graph_def);
    void* const optimizer = optimizer_->create_func == nullptr
                                ? nullptr
                                : optimizer_->create_func();
    for (int run = 0; run < runs; ++run) {
      // Each run has its own input, which is freed right after the run.
      const GuardedBlock bytes(outcome.graph.size(), /*alignment=*/1);
      std::memcpy(bytes.data(), outcome.graph.data(), bytes.size());
      capi::TF_Buffer in = {bytes.data(), bytes.size(), nullptr};
      capi::TF_Buffer out = {nullptr, 0, nullptr};
      outcome.runs.push_back(CallOptimize(optimizer, in, item, out));
      if (outcome.runs.back().ok()) {
        outcome.graph.assign(static_cast<const char*>(out.data), out.length);
        outcome.changed = true;
      }
      if (!bytes.intact()) {
        ScopedGuards::Report(
            "the plug-in wrote beside the graph of optimize_func");
      }
      if (out.data_deallocator != nullptr) {
        out.data_deallocator(const_cast<void*>(out.data), out.length);
      }
    }
    if (optimizer_->destroy_func != nullptr) {
      optimizer_->destroy_func(optimizer);
    }
    return outcome;
  }

 private:
  explicit GraphHost(const StructSizes& sizes)
      : has_item_(!(sizes.release < Release{2, 6})),
        params_(sizes.optimizer_params),
        optimizer_(sizes.optimizer),
        configs_(sizes.optimizer_configs) {}

  absl::Status CallOptimize(void* optimizer, capi::TF_Buffer& in,
                            const TF_GrapplerItem& item,
                            capi::TF_Buffer& out) const {
    if (has_item_) {
      return CallWithStatus(optimizer_->optimize_func, optimizer, &in, &item,
                            &out);
    }
    capi::TP_Optimizer_2_5 old;
    std::memcpy(&old, optimizer_.get(), sizeof(old));
    CurrentGraph() = {&in, &item};
    absl::Status status =
        CallWithStatus(old.optimize_func, optimizer, &in, &out);
    CurrentGraph() = {};
    return status;
  }

  static const capi::Layout* FindLayout(size_t size) {
    const capi::Layout* found = nullptr;
    for (const auto& layout :
         capi::StructInfo<capi::TP_OptimizerConfigs>::kLayouts) {
      if (layout.size <= size) found = &layout;
    }
    return found;
  }

  const bool has_item_;  // an argument of optimize_func
  const WithCanary<capi::TP_OptimizerRegistrationParams> params_;
  const WithCanary<capi::TP_Optimizer> optimizer_;
  const WithCanary<capi::TP_OptimizerConfigs> configs_;
};

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_GRAPH_HOST_H_
