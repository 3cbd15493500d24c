// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_REGION_H_
#define TFPLUG_OP_KERNELS_REGION_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tfplug/base/internal/profiling.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/kernel.h"
#include "tfplug/kernel/kernel_construction.h"
#include "tfplug/kernel/kernel_context.h"
#include "tfplug/kernel/region_op.h"
#include "tfplug/kernel/register_op.h"
#include "tfplug/op_kernels/internal/region_kernels.h"
#include "tfplug/op_kernels/internal/region_record.h"
#include "tfplug/op_kernels/internal/region_recorder.h"
#include "tfplug/op_kernels/registrar.h"
#include "tfplug/runtime/dispatch.h"
#include "tfplug/runtime/subgraph.h"

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace op_kernels_internal {

// The op of a region. Its first run with given shapes, and with given values of
// the inputs in host memory, runs the kernels of the subgraph one after the
// other and records their launches; later runs repeat the record.
class RegionKernel final : public Kernel {
 public:
  ~RegionKernel() override {
    for (const auto& slot : records_) delete slot.load();
  }

  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(auto inputs,
                            ReadPorts(construction, "Tin", "Thost_in"));
    TFPLUG_ASSIGN_OR_RETURN(auto outputs,
                            ReadPorts(construction, "Tout", "Thost_out"));
    TFPLUG_ASSIGN_OR_RETURN(const auto graph,
                            construction.GetAttr<std::string>("graph"));
    return subgraph_.Init(graph, std::move(inputs), std::move(outputs));
  }

  absl::Status Compute(KernelContext& context) override {
    // A profile has the nodes' kernels.
    const bool is_recorded = can_record_.load(std::memory_order_relaxed) &&
                             !internal::IsNullOrProfiled(this);
    if (!is_recorded) return RunKernels(context, nullptr);
    const int n = static_cast<int>(subgraph_.inputs().size());
    std::vector<Tensor> inputs(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(inputs[static_cast<size_t>(i)],
                              context.GetInput(i));
    }
    for (const auto& slot : records_) {
      const RegionRecord* const record = slot.load(std::memory_order_acquire);
      if (record == nullptr) return Record(context, inputs);
      if (record->Fits(inputs, subgraph_.inputs())) {
        return record->Replay(context, inputs, subgraph_);
      }
    }
    inputs.clear();
    return RunKernels(context, nullptr);
  }

 private:
  static absl::StatusOr<std::vector<runtime::Port>> ReadPorts(
      KernelConstruction& construction, const char* on_device,
      const char* on_host) {
    std::vector<runtime::Port> ports;
    for (const char* const attr : {on_device, on_host}) {
      TFPLUG_ASSIGN_OR_RETURN(
          const auto types, construction.GetAttr<std::vector<DataType>>(attr));
      for (DataType type : types) ports.push_back({type, attr == on_host});
    }
    return ports;
  }

  // `observer` may be null.
  absl::Status RunKernels(KernelContext& context,
                          runtime::RunObserver* observer) {
    runtime::SubgraphRun run(subgraph_, context.get(), observer);
    TFPLUG_RETURN_IF_ERROR(run.Run());
    for (int i = 0; i < subgraph_.num_outputs(); ++i) {
      context.AllowUnsetOutput(i);
    }
    return absl::OkStatus();
  }
  absl::Status Record(KernelContext& context,
                      const std::vector<Tensor>& inputs) {
    RegionRecorder recorder(subgraph_, inputs);
    if (recorder.shares_memory()) return RunKernels(context, nullptr);
    TFPLUG_RETURN_IF_ERROR(RunKernels(context, &recorder));
    std::unique_ptr<RegionRecord> record = recorder.Finish();
    if (record == nullptr) {
      can_record_ = false;
      if (AreRegionsLogged()) {
        LogRegions(absl::StrCat("the region '",
                                context.GetNodeName().value_or(""),
                                "' is not recorded: ", recorder.why_not()));
      }
      return absl::OkStatus();
    }
    for (auto& slot : records_) {
      RegionRecord* expected = nullptr;
      if (slot.compare_exchange_strong(expected, record.get())) {
        static_cast<void>(record.release());
        break;
      }
    }
    return absl::OkStatus();
  }

  // More combinations of shapes and values in host memory run kernel by kernel.
  static constexpr size_t kMaxRecords = 8;

  runtime::Subgraph subgraph_;
  // Records are kept as long as the kernel; the empty slots are the last ones.
  std::array<std::atomic<RegionRecord*>, kMaxRecords> records_ = {};
  std::atomic<bool> can_record_{true};
};

}  // namespace op_kernels_internal

// Registers the op of CompileRegions (passes/compile_regions.h) and its kernel:
// with this family in the list, TFPLUG_REGIONS=1 turns regions on.
inline void RegionOps(const Registrar& registrar) {
  RegisterOp(RegionOp());
  op_kernels_internal::AddKernelsInRegions();
  registrar.Add<op_kernels_internal::RegionKernel>(
      KernelDef(kRegionOp)
          .HostMemory("host_inputs")
          .HostMemory("host_outputs")
          .OnlyIf([] {
            if (!AreRegionsEnabled()) return false;
            runtime::InstallDispatch();
            return true;
          }));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_REGION_H_
