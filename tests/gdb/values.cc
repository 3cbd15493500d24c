// SPDX-License-Identifier: Apache-2.0
// Values that gdb_test.py prints.
#include <tfplug/graph/graph.h>
#include <tfplug/ir/value.h>
#include <tfplug/ir/view.h>
#include <tfplug/kernel/tensor.h>
#include <tfplug/testing/fake_tensorflow.h>
#include <tfplug/testing/tensor.h>

#include <cstdint>
#include <utility>

namespace tfplug {
namespace {

[[gnu::noinline]] void Stop(const void* values) {
  asm volatile("" : : "r"(values) : "memory");
}

void Main() {
  const testing::ScopedFakeTensorFlow fake{testing::FakeOptions()};
  const absl::Status ok, failed = absl::InvalidArgumentError("node 'a': no");
  const absl::Status code(absl::StatusCode::kNotFound, "");
  const Shape small{2, 3}, scalar, large{1, 2, 3, 4, 5, 6, 7, 8};
  const int64_t dims[] = {2, 3};
  const Operand memory = Operand::Dense(nullptr, DataType::kHalf, dims);
  const Operand index = Operand::Index(5);
  const Tensor tensor(
      new testing::TF_Tensor(testing::MakeTensor<float>({2}, {1, 2})));
  const Tensor none;
  ExpressionBuilder builder;
  const Value x = builder.Input(DataType::kFloat);
  builder.Output(Tanh(x) + x, DataType::kHalf);
  const Expression expression = *std::move(builder).Build();
  Graph graph;
  const Node node = *graph.AddNode("y", "Tanh"),
             removed = *graph.AddNode("z", "Neg");
  if (!graph.RemoveNode(removed).ok()) return;
  const Node no_node;
  const void* const values[] = {
      &ok,    &failed, &code, &small,      &scalar, &large,   &memory,
      &index, &tensor, &none, &expression, &node,   &removed, &no_node};
  Stop(values);
}

}  // namespace
}  // namespace tfplug

int main() { tfplug::Main(); }
