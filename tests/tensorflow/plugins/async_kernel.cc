// SPDX-License-Identifier: Apache-2.0
// SmallAsync copies its input. The attribute `how` selects how the run ends.
#include "tfplug/kernel/async_kernel.h"

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "small_device.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/register_op.h"

namespace small {
namespace {

TFPLUG_REGISTER_OP(tfplug::OpDef("SmallAsync")
                       .Attr("how: string = 'later'")
                       .Input("x: float")
                       .Output("y: float")
                       .SetIsStateful());

class Async : public tfplug::AsyncKernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(how_, construction.GetAttr<std::string>("how"));
    return absl::OkStatus();
  }

  absl::Status ComputeAsync(tfplug::AsyncRun& run) override {
    if (how_ == "at once") return Copy(run.context());
    if (how_ == "error at once") return absl::UnavailableError("busy");
    if (how_ == "exception") throw std::runtime_error("thrown");
    std::thread([how = how_, run = std::move(run)]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (how == "destroyed") return;
      if (how == "error later") return run.Finish(absl::AbortedError("late"));
      run.Finish(Copy(run.context()));
      if (how == "twice") run.Finish(absl::InternalError("not reported"));
    }).detach();
    return absl::OkStatus();
  }

 private:
  static absl::Status Copy(tfplug::KernelContext& context) {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor x, context.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor y,
                            context.AllocateOutput(0, x.shape()));
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->CopyDeviceToDevice(y.memory(), x.memory(), x.byte_size());
  }

  std::string how_;
};
TFPLUG_REGISTER_KERNEL(Async, tfplug::KernelDef("SmallAsync"));

}  // namespace
}  // namespace small
