// SPDX-License-Identifier: Apache-2.0
// SmallSend sends its input under a name, SmallReceive waits for the tensor
// sent under a name, SmallAbort fails all sends and receives of the step.
#include "tfplug/kernel/rendezvous.h"

#include <memory>
#include <string>
#include <utility>

#include "small_device.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/async_kernel.h"
#include "tfplug/kernel/register_op.h"

namespace small {
namespace {

TFPLUG_REGISTER_OP(tfplug::OpDef("SmallSend")
                       .Attr("T: {float, string}")
                       .Attr("edge: string")
                       .Input("x: T")
                       .SetIsStateful());
TFPLUG_REGISTER_OP(tfplug::OpDef("SmallReceive")
                       .Attr("T: {float, string}")
                       .Attr("edge: string")
                       .Output("y: T")
                       .SetIsStateful());
TFPLUG_REGISTER_OP(
    tfplug::OpDef("SmallAbort").Attr("message: string").SetIsStateful());

absl::StatusOr<tfplug::RendezvousKey> KeyOf(const tfplug::RunInfo<>& run,
                                            const std::string& edge) {
  TFPLUG_ASSIGN_OR_RETURN(const auto device, run.GetDeviceName());
  return tfplug::RendezvousKey::Make(device, device, edge);
}

class Send : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(edge_, construction.GetAttr<std::string>("edge"));
    return absl::OkStatus();
  }
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const auto key, KeyOf(context, edge_));
    TFPLUG_ASSIGN_OR_RETURN(const auto rendezvous,
                            tfplug::Rendezvous::Get(context));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor x, context.GetInput(0));
    return rendezvous.Send(key, x);
  }

 private:
  std::string edge_;
};

class Receive : public tfplug::AsyncKernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(edge_, construction.GetAttr<std::string>("edge"));
    return absl::OkStatus();
  }
  absl::Status ComputeAsync(tfplug::AsyncRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const auto key, KeyOf(run.context(), edge_));
    TFPLUG_ASSIGN_OR_RETURN(const auto rendezvous,
                            tfplug::Rendezvous::Get(run.context()));
    rendezvous.RecvAsync(
        key, [run = std::move(run)](const absl::Status& status,
                                    const tfplug::Tensor& y, bool) mutable {
          run.Finish(status.ok() ? run.context().SetOutput(0, y) : status);
        });
    return absl::OkStatus();
  }

 private:
  std::string edge_;
};

class Abort : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(message_,
                            construction.GetAttr<std::string>("message"));
    return absl::OkStatus();
  }
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const auto rendezvous,
                            tfplug::Rendezvous::Get(context));
    rendezvous.StartAbort(absl::UnavailableError(message_));
    return absl::OkStatus();
  }

 private:
  std::string message_;
};

TFPLUG_REGISTER_KERNEL(
    Send, tfplug::KernelDef("SmallSend").TypeConstraint<float>("T"));
TFPLUG_REGISTER_KERNEL(Send,
                       tfplug::KernelDef("SmallSend")
                           .TypeConstraint("T", {tfplug::DataType::kString})
                           .HostMemory("x"));
TFPLUG_REGISTER_KERNEL(
    Receive, tfplug::KernelDef("SmallReceive").TypeConstraint<float>("T"));
TFPLUG_REGISTER_KERNEL(Receive,
                       tfplug::KernelDef("SmallReceive")
                           .TypeConstraint("T", {tfplug::DataType::kString})
                           .HostMemory("y"));
TFPLUG_REGISTER_KERNEL(Abort, tfplug::KernelDef("SmallAbort"));

}  // namespace
}  // namespace small
