// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_REGION_LAUNCHES_H_
#define TFPLUG_OP_KERNELS_INTERNAL_REGION_LAUNCHES_H_

#include <algorithm>
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

// Launches of primitives that are stored with the places of their operands, and
// repeated on other memory.
namespace tfplug::op_kernels_internal {

// An address as a distance from the beginning of a buffer. Buffer 0 begins at
// null.
struct Place {
  size_t buffer = 0;
  int64_t offset = 0;

  void* At(char* const* buffers) const { return buffers[buffer] + offset; }
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
  // Repeats the launch with these buffers, of which the first is null.
  virtual absl::Status Run(const Target& target,
                           const std::vector<char*>& buffers) const = 0;

  int node = 0;      // the node of the region that launches it
  int scratch = -1;  // the buffer of its temporary memory; -1: it needs none
};

// ---- Stored arguments --------------------------------------------------------

struct StoredOperand {
  Operand view;
  Place place;
};

struct StoredOperands {
  std::unique_ptr<StoredOperand[]> all;
  size_t count = 0;
  int rank = 0;  // the largest
};

// The operands of a batch normalization, and the place of each, in order.
template <class T>
struct StoredStruct {
  T operands;
  std::vector<Place> places;
};

// ForEachOperand calls visit(operand) for each operand of a struct.
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

// Store returns an argument of a primitive as it is stored. place_of(operand)
// returns the place of an operand.
template <class PlaceOf, class T>
T Store(const PlaceOf&, const T& argument) {
  return argument;
}
template <class PlaceOf>
StoredOperand Store(const PlaceOf& place_of, const Operand& operand) {
  return {operand, place_of(operand)};
}
template <class PlaceOf>
StoredOperands Store(const PlaceOf& place_of,
                     absl::Span<const Operand> operands) {
  StoredOperands stored;
  stored.all.reset(new StoredOperand[operands.size()]);
  for (const Operand& operand : operands) {
    stored.all[stored.count++] = {operand, place_of(operand)};
    stored.rank = std::max(stored.rank, operand.rank);
  }
  return stored;
}
template <class PlaceOf>
StoredOperands Store(const PlaceOf& place_of, absl::Span<Operand> operands) {
  return Store(place_of, absl::Span<const Operand>(operands));
}
template <class PlaceOf, class T>
StoredStruct<T> StoreStruct(const PlaceOf& place_of, const T& operands) {
  StoredStruct<T> stored = {operands, {}};
  ForEachOperand(stored.operands, [&](const Operand& operand) {
    stored.places.push_back(place_of(operand));
  });
  return stored;
}
template <class PlaceOf>
auto Store(const PlaceOf& place_of, const BatchNormTrainingOperands& operands) {
  return StoreStruct(place_of, operands);
}
template <class PlaceOf>
auto Store(const PlaceOf& place_of,
           const BatchNormInferenceOperands& operands) {
  return StoreStruct(place_of, operands);
}
template <class PlaceOf>
auto Store(const PlaceOf& place_of, const BatchNormGradientOperands& operands) {
  return StoreStruct(place_of, operands);
}

// ---- Arguments of one launch -------------------------------------------------

// Makes a launch's arguments from the stored ones. Operands are copied,
// because their addresses differ from run to run and a primitive may change
// them.
class LaunchArguments {
 public:
  LaunchArguments(size_t num_operands, const std::vector<char*>& buffers)
      : buffers_(buffers.data()), to_(storage_) {
    if (ABSL_PREDICT_FALSE(num_operands > kMost)) {
      more_.reset(new char[num_operands * sizeof(Operand)]);
      to_ = more_.get();
    }
  }
  LaunchArguments(const LaunchArguments&) = delete;
  LaunchArguments& operator=(const LaunchArguments&) = delete;

  template <class T>
  const T& Make(const T& stored) {
    return stored;
  }
  const Operand& Make(const StoredOperand& stored) {
    return *CopyAll(&stored, 1, stored.view.rank);
  }
  absl::Span<Operand> Make(const StoredOperands& stored) {
    return {CopyAll(stored.all.get(), stored.count, stored.rank), stored.count};
  }
  template <class T>
  T Make(const StoredStruct<T>& stored) {
    T operands = stored.operands;
    const Place* place = stored.places.data();
    ForEachOperand(operands, [&](Operand& operand) {
      operand.data = (place++)->At(buffers_);
    });
    return operands;
  }

 private:
  static constexpr size_t kMost = 16;
  static_assert(std::is_trivially_copyable_v<Operand>);

  // Most views have few dimensions: copies of the others take most of the time.
  Operand* CopyAll(const StoredOperand* from, size_t count, int rank) {
    if (ABSL_PREDICT_TRUE(rank <= 2)) return CopyDims<2>(from, count);
    if (ABSL_PREDICT_TRUE(rank <= 4)) return CopyDims<4>(from, count);
    return CopyDims<kMaxViewRank>(from, count);
  }
  // Copies `dims` dimensions of each operand.
  template <size_t dims>
  Operand* CopyDims(const StoredOperand* from, size_t count) {
    char* const first = to_;
    char* const* const buffers = buffers_;
    char* to = first;
    for (size_t left = count; left > 0; --left, ++from, to += sizeof(Operand)) {
      constexpr size_t kData = offsetof(Operand, data),
                       kScalar = offsetof(Operand, scalar),
                       kStrides = offsetof(Operand, strides),
                       kSize = dims * sizeof(int64_t);
      const char* const view = reinterpret_cast<const char*>(&from->view);
      std::memcpy(to, view, kData);
      std::memcpy(to + kScalar, view + kScalar,
                  offsetof(Operand, dims) + kSize - kScalar);
      std::memcpy(to + kStrides, view + kStrides, kSize);
      reinterpret_cast<Operand*>(to)->data = from->place.At(buffers);
    }
    to_ = first + count * sizeof(Operand);
    return reinterpret_cast<Operand*>(first);
  }

  char* const* const buffers_;
  char* to_;
  alignas(Operand) char storage_[kMost * sizeof(Operand)];
  std::unique_ptr<char[]> more_;
};

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
  // Calls call(value...).
  template <class Call>
  decltype(auto) Apply(const Call& call) const {
    return call(PackValue<i, T>::value...);
  }
};
template <class... T>
using Pack = PackOf<std::index_sequence_for<T...>, T...>;

// A launch of the primitive at `member` of the table. A are its arguments after
// the launcher.
template <auto member, class... A>
class LaunchOf final : public RecordedLaunch {
 public:
  // place_of(operand) returns the place of an operand; called in order.
  template <class PlaceOf>
  explicit LaunchOf(const PlaceOf& place_of,
                    const std::remove_reference_t<A>&... arguments)
      : arguments_{{Store(
            [&](const Operand& operand) {
              ++num_operands_;
              return place_of(operand);
            },
            arguments)}...} {}

  absl::Status Run(const Target& target,
                   const std::vector<char*>& buffers) const override {
    LaunchArguments arguments(num_operands_, buffers);
    return arguments_.Apply([&](const auto&... stored) {
      return (target.table->*member)(target.backend, target.stream,
                                     *target.launcher,
                                     arguments.Make(stored)...);
    });
  }

 private:
  size_t num_operands_ = 0;
  Pack<decltype(Store(std::declval<Place (&)(const Operand&)>(),
                      std::declval<const std::remove_reference_t<A>&>()))...>
      arguments_;
};

// A launch of MapFlat, whose operands are addresses.
class FlatLaunch final : public RecordedLaunch {
 public:
  FlatLaunch(Expression expression, const FlatOperands& operands,
             std::vector<Place> places)
      : expression_(std::move(expression)),
        operands_(operands),
        places_(std::move(places)) {}

  absl::Status Run(const Target& target,
                   const std::vector<char*>& buffers) const override {
    std::array<void*, FlatOperands::kMost> addresses;
    for (size_t i = 0; i < places_.size(); ++i) {
      addresses[i] = places_[i].At(buffers.data());
    }
    FlatOperands operands = operands_;
    operands.addresses = absl::MakeConstSpan(addresses.data(), places_.size());
    return target.table->map_flat(target.backend, target.stream, expression_,
                                  operands);
  }

 private:
  const Expression expression_;
  FlatOperands operands_;  // without addresses
  const std::vector<Place> places_;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_REGION_LAUNCHES_H_
