// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/graph_pass.h>
#include <tfplug/plugin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

#include "minimal_device.h"

// A device with few kernels, for float only: $<DEVICE>_KERNELS lists their ops.
// $<DEVICE>_SETTINGS lists settings ("remapping=off constant_folding=on") and
// may contain "any_ops", which turns KeepToOwnKernels off. The build defines
// DEVICE, so that a process can have several such devices.
#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

namespace few_kernels {

constexpr char kDevice[] = TEXT(DEVICE);

std::string GetEnv(const char* suffix) {
  const char* value = std::getenv((std::string(kDevice) + suffix).c_str());
  return value == nullptr ? "" : value;
}

class Memory : public minimal::Memory {
 public:
  absl::StatusOr<tfplug::MemoryUsage> Usage() override {
    return tfplug::MemoryUsage{int64_t{1} << 28, int64_t{1} << 28};
  }
};

class Platform
    : public minimal::PlatformOf<minimal::DeviceOf<minimal::Stream, Memory>> {
 public:
  static constexpr char kName[] = TEXT(DEVICE);
  static constexpr char kType[] = TEXT(DEVICE);
};

struct Op {
  const char* name;
  int num_inputs;  // 0: any number, or a reduction over the last dimension
  float (*compute)(float, float);
};

constexpr Op kOps[] = {
    {"Add", 2, [](float x, float y) { return x + y; }},
    {"AddV2", 2, [](float x, float y) { return x + y; }},
    {"Sub", 2, [](float x, float y) { return x - y; }},
    {"Mul", 2, [](float x, float y) { return x * y; }},
    {"Div", 2, [](float x, float y) { return x / y; }},
    {"RealDiv", 2, [](float x, float y) { return x / y; }},
    {"Pow", 2, [](float x, float y) { return std::pow(x, y); }},
    {"Xdivy", 2, [](float x, float y) { return x == 0 ? 0 : x / y; }},
    {"Neg", 1, [](float x, float) { return -x; }},
    {"Exp", 1, [](float x, float) { return std::exp(x); }},
    {"Log", 1, [](float x, float) { return std::log(x); }},
    {"Sqrt", 1, [](float x, float) { return std::sqrt(x); }},
    {"Square", 1, [](float x, float) { return x * x; }},
    {"Reciprocal", 1, [](float x, float) { return 1 / x; }},
    {"AddN", 0, [](float x, float y) { return x + y; }},
    {"Max", 0, [](float x, float y) { return std::max(x, y); }},
    {"Min", 0, [](float x, float y) { return std::min(x, y); }},
    {"Softmax", 1, nullptr},
    // Mistakes: a name that no op has, and an input that the op lacks.
    {"Rellu", 1, [](float x, float) { return x; }},
    {"ArgMax", 0, [](float x, float) { return x; }},
};

template <size_t kOp>
class Kernel : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    const Op& op = kOps[kOp];
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor x, context.GetInput(0));
    if (op.compute == nullptr) return Softmax(context, x);
    if (std::string(op.name) == "AddN") return Sum(context, x);
    if (op.num_inputs == 0) return Reduce(context, x);
    if (op.num_inputs == 1) return Map(context, x, x);
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor y, context.GetInput(1));
    return Map(context, x, y);
  }

 private:
  // Supports equal shapes, and one shape that is the end of the other.
  static absl::Status Map(tfplug::KernelContext& context,
                          const tfplug::Tensor& x, const tfplug::Tensor& y) {
    const auto a = x.flat<float>(), b = y.flat<float>();
    const bool is_x_larger = a.size() >= b.size();
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor result,
        context.AllocateOutput(0, (is_x_larger ? x : y).shape()));
    const auto out = result.flat<float>();
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = kOps[kOp].compute(a[i % a.size()], b[i % b.size()]);
    }
    return absl::OkStatus();
  }

  static absl::Status Sum(tfplug::KernelContext& context,
                          const tfplug::Tensor& x) {
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor result,
                            context.AllocateOutput(0, x.shape()));
    const auto out = result.flat<float>();
    std::fill(out.begin(), out.end(), 0.0f);
    for (int input = 0; input < context.num_inputs(); ++input) {
      TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor term,
                              context.GetInput(input));
      for (size_t i = 0; i < out.size(); ++i) out[i] += term.flat<float>()[i];
    }
    return absl::OkStatus();
  }

  static absl::Status Reduce(tfplug::KernelContext& context,
                             const tfplug::Tensor& x) {
    const size_t columns = static_cast<size_t>(x.dim(x.rank() - 1));
    const auto in = x.flat<float>();
    TFPLUG_ASSIGN_OR_RETURN(
        tfplug::Tensor result,
        context.AllocateOutput(0, tfplug::Shape(x.shape().dims().subspan(
                                      0, static_cast<size_t>(x.rank()) - 1))));
    const auto out = result.flat<float>();
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = in[i * columns];
      for (size_t j = 1; j < columns; ++j) {
        out[i] = kOps[kOp].compute(out[i], in[i * columns + j]);
      }
    }
    return absl::OkStatus();
  }

  static absl::Status Softmax(tfplug::KernelContext& context,
                              const tfplug::Tensor& x) {
    const size_t columns = static_cast<size_t>(x.dim(x.rank() - 1));
    TFPLUG_ASSIGN_OR_RETURN(tfplug::Tensor result,
                            context.AllocateOutput(0, x.shape()));
    const auto in = x.flat<float>(), out = result.flat<float>();
    for (size_t row = 0; row < out.size(); row += columns) {
      float sum = 0;
      for (size_t j = row; j < row + columns; ++j) sum += std::exp(in[j]);
      for (size_t j = row; j < row + columns; ++j)
        out[j] = std::exp(in[j]) / sum;
    }
    return absl::OkStatus();
  }
};

template <size_t... kOpIndex>
bool RegisterKernels(std::index_sequence<kOpIndex...>) {
  const std::string wanted = " " + GetEnv("_KERNELS") + " ";
  const auto add = [&](const Op& op, auto register_kernel) {
    if (wanted.find(" " + std::string(op.name) + " ") == wanted.npos) return;
    auto def = tfplug::KernelDef(op.name).TypeConstraint<float>("T");
    const bool is_reduction =
        op.num_inputs == 0 && std::string(op.name) != "AddN";
    register_kernel(is_reduction
                        ? std::move(def).HostMemory("reduction_indices")
                        : std::move(def));
  };
  (add(kOps[kOpIndex],
       [](tfplug::KernelDef def) {
         tfplug::RegisterKernel<Kernel<kOpIndex>>(std::move(def));
       }),
   ...);
  return true;
}
const bool is_registered =
    RegisterKernels(std::make_index_sequence<std::size(kOps)>());

struct Optimizer : tfplug::GraphOptimizer<> {
  static constexpr char kDeviceType[] = TEXT(DEVICE);
  static tfplug::OptimizerSettings Settings() {
    tfplug::OptimizerSettings settings;
    std::istringstream words(GetEnv("_SETTINGS"));
    for (std::string word; words >> word;) {
      const std::string name = word.substr(0, word.find('='));
      const tfplug::Toggle value =
          word == name + "=off" ? tfplug::Toggle::kOff : tfplug::Toggle::kOn;
      if (name == "any_ops") settings.keep_to_own_kernels = false;
      if (name == "remapping") settings.remapping = value;
      if (name == "constant_folding") settings.constant_folding = value;
      if (name == "disable_model_pruning") {
        settings.disable_model_pruning = value;
      }
    }
    return settings;
  }
};

}  // namespace few_kernels

TFPLUG_REGISTER_DEVICE(few_kernels::Platform);
TFPLUG_REGISTER_GRAPH_OPTIMIZER(few_kernels::Optimizer);
