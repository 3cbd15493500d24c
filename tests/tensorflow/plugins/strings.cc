// SPDX-License-Identifier: Apache-2.0
// SmallJoin concatenates the strings of a list of inputs, element by element.
// Strings are always in host memory, and a kernel for a device must declare
// that.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "small_device.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/base/tstring.h"
#include "tfplug/kernel/register_op.h"

namespace small {
namespace {

TFPLUG_REGISTER_OP(
    tfplug::OpDef("SmallJoin")
        .Attr("N: int >= 1")
        .Input("parts: N * string")
        .Output("joined: string")
        .SetShapeFn([](tfplug::ShapeInference& s) -> absl::Status {
          TFPLUG_ASSIGN_OR_RETURN(const auto first, s.GetInput(0));
          return s.SetOutput(0, first);
        }));

class Join : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::vector<tfplug::Tensor> parts,
                            context.GetInputList("parts"));
    for (const tfplug::Tensor& part : parts) {
      if (part.shape() != parts[0].shape()) {
        return absl::InvalidArgumentError(
            absl::StrCat("parts of different shapes: ", part.ToString(),
                         " and ", parts[0].ToString()));
      }
    }
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor joined,
                            context.AllocateOutput(0, parts[0].shape()));
    auto out = joined.flat<tfplug::TString>();
    for (size_t i = 0; i < out.size(); ++i) {
      std::string text;
      for (const tfplug::Tensor& part : parts) {
        absl::StrAppend(&text, part.flat<tfplug::TString>()[i].view());
      }
      out[i].Assign(text);
    }
    return absl::OkStatus();
  }
};
TFPLUG_REGISTER_KERNEL(
    Join,
    tfplug::KernelDef("SmallJoin").HostMemory("parts").HostMemory("joined"));

}  // namespace
}  // namespace small
