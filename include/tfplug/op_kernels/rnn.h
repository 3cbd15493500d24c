// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_RNN_H_
#define TFPLUG_OP_KERNELS_RNN_H_

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/op_kernels/registrar.h"
#include "tfplug/op_kernels/rnn_forward.h"
#include "tfplug/op_kernels/rnn_gradient.h"

#pragma GCC visibility push(hidden)

// CudnnRNN, V2 and V3: layers of RNNs, LSTMs and GRUs, their gradients, and the ops
// that describe their parameters. The gates of a GRU are in the order of Keras and
// of TensorFlow builds without CUDA: update, reset, candidate.
namespace tfplug {
namespace op_kernels_internal {

// CudnnRNNParamsSize, and the ops that convert between the array of parameters
// and a list of all weights of the gates, followed by a list of the biases.
class RnnParamsKernel : public BackendKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(layout_, RnnLayout::Make(construction));
    return absl::OkStatus();
  }

 protected:
  // Reads the inputs num_layers, num_units and input_size.
  absl::StatusOr<RnnSizes> ReadSizes(OpRun& run) const {
    RnnSizes sizes = {layout_.cell, 0, 0, 0, 0, 0, layout_.directions};
    int64_t* const fields[] = {&sizes.layers, &sizes.units, &sizes.input};
    const char* const names[] = {"num_layers", "num_units", "input_size"};
    for (int i = 0; i < 3; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(*fields[i], run.GetScalar(i));
      if (*fields[i] > 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(names[i], " must be positive, got ", *fields[i]));
    }
    return sizes;
  }

  // Returns the views of the list: the weights of the input and of the state of
  // each direction of each layer, a matrix for each gate, and then the biases.
  std::vector<Operand> PartsOf(const RnnSizes& sizes,
                               const Operand& params) const {
    std::vector<Operand> parts;
    const auto add = [&](const Operand& rows) {
      for (int64_t gate = 0; gate < sizes.cell.gates; ++gate) {
        parts.push_back(
            ir::Range(rows, 0, gate * sizes.units, (gate + 1) * sizes.units));
      }
    };
    for (int64_t p = 0; p < sizes.count(); ++p) {
      const RnnWeights weights = sizes.WeightsOf(params, p);
      add(weights.of_input);
      add(weights.of_state);
    }
    for (int64_t p = 0; p < sizes.count(); ++p) {
      const RnnWeights weights = sizes.WeightsOf(params, p);
      add(weights.input_bias);
      add(weights.state_bias);
    }
    return parts;
  }
  absl::Status CheckCount(size_t parts, int expected) const {
    if (parts == static_cast<size_t>(expected)) return absl::OkStatus();
    return absl::InvalidArgumentError("this RNN has " + std::to_string(parts) +
                                      " matrices and biases, but the op has " +
                                      std::to_string(expected));
  }

  RnnLayout layout_;
};

class RnnParamsSize final : public RnnParamsKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const RnnSizes sizes, ReadSizes(run));
    TFPLUG_ASSIGN_OR_RETURN(const int64_t count, sizes.CountParams());
    if (count > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError("the RNN has " + std::to_string(count) +
                                        " parameters, too many for int32");
    }
    TFPLUG_ASSIGN_OR_RETURN(Tensor size, run.context().AllocateOutput(0, {1}));
    size.flat<int32_t>()[0] = static_cast<int32_t>(count);
    return absl::OkStatus();
  }
};

class RnnCanonicalToParams final : public RnnParamsKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const RnnSizes sizes, ReadSizes(run));
    TFPLUG_ASSIGN_OR_RETURN(const int64_t count, sizes.CountParams());
    TFPLUG_ASSIGN_OR_RETURN(const Operand params,
                            run.AllocateOutput(0, {count}));
    const std::vector<Operand> parts = PartsOf(sizes, params);
    TFPLUG_RETURN_IF_ERROR(
        CheckCount(parts.size(), run.context().num_inputs() - kFirst));
    for (size_t i = 0; i < parts.size(); ++i) {
      const int input = kFirst + static_cast<int>(i);
      TFPLUG_ASSIGN_OR_RETURN(const Operand part, GetView(run, input));
      if (part.num_elements() != parts[i].num_elements()) {
        return absl::InvalidArgumentError(
            "input " + std::to_string(input) + " must have the shape " +
            ShapeOf(parts[i]).ToString() + ", not " + ShapeOf(part).ToString());
      }
      TFPLUG_RETURN_IF_ERROR(
          Copy(run, Operand::Dense(part.data, part.type, ir::DimsOf(parts[i])),
               parts[i]));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int kFirst = 3;  // the input after the sizes
};

class RnnParamsToCanonical final : public RnnParamsKernel {
 public:
  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const RnnSizes sizes, ReadSizes(run));
    TFPLUG_ASSIGN_OR_RETURN(const Operand params, GetView(run, 3));
    TFPLUG_RETURN_IF_ERROR(layout_.CheckParams(sizes, params));
    const std::vector<Operand> parts = PartsOf(sizes, params);
    TFPLUG_RETURN_IF_ERROR(
        CheckCount(parts.size(), run.context().num_outputs()));
    for (size_t i = 0; i < parts.size(); ++i) {
      TFPLUG_ASSIGN_OR_RETURN(
          const Operand part,
          run.AllocateOutput(static_cast<int>(i), ShapeOf(parts[i])));
      TFPLUG_RETURN_IF_ERROR(Copy(run, parts[i], part));
    }
    return absl::OkStatus();
  }
};

}  // namespace op_kernels_internal

inline void RnnOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  registrar.Add<RnnForward>(KernelDef("CudnnRNN"), "T", kFloatTypes);
  registrar.Add<RnnGradient>(KernelDef("CudnnRNNBackprop"), "T", kFloatTypes);
  for (const std::string version : {"V2", "V3"}) {
    const auto def = [&](const std::string& op) {
      KernelDef result = KernelDef(op + version).HostMemory("host_reserved");
      if (version == "V2") return result;
      return std::move(result).HostMemory("sequence_lengths");
    };
    registrar.Add<RnnForward>(def("CudnnRNN"), "T", kFloatTypes);
    registrar.Add<RnnGradient>(def("CudnnRNNBackprop"), "T", kFloatTypes);
  }
  const auto with_sizes = [](const std::string& op) {
    return KernelDef(op)
        .HostMemory("num_layers")
        .HostMemory("num_units")
        .HostMemory("input_size");
  };
  registrar.Add<RnnParamsSize>(with_sizes("CudnnRNNParamsSize")
                                   .HostMemory("params_size")
                                   .TypeConstraint("S", {DataType::kInt32}),
                               "T", kFloatTypes);
  for (const std::string version : {"", "V2"}) {
    registrar.Add<RnnCanonicalToParams>(
        with_sizes("CudnnRNNCanonicalToParams" + version), "T", kFloatTypes);
    registrar.Add<RnnParamsToCanonical>(
        with_sizes("CudnnRNNParamsToCanonical" + version), "T", kFloatTypes);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_RNN_H_
