// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_BENCHMARKS_LAUNCHES_H_
#define TFPLUG_BENCHMARKS_LAUNCHES_H_

#include <tfplug/base/status_macros.h>
#include <tfplug/compiled/compiled.h>
#include <tfplug/ir/value.h>

#include <utility>

#include "generated_kernels.h"

namespace benchmarks {

// How often a measured_ function launches; Callgrind counts its instructions.
constexpr int kLaunches = 100;

// Makes the plug-in call another function of the driver. Returns the one that
// it called.
template <class Function>
void* Replace(tfplug::DriverSymbol& function, Function* replacement) {
  return std::exchange(function.address, reinterpret_cast<void*>(replacement));
}

// A sum of three vectors, which tfplug launches.
class SumLaunches {
 public:
  template <class Backend, class Stream>
  SumLaunches(Backend& backend, Stream& stream, Memories& memory)
      : memory_(memory),
        launcher_(tfplug::MakeLauncher(backend, stream, memory)) {}

  // Compiles the kernel.
  absl::Status Init() {
    TFPLUG_ASSIGN_OR_RETURN(
        sum_, tfplug::MakeExpression(
                  {kType, kType, kType}, {kType},
                  [](Value x, Value y, Value z) { return x + y + z; }));
    for (void*& address : addresses_) {
      TFPLUG_ASSIGN_OR_RETURN(address, memory_.Allocate(4 * kSize));
    }
    return MapViews();
  }

  absl::Status MapFlat() {
    return launcher_.MapFlat(sum_, {kSize, 0, absl::MakeConstSpan(addresses_)});
  }
  absl::Status MapViews() {
    Operand inputs[] = {Operand::Dense(addresses_[0], kType, {kSize}),
                        Operand::Dense(addresses_[1], kType, {kSize}),
                        Operand::Dense(addresses_[2], kType, {kSize})};
    Operand output = Operand::Dense(addresses_[3], kType, {kSize});
    return launcher_.Map(sum_, absl::MakeSpan(inputs),
                         absl::MakeSpan(&output, 1));
  }

  [[gnu::noinline]] absl::Status measured_flat() {
    for (int i = 0; i < kLaunches; ++i) TFPLUG_RETURN_IF_ERROR(MapFlat());
    return absl::OkStatus();
  }
  [[gnu::noinline]] absl::Status measured_views() {
    for (int i = 0; i < kLaunches; ++i) TFPLUG_RETURN_IF_ERROR(MapViews());
    return absl::OkStatus();
  }

  // Of the inputs and the output.
  absl::Span<void* const> addresses() const { return addresses_; }

 private:
  static constexpr DataType kType = DataType::kFloat;
  static constexpr int64_t kSize = 16;

  Memories& memory_;
  Launcher launcher_;
  Expression sum_;
  void* addresses_[4] = {};
};

}  // namespace benchmarks

#endif  // TFPLUG_BENCHMARKS_LAUNCHES_H_
