// SPDX-License-Identifier: Apache-2.0
// SmallAttributes returns a description of its attributes, which have nearly
// every kind. With `wrong`, it reads an attribute that is missing or of another
// type.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "small_device.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/base/tstring.h"
#include "tfplug/kernel/register_op.h"

namespace small {
namespace {

TFPLUG_REGISTER_OP(tfplug::OpDef("SmallAttributes")
                       .Attr("flag: bool = true")
                       .Attr("number: int = 7")
                       .Attr("numbers: list(int) = [1, 2]")
                       .Attr("text: string = 'word'")
                       .Attr("type: type = DT_BFLOAT16")
                       .Attr("shape: shape = { unknown_rank: true }")
                       .Attr("shapes: list(shape) = []")
                       .Attr("tensor: tensor")
                       .Attr("function: func")
                       .Attr("functions: list(func)")
                       .Attr("wrong: string = ''")
                       .Output("lines: string")
                       .SetIsStateful());

class Attributes : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const auto wrong,
                            construction.GetAttr<std::string>("wrong"));
    if (wrong == "missing") {
      return construction.GetAttr<float>("nothing").status();
    }
    if (wrong == "type") return construction.GetAttr<float>("number").status();
    return Read(construction);
  }

  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor lines,
        context.AllocateOutput(0, {static_cast<int64_t>(lines_.size())}));
    auto out = lines.flat<tfplug::TString>();
    for (size_t i = 0; i < lines_.size(); ++i) out[i].Assign(lines_[i]);
    return absl::OkStatus();
  }

 private:
  absl::Status Read(tfplug::KernelConstruction& c) {
    TFPLUG_ASSIGN_OR_RETURN(const bool flag, c.GetAttr<bool>("flag"));
    TFPLUG_ASSIGN_OR_RETURN(const int number, c.GetAttr<int>("number"));
    TFPLUG_ASSIGN_OR_RETURN(const auto numbers,
                            c.GetAttr<std::vector<int64_t>>("numbers"));
    TFPLUG_ASSIGN_OR_RETURN(const auto text, c.GetAttr<std::string>("text"));
    TFPLUG_ASSIGN_OR_RETURN(const auto type,
                            c.GetAttr<tfplug::DataType>("type"));
    TFPLUG_ASSIGN_OR_RETURN(const auto shape,
                            c.GetAttr<tfplug::PartialShape>("shape"));
    TFPLUG_ASSIGN_OR_RETURN(
        const auto shapes,
        c.GetAttr<std::vector<tfplug::PartialShape>>("shapes"));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor tensor,
                            c.GetAttr<tfplug::Tensor>("tensor"));
    TFPLUG_ASSIGN_OR_RETURN(const auto function,
                            c.GetAttr<tfplug::Function>("function"));
    TFPLUG_ASSIGN_OR_RETURN(
        const auto functions,
        c.GetAttr<std::vector<tfplug::Function>>("functions"));
    lines_ = {absl::StrCat("flag ", flag ? "yes" : "no"),
              absl::StrCat("number ", number),
              absl::StrCat("text ", text),
              absl::StrCat("type ", tfplug::DataTypeName(type)),
              absl::StrCat("shape ", shape.ToString()),
              absl::StrCat("tensor ", tensor.ToString(), " of ",
                           tensor.flat<float>()[0]),
              absl::StrCat("function ", function.name),
              absl::StrCat("functions ", functions.size())};
    for (const int64_t each : numbers) {
      lines_.push_back(absl::StrCat("element of numbers ", each));
    }
    for (const tfplug::PartialShape& each : shapes) {
      lines_.push_back(absl::StrCat("element of shapes ", each.ToString()));
    }
    return absl::OkStatus();
  }

  std::vector<std::string> lines_;
};
TFPLUG_REGISTER_KERNEL(
    Attributes, tfplug::KernelDef("SmallAttributes").HostMemory("lines"));

}  // namespace
}  // namespace small
