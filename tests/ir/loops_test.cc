// SPDX-License-Identifier: Apache-2.0
#include "tfplug/ir/loops.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "tfplug/testing/internal/random_views.h"

namespace loops_test {
namespace {

using tfplug::Operand;
using tfplug::testing::Dims;

Operand ViewOf(const Dims& dims, const Dims& strides) {
  Operand view;
  for (size_t d = 0; d < dims.size(); ++d) view.AddDim(dims[d], strides[d]);
  return view;
}

Dims DimsOf(const Operand& view) {
  return Dims(view.dims.begin(), view.dims.begin() + view.rank);
}

// The offsets of each element of the box in all operands.
std::multiset<Dims> OffsetsOf(const std::vector<Operand>& inputs,
                              const std::vector<Operand>& outputs) {
  std::multiset<Dims> all;
  tfplug::testing::ForEachIndex(DimsOf(inputs[0]), [&](const Dims& index) {
    Dims offsets;
    for (const Operand& view : outputs) {
      offsets.push_back(tfplug::testing::OffsetOf(view, index));
    }
    for (const Operand& view : inputs) {
      offsets.push_back(tfplug::testing::OffsetOf(view, index));
    }
    all.insert(offsets);
  });
  return all;
}

TEST_CASE("dense operands become a vector") {
  std::vector<Operand> in = {ViewOf({2, 3, 1, 4}, {12, 4, 4, 1})};
  std::vector<Operand> out = in;
  CHECK(tfplug::SimplifyLoops(absl::MakeSpan(in), absl::MakeSpan(out)));
  CHECK(DimsOf(in[0]) == Dims{24});
  CHECK(in[0].stride(0) == 1);
  CHECK(DimsOf(out[0]) == Dims{24});
}

TEST_CASE("a broadcast row stays separate") {
  std::vector<Operand> in = {ViewOf({2, 3, 4}, {12, 4, 1}),
                             ViewOf({2, 3, 4}, {0, 0, 1})};
  std::vector<Operand> out = {in[0]};
  tfplug::SimplifyLoops(absl::MakeSpan(in), absl::MakeSpan(out));
  CHECK(DimsOf(in[0]) == Dims{6, 4});
  CHECK(in[1].stride(0) == 0);
}

TEST_CASE("the output's order decides") {
  std::vector<Operand> in = {ViewOf({3, 5}, {5, 1})};
  std::vector<Operand> out = {ViewOf({3, 5}, {1, 3})};
  tfplug::SimplifyLoops(absl::MakeSpan(in), absl::MakeSpan(out));
  CHECK(DimsOf(out[0]) == Dims{5, 3});
  CHECK(out[0].stride(1) == 1);
  CHECK(in[0].stride(1) == 5);
}

TEST_CASE("a scalar has rank 0, an empty output no loop") {
  std::vector<Operand> in = {ViewOf({1, 1}, {1, 1})};
  std::vector<Operand> out = in;
  CHECK(tfplug::SimplifyLoops(absl::MakeSpan(in), absl::MakeSpan(out)));
  CHECK(out[0].rank == 0);
  in = out = {ViewOf({3, 0}, {0, 1})};
  CHECK(!tfplug::SimplifyLoops(absl::MakeSpan(in), absl::MakeSpan(out)));
}

TEST_CASE("reduced dimensions merge among themselves and may be empty") {
  std::vector<Operand> in = {ViewOf({2, 3, 4, 5}, {60, 20, 5, 1})};
  std::vector<Operand> out = {ViewOf({2, 3}, {3, 1})};
  CHECK(tfplug::SimplifyLoops(absl::MakeSpan(in), absl::MakeSpan(out)));
  CHECK(DimsOf(in[0]) == Dims{6, 20});
  CHECK(DimsOf(out[0]) == Dims{6});
  in = {ViewOf({2, 0}, {0, 1})};
  out = {ViewOf({2}, {1})};
  CHECK(tfplug::SimplifyLoops(absl::MakeSpan(in), absl::MakeSpan(out)));
  CHECK(DimsOf(in[0]) == Dims{2, 0});
}

TEST_CASE("random operands keep their elements") {
  tfplug::testing::Random random(1);
  for (int run = 0; run < 500; ++run) {
    const Dims dims = tfplug::testing::RandomDims(random, 8);
    const size_t kept =
        dims.empty() ? 0
                     : static_cast<size_t>(tfplug::testing::Below(
                           random, static_cast<int64_t>(dims.size()) + 1));
    const tfplug::testing::Array<float> a(random, dims, true),
        b(random, dims, true),
        c(random, Dims(dims.begin(), dims.begin() + static_cast<long>(kept)));
    std::vector<Operand> in = {a.view(), b.view()}, out = {c.view()};
    const auto before = OffsetsOf(in, out);
    CHECK(tfplug::SimplifyLoops(absl::MakeSpan(in), absl::MakeSpan(out)));
    CHECK(in[0].rank <= static_cast<int>(dims.size()));
    CHECK(OffsetsOf(in, out) == before);
  }
}

}  // namespace
}  // namespace loops_test
