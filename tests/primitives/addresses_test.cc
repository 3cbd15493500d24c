// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "tfplug/ir/value.h"
#include "tfplug/ir/views.h"
#include "tfplug/primitives/backend.h"
#include "tfplug/primitives/reference_backend.h"
#include "tfplug/testing/internal/random_views.h"

namespace addresses_test {
namespace {

using tfplug::DataType;
using tfplug::Operand;
using tfplug::Operands;

// Keeps the addresses of the inputs.
class Backend
    : public tfplug::ReferenceBackend<tfplug::testing::Reference::Stream> {
 public:
  absl::Status Map(Stream& stream, const tfplug::Expression& expression,
                   Operands inputs, Operands outputs) override {
    Keep(inputs);
    return ReferenceBackend::Map(stream, expression, inputs, outputs);
  }
  absl::Status Reduce(Stream& stream, const tfplug::Reduction& reduction,
                      Operands inputs, Operands outputs) override {
    Keep(inputs);
    return ReferenceBackend::Reduce(stream, reduction, inputs, outputs);
  }

  std::vector<void*> addresses;

 private:
  void Keep(Operands inputs) {
    for (const Operand& input : inputs) addresses.push_back(input.data);
  }
};

struct Fixture {
  Backend backend;
  tfplug::testing::Reference::Stream stream;
  tfplug::HostScratch scratch;
  tfplug::Launcher launcher = tfplug::MakeLauncher(backend, stream, scratch);
};

TEST_CASE("the input of element has an address if its axis is empty") {
  tfplug::ExpressionBuilder builder;
  const tfplug::Value index = builder.Input(DataType::kInt64);
  const int table = builder.AxisInput(DataType::kInt32);
  builder.Output(builder.Element(table, index), DataType::kInt32);
  const tfplug::Expression element = *std::move(builder).Build();

  Fixture f;
  int64_t at[2] = {0, 1};
  int32_t memory[1] = {7}, y[2] = {7, 7};
  for (void* end :
       {static_cast<void*>(nullptr), static_cast<void*>(memory + 1)}) {
    f.backend.addresses.clear();
    const Operand empty = Operand::Dense(end, DataType::kInt32, {0});
    REQUIRE(
        f.launcher
            .Map(element,
                 {Operand::Dense(at, DataType::kInt64, {2}),
                  tfplug::ir::WithDim(tfplug::ir::WithAxis(empty, 0), 0, 2)},
                 {Operand::Dense(y, DataType::kInt32, {2})})
            .ok());
    CHECK(f.backend.addresses == std::vector<void*>{at, y});
    CHECK(y[0] == 0);
    CHECK(y[1] == 0);
  }
}

TEST_CASE("an empty input of a Reduce has an address, one of finish its own") {
  tfplug::Reduction sum;
  tfplug::ExpressionBuilder map, finish;
  map.Output(map.Input(DataType::kFloat), DataType::kFloat);
  sum.map = *std::move(map).Build();
  const tfplug::Value total = finish.Input(DataType::kFloat);
  finish.Output(total + finish.Input(DataType::kFloat), DataType::kFloat);
  sum.finish = *std::move(finish).Build();

  Fixture f;
  float bias[2] = {3, 4}, y[2] = {0, 0};
  const auto repeated = [](float* data) {
    return tfplug::ir::WithDim(Operand::Dense(data, DataType::kFloat, {2}), 1,
                               0);
  };
  const float* const end = bias + 2;
  REQUIRE(f.launcher
              .Reduce(sum,
                      {Operand::Dense(const_cast<float*>(end), DataType::kFloat,
                                      {2, 0}),
                       repeated(bias)},
                      {Operand::Dense(y, DataType::kFloat, {2})})
              .ok());
  CHECK(f.backend.addresses == std::vector<void*>{y, bias});
  CHECK(y[0] == 3);
  CHECK(y[1] == 4);
}

}  // namespace
}  // namespace addresses_test
