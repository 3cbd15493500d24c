// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_COMPILED_LAUNCH_PLAN_H_
#define TFPLUG_COMPILED_LAUNCH_PLAN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tfplug/compiled/program.h"
#include "tfplug/ir/opcodes.h"
#include "tfplug/ir/view.h"

#pragma GCC visibility push(hidden)

namespace tfplug::compiled_internal {

enum class Primitive : uint8_t { kMap, kReduce, kMatMul, kMatMulMap };

// Returns a hash whose highest bits are the best ones.
constexpr uint64_t Mix(uint64_t word) { return word * 0x9e3779b97f4a7c15; }

// Identifies a program of a device: what it computes, and how its operands lie
// in memory. Two programs with equal keys have the same source.
struct ProgramKey {
  Primitive primitive = Primitive::kMap;
  uint64_t code = 0;  // Expression::id, Reduction::id or CodeOfMatMul
  uint32_t variant = 0;
  int kept = 0, rank = 0;
  bool is_wide = false;
  // Has an entry for each input and output: its kind and the classes of its
  // inner strides.
  absl::InlinedVector<uint8_t, 32> operands;

  uint64_t Hash() const {
    uint64_t hash = Mix(code ^ uint64_t{variant} << 32);
    for (const uint8_t operand : operands) hash = Mix(hash ^ operand);
    return hash;
  }
  friend bool operator==(const ProgramKey& a, const ProgramKey& b) {
    return a.primitive == b.primitive && a.code == b.code &&
           a.variant == b.variant && a.kept == b.kept && a.rank == b.rank &&
           a.is_wide == b.is_wide && a.operands == b.operands;
  }
};

// Lists the strides that a program is compiled for; others are parameters.
enum class StrideClass : uint8_t { kZero, kOne, kOther };

inline StrideClass ClassOfStride(int64_t stride) {
  return stride == 0   ? StrideClass::kZero
         : stride == 1 ? StrideClass::kOne
                       : StrideClass::kOther;
}
inline bool HasAxis(const Operand& operand) { return operand.axis_size > 0; }

// Returns the parameter for an operand that is not in memory.
inline uint64_t ScalarParameter(const Operand& operand) {
  uint64_t bits = operand.scalar;
  if (operand.kind == Operand::Kind::kScalar &&
      ComputeType(operand.type) == DataType::kFloat) {
    double real;
    std::memcpy(&real, &bits, sizeof(real));
    const auto narrow = static_cast<float>(real);
    bits = 0;
    std::memcpy(&bits, &narrow, sizeof(narrow));
  }
  return bits;
}

// One launch of a kernel: its key and its arguments, without allocating. The
// kernel's arguments are an address for each operand in memory, and one struct
// with the offsets of these (in languages that need them), a constant for each
// other operand, sizes, strides, and extra indices.
class LaunchPlan {
 public:
  // OpenCL guarantees 1,024 bytes for all arguments.
  static constexpr size_t kMaxParameters = 880;

  // Inputs have `rank` dimensions, the outputs the first `kept` of them. The
  // operands must outlive the plan.
  LaunchPlan(const Target& target, int kept, int rank, Operands inputs,
             Operands outputs)
      : target_(target),
        kept_(kept),
        rank_(rank),
        inputs_(inputs),
        outputs_(outputs) {}

  int kept() const { return kept_; }
  int rank() const { return rank_; }
  size_t num_inputs() const { return inputs_.size(); }
  size_t num_operands() const { return inputs_.size() + outputs_.size(); }
  const Operand& operand(size_t k) const {
    return k < inputs_.size() ? inputs_[k] : outputs_[k - inputs_.size()];
  }
  int64_t size(int d) const {
    return d < kept_ ? outputs_[0].dim(d) : inputs_[0].dim(d);
  }
  // Returns whether the stride of dimension `d` selects the program.
  bool IsInner(int d) const { return d == kept_ - 1 || d == rank_ - 1; }
  bool is_wide() const { return is_wide_; }
  size_t num_offsets() const { return num_offsets_; }

  // Writes the arguments and the key. `variant` distinguishes programs of equal
  // operands, `largest_index` bounds all indices.
  absl::Status Fill(Primitive primitive, uint64_t code, uint32_t variant,
                    int64_t largest_index);
  // Adds a parameter that KernelSource::Extra names.
  void AddExtra(int64_t value) { AddValue(value); }
  // Sets the number of groups, after all extra parameters.
  absl::Status SetGroups(int64_t groups) {
    const int64_t most = target_.most_groups;
    const int64_t rows = std::max<int64_t>((groups + most - 1) / most, 1);
    if (rows > most) return TooManyGroups();
    if (target_.HasRows()) AddValue(groups);
    grid_.rows = static_cast<uint32_t>(rows);
    grid_.groups = static_cast<uint32_t>((groups + rows - 1) / rows);
    return absl::OkStatus();
  }

  const ProgramKey& key() const { return key_; }
  const Grid& grid() const { return grid_; }
  KernelArguments arguments() {
    KernelArguments arguments;
    arguments.pointers = pointers_;
    arguments.parameters = parameters_;
    arguments.parameters_size = (size_ + 7) / 8 * 8;
    arguments.offsets =
        absl::MakeSpan(reinterpret_cast<int64_t*>(parameters_), num_offsets_);
    return arguments;
  }

  // Returns the parameters after the offsets and scalars, 8 bytes each.
  std::vector<uint64_t> CommonParameters() const {
    const auto begin = static_cast<size_t>(scalars_ - parameters_);
    std::vector<uint64_t> words((size_ + 7) / 8 - begin / 8);
    std::memcpy(words.data(), scalars_, words.size() * 8);
    return words;
  }

  // ---- Called by VisitParameters -------------------------------------------

  void VisitPointer(size_t /*k*/, const Operand& operand) {
    pointers_.push_back(operand.data);
  }
  void VisitScalar(size_t /*k*/, const Operand& operand) {
    const uint64_t bits = ScalarParameter(operand);
    std::memcpy(scalars_, &bits, sizeof(bits));
    scalars_ += sizeof(bits);
  }
  void VisitSize(int /*d*/, int64_t size) { AddValue(size); }
  void VisitStride(size_t /*k*/, int /*d*/, int64_t stride) {
    AddValue(stride);
  }
  void VisitAxis(size_t /*k*/, int64_t size, int64_t stride) {
    AddValue(size);
    AddValue(stride);
  }

 private:
  static constexpr size_t kMaxExtras = 8;

  void AddValue(int64_t value) {
    if (is_wide_) {
      std::memcpy(parameters_ + size_, &value, 8);
      size_ += 8;
    } else {
      const auto narrow = static_cast<int32_t>(value);
      std::memcpy(parameters_ + size_, &narrow, 4);
      size_ += 4;
    }
  }
  // Returns whether an offset or index needs 64 bits.
  bool NeedsWide(int64_t largest_index) const;
  [[gnu::cold, gnu::noinline]] static absl::Status TooManyParameters() {
    return absl::UnimplementedError(
        "a kernel has more addresses, sizes and strides than a launch may have "
        "(880 bytes without the addresses, or Target::most_argument_bytes); "
        "reshape its tensors to fewer dimensions");
  }
  [[gnu::cold, gnu::noinline]] static absl::Status TooManyGroups() {
    return absl::UnimplementedError(
        "a kernel needs more groups than the device can start; use smaller "
        "tensors");
  }

  const Target& target_;
  const int kept_, rank_;
  const Operands inputs_, outputs_;
  ProgramKey key_;
  Grid grid_;
  bool is_wide_ = false;
  absl::InlinedVector<void*, 16> pointers_;
  size_t num_offsets_ = 0;
  size_t size_ = 0;  // of parameters_
  char* scalars_ = nullptr;
  alignas(8) char parameters_[kMaxParameters];
};

// Calls a function of `sink` for each parameter of the plan's kernel, in their
// order.
template <class Sink>
void VisitParameters(Sink& sink, const LaunchPlan& plan) {
  for (size_t k = 0; k < plan.num_operands(); ++k) {
    const Operand& operand = plan.operand(k);
    if (operand.has_memory()) {
      sink.VisitPointer(k, operand);
    } else {
      sink.VisitScalar(k, operand);
    }
  }
  for (int d = 0; d < plan.rank(); ++d) sink.VisitSize(d, plan.size(d));
  for (size_t k = 0; k < plan.num_operands(); ++k) {
    const Operand& operand = plan.operand(k);
    if (operand.kind == Operand::Kind::kScalar) continue;
    for (int d = 0; d < operand.rank; ++d) {
      const int64_t stride = operand.stride(d);
      if (plan.IsInner(d) && ClassOfStride(stride) != StrideClass::kOther) {
        continue;
      }
      sink.VisitStride(k, d, stride);
    }
    if (HasAxis(operand)) {
      sink.VisitAxis(k, operand.axis_size, operand.axis_stride);
    }
  }
}

inline bool LaunchPlan::NeedsWide(int64_t largest_index) const {
  constexpr int64_t kLimit = INT32_MAX;
  if (largest_index > kLimit) return true;
  for (size_t k = 0; k < num_operands(); ++k) {
    const Operand& view = operand(k);
    int64_t reach = 0;
    for (int d = 0; d < view.rank; ++d) {
      const int64_t stride = view.stride(d);
      reach += (view.dim(d) - 1) * (stride < 0 ? -stride : stride);
    }
    const int64_t axis_stride =
        view.axis_stride < 0 ? -view.axis_stride : view.axis_stride;
    reach += view.axis_size * axis_stride;
    if (view.kind != Operand::Kind::kScalar && reach > kLimit) return true;
  }
  return false;
}

inline absl::Status LaunchPlan::Fill(Primitive primitive, uint64_t code,
                                     uint32_t variant, int64_t largest_index) {
  const bool is_loop =
      target_.RunsItemsInLoops() || target_.language->runs_groups;
  grid_.group_size = is_loop ? 1 : static_cast<uint32_t>(target_.group_size);
  is_wide_ = NeedsWide(largest_index);
  // Assigned one by one: g++ 12 warns of an assignment of the whole.
  key_.primitive = primitive;
  key_.code = code;
  key_.variant = variant;
  key_.kept = kept_;
  key_.rank = rank_;
  key_.is_wide = is_wide_;
  key_.operands.clear();
  size_t memories = 0, others = 0, values = static_cast<size_t>(rank_);
  for (size_t k = 0; k < num_operands(); ++k) {
    const Operand& view = operand(k);
    const auto class_of = [&](int d) {
      return d >= 0 && d < view.rank
                 ? static_cast<unsigned>(ClassOfStride(view.stride(d)))
                 : 3u;
    };
    ++(view.has_memory() ? memories : others);
    const bool is_scalar = view.kind == Operand::Kind::kScalar;
    values += is_scalar ? 0 : static_cast<size_t>(view.rank) + 2;
    key_.operands.push_back(static_cast<uint8_t>(
        static_cast<unsigned>(view.kind) |
        (is_scalar ? 0
                   : class_of(kept_ - 1) << 2 | class_of(rank_ - 1) << 4 |
                         (HasAxis(view) ? 1u << 6 : 0u))));
  }
  num_offsets_ = target_.language->has_offsets ? memories : 0;
  const size_t head = (num_offsets_ + others) * 8;
  const size_t size = head + (values + kMaxExtras) * (is_wide_ ? 8 : 4);
  if (size > kMaxParameters ||
      size + memories * 8 > target_.most_argument_bytes) {
    return TooManyParameters();
  }
  scalars_ = parameters_ + num_offsets_ * 8;
  size_ = head;
  VisitParameters(*this, *this);
  return absl::OkStatus();
}

}  // namespace tfplug::compiled_internal

#pragma GCC visibility pop

#endif  // TFPLUG_COMPILED_LAUNCH_PLAN_H_
