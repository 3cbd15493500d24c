// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/kernel/register_op.h>
#include <tfplug/op_kernels/elementwise.h>
#include <tfplug/op_kernels/op_run.h>
#include <tfplug/passes/transformer_ops.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/device_views.h"
#include "cpu_sim.h"
#include "kernels/parallel.h"
#include "kernels/row_code.h"

// The normalization and attention that tfplug's rules for transformers create.
namespace cpu_sim {
namespace {

using tfplug::DataType, tfplug::Operand, tfplug::Operands;

TFPLUG_REGISTER_OP(tfplug::LayerNormOp());
TFPLUG_REGISTER_OP(tfplug::AttentionOp());

// Returns a view of all elements in a row; without any, its address is null.
Operand FlatViewOf(const tfplug::Tensor& x) {
  const int64_t size = x ? x.num_elements() : 0;
  if (size == 0) return Operand::Dense(nullptr, DataType::kFloat, {0});
  return Operand::Dense(x.data(), x.dtype(), {size});
}

// The private addresses of `n` operands.
template <size_t n>
class Addresses {
 public:
  static absl::StatusOr<Addresses> Of(Stream& stream, Operands operands) {
    Addresses all;
    for (size_t i = 0; i < n; ++i) {
      TFPLUG_ASSIGN_OR_RETURN(all.addresses_[i],
                              PrivateAddress(stream, operands[i]));
    }
    return all;
  }
  template <class T = float>
  T* get(size_t i) const {
    return static_cast<T*>(addresses_[i]);
  }

 private:
  std::array<void*, n> addresses_;
};

// ---- Layer normalization ----------------------------------------------------

class LayerNorm final : public tfplug::BackendKernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(epsilon_, construction.GetAttr<float>("epsilon"));
    return absl::OkStatus();
  }
  absl::Status Run(tfplug::OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor x, run.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor gamma, run.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor beta, run.GetInput(2));
    if (x.rank() == 0) {
      return absl::InvalidArgumentError("x must have >= 1 dimension");
    }
    const int64_t depth = x.dim(x.rank() - 1);
    if (gamma.shape() != tfplug::Shape{depth} ||
        beta.shape() != tfplug::Shape{depth}) {
      return absl::InvalidArgumentError(
          "gamma and beta must be vectors with one element per element of a "
          "row of x, not " +
          gamma.shape().ToString() + " and " + beta.shape().ToString());
    }
    tfplug::Shape statistics = x.shape();
    statistics.set_dim(x.rank() - 1, 1);
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor y,
                            run.context().AllocateOutput(0, x.shape()));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor mean,
                            run.context().AllocateOutput(1, statistics));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor rstd,
                            run.context().AllocateOutput(2, statistics));
    if (x.num_elements() == 0) return absl::OkStatus();
    return run.launcher().Enqueue<Stream>(
        {FlatViewOf(x), FlatViewOf(gamma), FlatViewOf(beta), FlatViewOf(y),
         FlatViewOf(mean), FlatViewOf(rstd)},
        [depth, rows = statistics.num_elements(), epsilon = epsilon_](
            Stream& stream, Operands operands) {
          return Normalize(stream, operands, rows, depth, epsilon);
        });
  }

 private:
  static absl::Status Normalize(Stream& stream, Operands operands, int64_t rows,
                                int64_t row, float epsilon) {
    TFPLUG_ASSIGN_OR_RETURN(const auto at, Addresses<6>::Of(stream, operands));
    return stream.LaunchTask([=] {
      constexpr int64_t kCost = 8;  // of an element
      ForEachPiece(
          rows, PieceOf(kCost * row), [&](int64_t begin, int64_t end, int64_t) {
            Rows().normalize(at.get(0) + begin * row, at.get(1), at.get(2),
                             at.get(3) + begin * row, at.get(4) + begin,
                             at.get(5) + begin, epsilon, end - begin, row);
          });
    });
  }

  float epsilon_ = 0;
};
TFPLUG_REGISTER_KERNEL(
    LayerNorm, tfplug::KernelDef("TfplugLayerNorm").TypeConstraint<float>("T"));

// ---- Attention -------------------------------------------------------------

class Attention final : public tfplug::BackendKernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string layout,
                            construction.GetAttr<std::string>("layout"));
    heads_first_ = layout == "BNTH";
    TFPLUG_ASSIGN_OR_RETURN(scale_, construction.GetAttr<float>("scale"));
    TFPLUG_ASSIGN_OR_RETURN(masked_score_,
                            construction.GetAttr<float>("masked_score"));
    TFPLUG_ASSIGN_OR_RETURN(num_masks_,
                            construction.GetAttr<int64_t>("num_masks"));
    TFPLUG_ASSIGN_OR_RETURN(num_biases_,
                            construction.GetAttr<int64_t>("num_biases"));
    TFPLUG_ASSIGN_OR_RETURN(num_probabilities_,
                            construction.GetAttr<int64_t>("num_probabilities"));
    if (num_masks_ > 1 || num_biases_ > 1 || num_probabilities_ > 1) {
      return absl::UnimplementedError(
          "at most one mask, bias and output of "
          "probabilities is implemented");
    }
    return absl::OkStatus();
  }

  absl::Status Run(tfplug::OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor q, run.GetInput(0));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor k, run.GetInput(1));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor v, run.GetInput(2));
    // Absent ones are not read; any tensor serves.
    tfplug::Tensor mask, bias, probabilities;
    const int num_masks = static_cast<int>(num_masks_);
    if (num_masks_ > 0) {
      TFPLUG_ASSIGN_OR_RETURN(mask, run.GetInput(3));
    }
    if (num_biases_ > 0) {
      TFPLUG_ASSIGN_OR_RETURN(bias, run.GetInput(3 + num_masks));
    }
    if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) {
      return absl::InvalidArgumentError(
          "query, key and value must have 4 "
          "dimensions");
    }
    const int length = heads_first_ ? 2 : 1, heads = heads_first_ ? 1 : 2;
    tfplug::Shape outer = {q.dim(0), q.dim(heads)};
    for (const tfplug::Tensor* x : {&k, &v}) {
      TFPLUG_RETURN_IF_ERROR(
          BroadcastShape({x->dim(0), x->dim(heads)}, &outer));
    }
    AttentionSizes a = {};
    a.queries = q.dim(length);
    a.keys = k.dim(length);
    a.size = q.dim(3);
    a.value_size = v.dim(3);
    if (k.dim(3) != a.size || v.dim(length) != a.keys) {
      return absl::InvalidArgumentError(
          "query, key and value do not fit together: " + q.shape().ToString() +
          ", " + k.shape().ToString() + ", " + v.shape().ToString());
    }
    // Masks and biases can broadcast the batch and the heads, too.
    tfplug::Shape scores = {outer.dim(0), outer.dim(1), a.queries, a.keys};
    if (num_masks_ > 0) {
      TFPLUG_RETURN_IF_ERROR(BroadcastShape(mask.shape(), &scores));
    }
    if (num_biases_ > 0) {
      TFPLUG_RETURN_IF_ERROR(BroadcastShape(bias.shape(), &scores));
    }
    if (scores.rank() != 4 || scores.dim(2) != a.queries ||
        scores.dim(3) != a.keys) {
      return absl::InvalidArgumentError(
          "the mask or bias does not fit to scores of " +
          std::to_string(a.queries) + " queries and " + std::to_string(a.keys) +
          " keys");
    }
    a.batch = scores.dim(0);
    a.heads = scores.dim(1);
    SetStrides(q, a, a.q);
    SetStrides(k, a, a.k);
    SetStrides(v, a, a.v);
    a.has_mask = num_masks_ > 0;
    a.has_bias = num_biases_ > 0;
    a.has_probabilities = num_probabilities_ > 0;
    if (a.has_mask) {
      TFPLUG_RETURN_IF_ERROR(SetStrides(mask, scores, a.mask));
    }
    if (a.has_bias) {
      TFPLUG_RETURN_IF_ERROR(SetStrides(bias, scores, a.bias));
    }
    a.scale = scale_;
    a.masked_score = masked_score_;
    tfplug::Shape y_shape = {a.batch, a.queries, a.heads, a.value_size};
    if (heads_first_) y_shape = {a.batch, a.heads, a.queries, a.value_size};
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor y,
                            run.context().AllocateOutput(0, y_shape));
    SetStrides(y, a, a.y);
    if (a.has_probabilities) {
      TFPLUG_ASSIGN_OR_RETURN(probabilities,
                              run.context().AllocateOutput(1, scores));
    }
    if (y.num_elements() == 0 || a.keys == 0) return absl::OkStatus();
    return run.launcher().Enqueue<Stream>(
        {FlatViewOf(q), FlatViewOf(k), FlatViewOf(v), FlatViewOf(mask),
         FlatViewOf(bias), FlatViewOf(y), FlatViewOf(probabilities)},
        [a](Stream& stream, Operands operands) {
          return Attend(stream, operands, a);
        });
  }

 private:
  static absl::Status Attend(Stream& stream, Operands operands,
                             const AttentionSizes& a) {
    TFPLUG_ASSIGN_OR_RETURN(const auto at, Addresses<7>::Of(stream, operands));
    return stream.LaunchTask([=] {
      const int64_t cost =
          a.keys * (4 + a.size / kLanes + a.value_size / kLanes);
      ForEachPiece(a.batch * a.heads * a.queries,
                   QueriesOfPiece(a.queries, PieceOf(cost)),
                   [&](int64_t begin, int64_t end, int64_t) {
                     Rows().attend(a, begin, end, at.get(0), at.get(1),
                                   at.get(2), at.get<bool>(3), at.get(4),
                                   at.get(5), at.get(6));
                   });
    });
  }

  // Returns about `wanted`, but whole heads or many queries of a head, whose
  // keys each piece arranges anew.
  static int64_t QueriesOfPiece(int64_t queries, int64_t wanted) {
    constexpr int64_t kFewest = 32;
    const int64_t piece = std::max(wanted, std::min(queries, kFewest));
    return piece < queries ? piece : (piece + queries - 1) / queries * queries;
  }

  // Sets the strides of a mask or bias that is broadcast to `scores`.
  static absl::Status SetStrides(const tfplug::Tensor& x,
                                 const tfplug::Shape& scores,
                                 int64_t strides[4]) {
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Operand view, tfplug::ViewOf(x));
    const tfplug::Operand all = BroadcastTo(view, scores);
    for (int d = 0; d < all.rank; ++d) strides[d] = all.stride(d);
    return absl::OkStatus();
  }

  // Sets the strides of [batch, heads, length].
  void SetStrides(const tfplug::Tensor& x, const AttentionSizes& a,
                  int64_t strides[3]) const {
    const int64_t dense[] = {x.dim(1) * x.dim(2) * x.dim(3),
                             x.dim(2) * x.dim(3), x.dim(3)};
    const int heads = heads_first_ ? 1 : 2;
    strides[0] = x.dim(0) == a.batch ? dense[0] : 0;
    strides[1] = x.dim(heads) == a.heads ? dense[heads] : 0;
    strides[2] = dense[heads_first_ ? 2 : 1];
  }

  bool heads_first_ = false;
  float scale_ = 1, masked_score_ = 0;
  int64_t num_masks_ = 0, num_biases_ = 0, num_probabilities_ = 0;
};
TFPLUG_REGISTER_KERNEL(
    Attention, tfplug::KernelDef("TfplugAttention").TypeConstraint<float>("T"));

}  // namespace
}  // namespace cpu_sim
