// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_OP_DEFS_H_
#define TFPLUG_TESTS_OP_DEFS_H_

#include <doctest/doctest.h>
#include <tfplug/testing/grappler_item.h>
#include <tfplug/testing/op_spec.h>

#include <string>
#include <vector>

namespace tfplug {

// Makes an op known, from specifications such as "x: T" and "T: type".
inline void DefineOp(const std::string& name,
                     const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs,
                     const std::vector<std::string>& attrs = {"T: type"}) {
  const auto def = testing::OpDefFromSpecs(name, inputs, outputs, attrs);
  REQUIRE_MESSAGE(def.ok(), def.status().ToString());
  testing::KnownOpDefs()[name] = *def;
}

// Makes known the ops of the graphs that executors run in tests.
inline void DefineMathOps() {
  DefineOp("Relu", {"features: T"}, {"activations: T"});
  DefineOp("Neg", {"x: T"}, {"y: T"});
  DefineOp("AddV2", {"x: T", "y: T"}, {"z: T"});
  DefineOp("Mul", {"x: T", "y: T"}, {"z: T"});
  DefineOp("MatMul", {"a: T", "b: T"}, {"product: T"},
           {"T: type", "transpose_a: bool = false", "transpose_b: bool = false",
            "grad_a: bool = false", "grad_b: bool = false"});
  DefineOp("BiasAdd", {"value: T", "bias: T"}, {"output: T"},
           {"T: numbertype", "data_format: {'NHWC', 'NCHW'} = 'NHWC'"});
  DefineOp("Sum", {"input: T", "reduction_indices: Tidx"}, {"output: T"},
           {"T: numbertype", "Tidx: {int32, int64} = DT_INT32",
            "keep_dims: bool = false"});
}

}  // namespace tfplug

#endif  // TFPLUG_TESTS_OP_DEFS_H_
