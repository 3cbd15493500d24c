// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/graph_pass.h>
#include <tfplug/plugin.h>

#include <cstdint>
#include <cstdlib>

#include "minimal_device.h"

// A device with a kernel for AddV2 and no kernel for AddN. SUM_DEVICE=unsafe
// keeps the ops that TensorFlow's rewriters insert.
namespace sum_device {

class Memory : public minimal::Memory {
 public:
  absl::StatusOr<tfplug::MemoryUsage> Usage() override {
    return tfplug::MemoryUsage{int64_t{1} << 28, int64_t{1} << 28};
  }
};

class Platform
    : public minimal::PlatformOf<minimal::DeviceOf<minimal::Stream, Memory>> {
 public:
  static constexpr char kName[] = "SUM";
  static constexpr char kType[] = "SUM";
};

class Add : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor y, context.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor sum,
                            context.AllocateOutput(0, x.shape()));
    const auto a = x.flat<float>(), b = y.flat<float>();
    const auto out = sum.flat<float>();
    for (size_t i = 0; i < out.size(); ++i) out[i] = a[i] + b[i];
    return absl::OkStatus();
  }
};

struct Optimizer : tfplug::GraphOptimizer<> {
  static constexpr char kDeviceType[] = "SUM";
  static tfplug::OptimizerSettings Settings() {
    tfplug::OptimizerSettings settings;
    settings.keep_to_own_kernels = std::getenv("SUM_DEVICE") == nullptr;
    return settings;
  }
};

}  // namespace sum_device

TFPLUG_REGISTER_DEVICE(sum_device::Platform);
TFPLUG_REGISTER_KERNEL(sum_device::Add,
                       tfplug::KernelDef("AddV2").TypeConstraint<float>("T"));
TFPLUG_REGISTER_GRAPH_OPTIMIZER(sum_device::Optimizer);
