// SPDX-License-Identifier: Apache-2.0
// SmallRunInfo returns the properties of its run as "name: value", with
// "UNIMPLEMENTED" as the value where this release of TensorFlow lacks one.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "small_device.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/base/tstring.h"
#include "tfplug/kernel/register_op.h"

namespace small {
namespace {

TFPLUG_REGISTER_OP(tfplug::OpDef("SmallRunInfo")
                       .Input("on_device: float")
                       .Input("on_host: float")
                       .Output("lines: string")
                       .SetIsStateful());

template <class T>
std::string Line(absl::string_view name, const absl::StatusOr<T>& value) {
  return value.ok()
             ? absl::StrCat(name, ": ", *value)
             : absl::StrCat(name, ": ",
                            absl::StatusCodeToString(value.status().code()));
}

class RunInfo : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    const auto config = context.GetSessionConfig();
    const auto library = context.GetFunctionLibrary();
    const std::vector<std::string> lines = {
        absl::StrCat("inputs: ", context.num_inputs()),
        absl::StrCat("step: ", context.step_id()),
        Line("node", context.GetNodeName()),
        Line("device", context.GetDeviceName()),
        Line("ordinal", context.GetDeviceId()),
        Line("frame", context.GetFrameId()),
        Line("iteration", context.GetIterationId()),
        Line("container", context.GetDefaultContainer()),
        Line("producer", context.GetGraphDefVersion()),
        Line("input 1", context.GetRequestedInput(1)),
        Line("input 0 in host memory", context.IsHostMemoryInput(0)),
        Line("input 1 in host memory", context.IsHostMemoryInput(1)),
        Line("output in host memory", context.IsHostMemoryOutput(0)),
        // Out of range: TensorFlow would abort on some of these.
        Line("input 5", context.GetRequestedInput(5)),
        Line("output 5", context.IsHostMemoryOutput(5)),
        absl::StrCat("config: ", config.ok() && !config->bytes().empty()),
        absl::StrCat("functions: ", library.ok() && !library->bytes().empty()),
    };
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor result,
        context.AllocateOutput(0, {static_cast<int64_t>(lines.size())}));
    auto out = result.flat<tfplug::TString>();
    for (size_t i = 0; i < lines.size(); ++i) out[i].Assign(lines[i]);
    return absl::OkStatus();
  }
};
TFPLUG_REGISTER_KERNEL(RunInfo, tfplug::KernelDef("SmallRunInfo")
                                    .HostMemory("on_host")
                                    .HostMemory("lines"));

}  // namespace
}  // namespace small
