// SPDX-License-Identifier: Apache-2.0
// ToySend leaves its input under a name, ToyReceive waits for what comes under
// one, ToyAbort ends the exchange of the step.
#include "tfplug/kernel/rendezvous.h"

#include <memory>
#include <string>
#include <utility>

#include "small_device.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/async_kernel.h"
#include "tfplug/kernel/register_op.h"

namespace toy {
namespace {

TFPLUG_REGISTER_OP(tfplug::OpDef("ToySend")
                       .Attr("T: {float, string}")
                       .Attr("edge: string")
                       .Input("x: T")
                       .IsStateful());
TFPLUG_REGISTER_OP(tfplug::OpDef("ToyReceive")
                       .Attr("T: {float, string}")
                       .Attr("edge: string")
                       .Output("y: T")
                       .IsStateful());
TFPLUG_REGISTER_OP(
    tfplug::OpDef("ToyAbort").Attr("message: string").IsStateful());

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
    TFPLUG_ASSIGN_OR_RETURN(const auto exchange,
                            tfplug::Rendezvous::Of(context));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor x, context.GetInput(0));
    return exchange.Send(key, x);
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
    TFPLUG_ASSIGN_OR_RETURN(const auto exchange,
                            tfplug::Rendezvous::Of(run.context()));
    exchange.RecvAsync(
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
    TFPLUG_ASSIGN_OR_RETURN(const auto exchange,
                            tfplug::Rendezvous::Of(context));
    exchange.StartAbort(absl::UnavailableError(message_));
    return absl::OkStatus();
  }

 private:
  std::string message_;
};

TFPLUG_REGISTER_KERNEL(Send,
                       tfplug::KernelDef("ToySend").TypeConstraint<float>("T"));
TFPLUG_REGISTER_KERNEL(Send,
                       tfplug::KernelDef("ToySend")
                           .TypeConstraint("T", {tfplug::DataType::kString})
                           .HostMemory("x"));
TFPLUG_REGISTER_KERNEL(
    Receive, tfplug::KernelDef("ToyReceive").TypeConstraint<float>("T"));
TFPLUG_REGISTER_KERNEL(Receive,
                       tfplug::KernelDef("ToyReceive")
                           .TypeConstraint("T", {tfplug::DataType::kString})
                           .HostMemory("y"));
TFPLUG_REGISTER_KERNEL(Abort, tfplug::KernelDef("ToyAbort"));

}  // namespace
}  // namespace toy
