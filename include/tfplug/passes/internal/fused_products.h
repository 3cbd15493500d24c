// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PASSES_INTERNAL_FUSED_PRODUCTS_H_
#define TFPLUG_PASSES_INTERNAL_FUSED_PRODUCTS_H_

#include <vector>

#include "tfplug/ops/internal.h"
#include "tfplug/ops/math.h"
#include "tfplug/ops/nn.h"
#include "tfplug/patterns/rule.h"

#pragma GCC visibility push(hidden)

// The products that passes/fusion_rules.h fuses. Each has a condition on the
// product's node, and a list of the attributes that the fused op copies from
// it.
namespace tfplug::passes_internal {

// Returns the value of TArgs for `count` arguments of the product's type.
template <class Product>
auto TypesOfArgs(const patterns::NodePattern<Product>& product, int count) {
  return [product, count](const patterns::Matched& m) {
    const auto type = m.node(product).template GetAttr<DataType>("T");
    return std::vector<DataType>(static_cast<size_t>(count),
                                 type.value_or(DataType::kFloat));
  };
}

struct MatMulFusion {
  using Product = ops::MatMul;
  using Fused = ops::InternalFusedMatMul;
  static constexpr int kRank = 2;  // Of the product's output.

  static patterns::NodePattern<Product> Restrict(
      const patterns::NodePattern<Product>& product) {
    return product;
  }
  static patterns::NewNode<Fused> CopyAttrs(
      const patterns::NodePattern<Product>& product, int,
      const patterns::NewNode<Fused>& node) {
    return node.Copy(product, Fused::T_attr)
        .Copy(product, Fused::transpose_a)
        .Copy(product, Fused::transpose_b);
  }
};

struct Conv2DFusion {
  using Product = ops::Conv2D;
  using Fused = ops::InternalFusedConv2D;
  static constexpr int kRank = 4;

  static patterns::NodePattern<Product> Restrict(
      const patterns::NodePattern<Product>& product) {
    return product.Where(Product::data_format, "NHWC");
  }
  static patterns::NewNode<Fused> CopyAttrs(
      const patterns::NodePattern<Product>& product, int num_args,
      const patterns::NewNode<Fused>& node) {
    return node.Copy(product, Fused::T_attr)
        .Copy(product, Fused::strides)
        .Copy(product, Fused::padding)
        .Copy(product, Fused::explicit_paddings)
        .Copy(product, Fused::data_format)
        .Copy(product, Fused::dilations)
        .Copy(product, Fused::use_cudnn_on_gpu)
        // In newer releases, the arguments can have different types.
        .SetIfKnown(Fused::TArgs_attr, TypesOfArgs(product, num_args));
  }
};

struct DepthwiseFusion {
  using Product = ops::DepthwiseConv2dNative;
  using Fused = ops::InternalFusedDepthwiseConv2dNative;
  static constexpr int kRank = 4;

  // The fused op has no explicit paddings.
  static patterns::NodePattern<Product> Restrict(
      const patterns::NodePattern<Product>& product) {
    return product.Where(Product::data_format, "NHWC")
        .WhereOneOf(Product::padding, {"SAME", "VALID"});
  }
  static patterns::NewNode<Fused> CopyAttrs(
      const patterns::NodePattern<Product>& product, int,
      const patterns::NewNode<Fused>& node) {
    return node.Copy(product, Fused::T_attr)
        .Copy(product, Fused::strides)
        .Copy(product, Fused::padding)
        .Copy(product, Fused::data_format)
        .Copy(product, Fused::dilations);
  }
};

}  // namespace tfplug::passes_internal

#pragma GCC visibility pop

#endif  // TFPLUG_PASSES_INTERNAL_FUSED_PRODUCTS_H_
