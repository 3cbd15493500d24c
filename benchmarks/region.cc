// SPDX-License-Identifier: Apache-2.0
//
// Repeats the launches of a region for primitives that do nothing, so that
// Callgrind counts what a repeated launch costs on the host:
//
//   region LAUNCH CALLS    repeats it CALLS times
//   region --list          lists the launches and their numbers of operands
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/ir/value.h"
#include "tfplug/op_kernels/internal/region_launches.h"

namespace {

using tfplug::DataType;
using tfplug::Expression;
using tfplug::Operand;
using tfplug::op_kernels_internal::FlatLaunch;
using tfplug::op_kernels_internal::LaunchOf;
using tfplug::op_kernels_internal::Place;
using tfplug::op_kernels_internal::RecordedLaunch;
using tfplug::op_kernels_internal::Target;
using Table = tfplug::primitives::PrimitiveTable;

Place InBuffer(const Operand&) { return {1, 64}; }

// A primitive that does nothing, and a launch of it.
template <auto member>
struct Empty;
template <class... A,
          absl::Status (*Table::*member)(void*, void*, tfplug::Launcher&, A...)>
struct Empty<member> {
  static absl::Status Call(void*, void*, tfplug::Launcher&, A...) {
    return absl::OkStatus();
  }
  static std::unique_ptr<RecordedLaunch> Launch(A... a) {
    return std::make_unique<LaunchOf<member, true, A...>>(InBuffer, a...);
  }
};

// The primitives do not look at it.
Expression Sum() {
  constexpr DataType kFloat = DataType::kFloat;
  return *tfplug::MakeExpression(
      {kFloat, kFloat}, {kFloat},
      [](tfplug::Value x, tfplug::Value y) { return x + y; });
}

std::vector<Operand> Matrices(size_t count) {
  return std::vector<Operand>(
      count, Operand::Dense(nullptr, DataType::kFloat, {8, 8}));
}

std::unique_ptr<RecordedLaunch> MapOf(size_t num_inputs) {
  auto inputs = Matrices(num_inputs), outputs = Matrices(1);
  using A = absl::Span<Operand>;
  return std::make_unique<
      LaunchOf<&Table::map, false, const Expression&, A, A>>(
      InBuffer, Sum(), absl::MakeSpan(inputs), absl::MakeSpan(outputs));
}

constexpr std::pair<const char*, int> kLaunches[] = {
    {"MapFlat", 3}, {"Map", 3},    {"MapOfMany", 9},
    {"Reduce", 2},  {"MatMul", 3}, {"MatMulMap", 10}};

std::unique_ptr<RecordedLaunch> Make(const std::string& name) {
  auto inputs = Matrices(5), outputs = Matrices(3);
  const Operand matrix = inputs[0];
  if (name == "MapFlat") {
    return std::make_unique<FlatLaunch>(Sum(), tfplug::FlatOperands{64, 0, {}},
                                        std::vector<Place>(3, {1, 64}));
  }
  if (name == "Map") return MapOf(2);
  if (name == "MapOfMany") return MapOf(8);
  if (name == "Reduce") {
    return Empty<&Table::reduce>::Launch({}, absl::MakeSpan(inputs).first(1),
                                         absl::MakeSpan(outputs).first(1));
  }
  if (name == "MatMul") {
    return Empty<&Table::mat_mul>::Launch(matrix, matrix, matrix);
  }
  if (name == "MatMulMap") {
    return Empty<&Table::mat_mul_map>::Launch(
        matrix, matrix, Sum(), absl::MakeSpan(inputs), absl::MakeSpan(outputs));
  }
  return nullptr;
}

[[gnu::noinline]] absl::Status measured(const RecordedLaunch& launch,
                                        const Target& target,
                                        const std::vector<char*>& buffers) {
  return launch.Run(target, buffers);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    for (const auto& [name, operands] : kLaunches) {
      std::printf("%s %d\n", name, operands);
    }
    return 0;
  }
  const auto launch = Make(argv[1]);
  if (launch == nullptr) return 1;
  static char memory[1024];
  const std::vector<char*> buffers = {nullptr, memory};
  Table table = {};
  table.map_flat = [](void*, void*, const Expression&,
                      const tfplug::FlatOperands&) { return absl::OkStatus(); };
  table.map = [](void*, void*, const Expression&, absl::Span<Operand>,
                 absl::Span<Operand>) { return absl::OkStatus(); };
  table.reduce = &Empty<&Table::reduce>::Call;
  table.mat_mul = &Empty<&Table::mat_mul>::Call;
  table.mat_mul_map = &Empty<&Table::mat_mul_map>::Call;
  tfplug::Launcher launcher(&table, nullptr, nullptr, nullptr);
  const Target target = {&table, nullptr, nullptr, &launcher};
  for (int i = std::atoi(argv[2]); i > 0; --i) {
    if (!measured(*launch, target, buffers).ok()) return 1;
  }
}
