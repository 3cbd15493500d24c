// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_REGION_LAUNCHES_H_
#define TFPLUG_OP_KERNELS_INTERNAL_REGION_LAUNCHES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tfplug/ir/expression.h"
#include "tfplug/ir/reduction.h"
#include "tfplug/ir/view.h"
#include "tfplug/primitives/launcher.h"
#include "tfplug/primitives/nn.h"

#pragma GCC visibility push(hidden)

// Launches of primitives that are kept with the places of their operands, and
// repeated on other memory.
namespace tfplug::op_kernels_internal {

// An address as a distance from the beginning of a buffer. Without a buffer,
// the address is null.
struct Place {
  int buffer = -1;
  int64_t offset = 0;

  void* At(const std::vector<char*>& buffers) const {
    return buffer < 0 ? nullptr : buffers[static_cast<size_t>(buffer)] + offset;
  }
};

// A backend on one stream.
struct Target {
  const primitives::PrimitiveTable* table;
  void* backend;
  void* stream;
  Launcher* launcher;
};

class RecordedLaunch {
 public:
  virtual ~RecordedLaunch() = default;
  // Repeats the launch with these buffers.
  virtual absl::Status Run(const Target& target,
                           const std::vector<char*>& buffers) const = 0;

  int node = 0;               // the node of the region that launches it
  std::vector<Place> places;  // of the operands, in order
};

using OwnedOperands = std::vector<Operand>;

// A copy of operands for one launch, of their first dimensions only.
class LaunchedOperands {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): for Pack::As.
  LaunchedOperands(const OwnedOperands& operands) : size_(operands.size()) {
    char* to = storage_;
    if (ABSL_PREDICT_FALSE(size_ > kMost)) {
      more_.reset(new char[size_ * sizeof(Operand)]);
      to = more_.get();
    }
    operands_ = reinterpret_cast<Operand*>(to);
    for (const Operand& operand : operands) {
      Copy(operand, to);
      to += sizeof(Operand);
    }
  }
  LaunchedOperands(const LaunchedOperands&) = delete;
  LaunchedOperands& operator=(const LaunchedOperands&) = delete;
  Operand* begin() { return operands_; }
  Operand* end() { return operands_ + size_; }
  absl::Span<Operand> span() { return absl::MakeSpan(operands_, size_); }

 private:
  static constexpr size_t kMost = 16;
  static_assert(std::is_trivially_copyable_v<Operand>);

  // Most views have few dimensions: copies of the others take most of the time.
  static void Copy(const Operand& from, char* to) {
    if (ABSL_PREDICT_TRUE(from.rank <= 2)) return CopyDims<2>(from, to);
    if (ABSL_PREDICT_TRUE(from.rank <= 4)) return CopyDims<4>(from, to);
    std::memcpy(to, &from, sizeof(Operand));
  }
  template <size_t n>
  static void CopyDims(const Operand& from, char* to) {
    std::memcpy(to, &from, offsetof(Operand, dims) + n * sizeof(int64_t));
    std::memcpy(to + offsetof(Operand, strides), from.strides.data(),
                n * sizeof(int64_t));
  }

  const size_t size_;
  Operand* operands_;
  alignas(Operand) char storage_[kMost * sizeof(Operand)];
  std::unique_ptr<char[]> more_;
};

// ForEachOperand calls visit(operand) for each operand of an argument.
template <class T, class Visit>
void ForEachOperand(const T&, const Visit&) {}
template <class Visit>
void ForEachOperand(Operand& operand, const Visit& visit) {
  visit(operand);
}
template <class Visit>
void ForEachOperand(OwnedOperands& operands, const Visit& visit) {
  for (Operand& operand : operands) visit(operand);
}
template <class Visit>
void ForEachOperand(LaunchedOperands& operands, const Visit& visit) {
  for (Operand& operand : operands) visit(operand);
}
template <class Visit>
void ForEachOperand(BatchNormTrainingOperands& o, const Visit& visit) {
  for (Operand* operand :
       {&o.x, &o.scale, &o.offset, &o.old_mean, &o.old_variance, &o.y,
        &o.new_mean, &o.new_variance, &o.mean, &o.variance}) {
    visit(*operand);
  }
}
template <class Visit>
void ForEachOperand(BatchNormInferenceOperands& o, const Visit& visit) {
  for (Operand* operand :
       {&o.x, &o.scale, &o.offset, &o.mean, &o.variance, &o.y}) {
    visit(*operand);
  }
}
template <class Visit>
void ForEachOperand(BatchNormGradientOperands& o, const Visit& visit) {
  for (Operand* operand :
       {&o.y_gradient, &o.x, &o.scale, &o.mean, &o.variance, &o.x_gradient,
        &o.scale_gradient, &o.offset_gradient}) {
    visit(*operand);
  }
}

// The type in which an argument of a primitive is kept, and the argument made
// of it.
template <class A>
struct Kept {
  using Type = std::decay_t<A>;
  template <class T>
  static A Argument(T& value) {
    return value;
  }
};
template <class T>
struct Kept<absl::Span<T>> {
  using Type = OwnedOperands;
  static absl::Span<T> Argument(LaunchedOperands& value) {
    return value.span();
  }
};

// The type of an argument during a launch: operands are copied, because their
// addresses differ from run to run and a primitive may change them.
template <class T>
inline constexpr bool kHasOperands =
    std::is_same_v<T, Operand> ||
    std::is_same_v<T, BatchNormTrainingOperands> ||
    std::is_same_v<T, BatchNormInferenceOperands> ||
    std::is_same_v<T, BatchNormGradientOperands>;
template <class A>
using During = std::conditional_t<
    std::is_same_v<typename Kept<A>::Type, OwnedOperands>, LaunchedOperands,
    std::conditional_t<kHasOperands<typename Kept<A>::Type>,
                       typename Kept<A>::Type, const typename Kept<A>::Type&>>;

template <class A>
typename Kept<A>::Type Keep(const std::remove_reference_t<A>& argument) {
  if constexpr (std::is_same_v<typename Kept<A>::Type, OwnedOperands>) {
    return OwnedOperands(argument.begin(), argument.end());
  } else {
    return argument;
  }
}

// A list of values. A std::tuple would do, but is compiled for several times as
// long.
template <size_t, class T>
struct PackValue {
  T value;
};
template <class Indices, class... T>
struct PackOf;
template <size_t... i, class... T>
struct PackOf<std::index_sequence<i...>, T...> : PackValue<i, T>... {
  // Calls call(value...), of which each may be changed.
  template <class Call>
  decltype(auto) Apply(const Call& call) {
    return call(PackValue<i, T>::value...);
  }
  // Returns a list of other types with the same values.
  template <class... U>
  auto As() const {
    return PackOf<std::index_sequence<i...>, U...>{{PackValue<i, T>::value}...};
  }
};
template <class... T>
using Pack = PackOf<std::index_sequence_for<T...>, T...>;

// A launch of the primitive at `member` of the table. kLauncher: it takes the
// launcher before its other arguments.
template <auto member, bool kLauncher, class... A>
class LaunchOf final : public RecordedLaunch {
 public:
  explicit LaunchOf(const std::remove_reference_t<A>&... arguments)
      : arguments_{{Keep<A>(arguments)}...} {}

  Pack<typename Kept<A>::Type...>& arguments() { return arguments_; }

  absl::Status Run(const Target& target,
                   const std::vector<char*>& buffers) const override {
    return arguments_.template As<During<A>...>().Apply([&](auto&... argument) {
      const Place* place = places.data();
      (ForEachOperand(
           argument,
           [&](Operand& operand) { operand.data = (place++)->At(buffers); }),
       ...);
      if constexpr (kLauncher) {
        return (target.table->*member)(target.backend, target.stream,
                                       *target.launcher,
                                       Kept<A>::Argument(argument)...);
      } else {
        return (target.table->*member)(target.backend, target.stream,
                                       Kept<A>::Argument(argument)...);
      }
    });
  }

 private:
  Pack<typename Kept<A>::Type...> arguments_;
};

// A launch of MapFlat, whose operands are addresses.
class FlatLaunch final : public RecordedLaunch {
 public:
  FlatLaunch(Expression expression, const FlatOperands& operands)
      : expression_(std::move(expression)), operands_(operands) {}

  absl::Status Run(const Target& target,
                   const std::vector<char*>& buffers) const override {
    std::array<void*, FlatOperands::kMost> addresses;
    for (size_t i = 0; i < places.size(); ++i) {
      addresses[i] = places[i].At(buffers);
    }
    FlatOperands operands = operands_;
    operands.addresses = absl::MakeConstSpan(addresses.data(), places.size());
    return target.table->map_flat(target.backend, target.stream, expression_,
                                  operands);
  }

 private:
  const Expression expression_;
  FlatOperands operands_;  // without addresses
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_REGION_LAUNCHES_H_
