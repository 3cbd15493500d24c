// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "region_graph.h"

// Launches that a record repeats.
namespace tfplug::region_launches_test {
namespace {

using op_kernels_internal::LaunchOf;
using op_kernels_internal::Place;
using op_kernels_internal::Target;
using primitives::PrimitiveTable;

// The operands that the primitive below has seen last.
std::vector<Operand>& Seen() {
  static std::vector<Operand> seen;
  return seen;
}
absl::Status MatMulMap(void*, void*, Launcher&, const Operand& a,
                       const Operand& b, const Expression&, Operands inputs,
                       Operands outputs) {
  Seen() = {a, b};
  Seen().insert(Seen().end(), inputs.begin(), inputs.end());
  Seen().insert(Seen().end(), outputs.begin(), outputs.end());
  return absl::OkStatus();
}

// An operand in which no two dimensions, strides or other numbers agree.
Operand MakeOperand(int rank, int number) {
  Operand operand;
  operand.type = number % 2 == 0 ? DataType::kFloat : DataType::kInt64;
  operand.scalar = 1000 + static_cast<uint64_t>(number);
  operand.axis_size = 2000 + number;
  operand.axis_stride = 3000 + number;
  for (int d = 0; d < rank; ++d) {
    operand.AddDim(100 * number + d + 1, 10000 * number + d + 1);
  }
  return operand;
}

TEST_CASE("a repeated launch has all of its operands, at their new addresses") {
  PrimitiveTable table = {};
  table.mat_mul_map = MatMulMap;
  Launcher launcher(&table, nullptr, nullptr, nullptr);
  const Target target = {&table, nullptr, nullptr, &launcher};
  char one[64], other[64];
  for (const int rank : {0, 1, 2, 3, 4, 5, kMaxViewRank}) {
    for (const size_t count :
         {size_t{0}, size_t{3}, size_t{14}, size_t{15}, size_t{40}}) {
      CAPTURE(rank);
      CAPTURE(count);
      // One operand has more dimensions than those before it.
      std::vector<Operand> all;
      for (size_t i = 0; i < count + 2; ++i) {
        all.push_back(MakeOperand(i == count ? rank : 1, static_cast<int>(i)));
      }
      const Operands inputs = absl::MakeConstSpan(all).subspan(1, count);
      const Operands outputs = absl::MakeConstSpan(all).subspan(count + 1);
      int64_t next = 0;
      const auto place_of = [&](const Operand&) {
        ++next;
        return next == 2 ? Place{}
                         : Place{next % 2 == 0 ? size_t{1} : size_t{2}, next};
      };
      const LaunchOf<&PrimitiveTable::mat_mul_map, const Operand&,
                     const Operand&, const Expression&, Operands, Operands>
          launch(place_of, all[0], all[0], Expression(), inputs, outputs);
      std::vector<Operand> expected = {all[0]};
      expected.insert(expected.end(), all.begin(), all.end());
      for (const bool swaps : {false, true}) {
        char* const first = swaps ? other : one;
        char* const second = swaps ? one : other;
        CHECK(launch.Run(target, {nullptr, first, second}).ok());
        REQUIRE(Seen().size() == expected.size());
        for (size_t i = 0; i < expected.size(); ++i) {
          const Operand &seen = Seen()[i], &kept = expected[i];
          CAPTURE(i);
          CHECK(seen.kind == kept.kind);
          CHECK(seen.type == kept.type);
          CHECK(seen.rank == kept.rank);
          CHECK(seen.scalar == kept.scalar);
          CHECK(seen.axis_size == kept.axis_size);
          CHECK(seen.axis_stride == kept.axis_stride);
          for (int d = 0; d < kept.rank; ++d) {
            CHECK(seen.dim(d) == kept.dim(d));
            CHECK(seen.stride(d) == kept.stride(d));
          }
          const auto place = static_cast<int64_t>(i) + 1;
          CHECK(seen.data == (place == 2       ? nullptr
                              : place % 2 == 0 ? first + place
                                               : second + place));
        }
      }
    }
  }
}

}  // namespace
}  // namespace tfplug::region_launches_test
