// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_INTERNAL_PRIMITIVE_CASE_H_
#define TFPLUG_TESTING_INTERNAL_PRIMITIVE_CASE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/ir/serialize.h"
#include "tfplug/primitives/launcher.h"
#include "tfplug/testing/internal/random_values.h"
#include "tfplug/testing/internal/random_views.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// An operand and the memory behind it.
struct TestArray {
  Operand view;       // without an address
  int64_t first = 0;  // the offset of element (0, 0, ...)
  std::vector<char> bytes;
  bool is_output = false;

  size_t element_size() const { return DataTypeSize(view.type); }
  uint64_t BitsAt(const char* memory, int64_t offset) const {
    uint64_t bits = 0;
    std::memcpy(&bits, memory + offset * static_cast<int64_t>(element_size()),
                element_size());
    return bits;
  }
};

// One launch of a primitive.
struct PrimitiveCase {
  std::string text;  // for the author of a backend
  std::vector<TestArray> arrays;
  // Launches it on the operands of the arrays.
  std::function<absl::Status(Launcher&, const std::vector<Operand>&)> launch;
  // The allowed error of an output that is a float.
  double ulps = 0;
  double absolute = 0;
};

// The types that a backend supports.
using Types = std::vector<DataType>;

// The size of the operands of a case, and how odd they are. A failure is
// searched for from the lowest level on.
enum Level : int { kTiny, kTinyOdd, kFlat, kRandom, kLarge };

// Adds arrays to a case.
class CaseMaker {
 public:
  CaseMaker(Random& random, Level level, bool has_denormals, const Types& types)
      : random_(random),
        level_(level),
        has_denormals_(has_denormals),
        types_(types) {}

  Random& random() { return random_; }
  Level level() const { return level_; }
  const Types& types() const { return types_; }
  bool OneIn(int64_t n) { return Below(random_, n) == 0; }
  // Returns `values`, or small ones in tiny cases.
  Values Odd(Values values) const {
    return level_ == kTiny && values == Values::kAny ? Values::kSmall : values;
  }

  Dims MakeDims() {
    switch (level_) {
      case kTiny:
      case kTinyOdd:
        return {1 + Below(random_, 3)};
      case kFlat:
        return MaybeEmpty(RandomDims(random_, 2));
      case kRandom:
        return MaybeEmpty(RandomDims(random_, 8));
      default:
        return OneIn(2) ? Dims{50000 + Below(random_, 50000)}
                        : Dims{1 + Below(random_, 300), 257};
    }
  }
  // Returns a random size of a matrix or a row.
  int64_t MakeSize(int64_t large) {
    return 1 + Below(random_, level_ <= kTinyOdd ? 3
                              : level_ == kLarge ? large
                                                 : 9);
  }

  // Returns a random type in which values of `computed` are stored.
  DataType StoredType(DataType computed) {
    Types stored;
    for (const DataType type : types_) {
      if (ComputeType(type) == computed) stored.push_back(type);
    }
    if (level_ <= kTinyOdd && OneIn(2)) return computed;
    return stored[static_cast<size_t>(
        Below(random_, static_cast<int64_t>(stored.size())))];
  }

  // Adds an array. Returns its number.
  size_t Add(DataType type, const Dims& dims, Values values,
             bool is_output = false) {
    Layout layout;
    if (level_ >= kFlat) {
      layout = RandomLayout(random_, type, dims, /*may_repeat=*/!is_output);
    } else {
      layout.view = Operand::Dense(nullptr, type, dims);
      layout.size = std::max<int64_t>(layout.view.num_elements(), 1);
    }
    return AddLayout(layout, values, is_output);
  }
  size_t AddOutput(DataType type, const Dims& dims) {
    return Add(type, dims, Values::kSmall, /*is_output=*/true);
  }
  size_t AddLayout(const Layout& layout, Values values, bool is_output) {
    TestArray array;
    array.view = layout.view;
    array.first = layout.first;
    array.is_output = is_output;
    const size_t size = array.element_size();
    array.bytes.resize(static_cast<size_t>(layout.size) * size);
    for (size_t i = 0; i < array.bytes.size(); i += size) {
      const uint64_t bits =
          RandomBits(random_, layout.view.type, Odd(values), has_denormals_);
      std::memcpy(array.bytes.data() + i, &bits, size);
    }
    return Push(std::move(array));
  }
  // Adds an array of integers in [-1, n], some of them out of range.
  size_t AddIndices(DataType type, const Dims& dims, int64_t n) {
    const size_t k = Add(type, dims, Values::kSmall);
    TestArray& array = made_.arrays[k];
    for (size_t i = 0; i < array.bytes.size(); i += array.element_size()) {
      const uint64_t bits = BitsOfInteger(type, Below(random_, n + 2) - 1);
      std::memcpy(array.bytes.data() + i, &bits, array.element_size());
    }
    return k;
  }
  // Adds an operand that may have no memory.
  size_t AddInput(DataType type, const Dims& dims, Values values) {
    const bool has_index = type == DataType::kInt32 || type == DataType::kInt64;
    if (level_ < kFlat || !OneIn(5)) return Add(type, dims, values);
    TestArray array;
    const int64_t number = Below(random_, 5);
    array.view =
        has_index && OneIn(2)
            ? Operand::Index(number, type)
            : Operand::Scalar(
                  type,
                  ConstantBits(type, static_cast<double>(number),
                               type == DataType::kBool ? number % 2 : number));
    for (const int64_t size : dims) {
      array.view.AddDim(size, OneIn(2) ? 0 : Below(random_, 3) - 1);
    }
    return Push(std::move(array));
  }

  PrimitiveCase& made() { return made_; }

 private:
  size_t Push(TestArray array) {
    made_.arrays.push_back(std::move(array));
    return made_.arrays.size() - 1;
  }
  Dims MaybeEmpty(Dims dims) {
    if (!dims.empty() && OneIn(12)) {
      dims[static_cast<size_t>(
          Below(random_, static_cast<int64_t>(dims.size())))] = 0;
    }
    return dims;
  }

  Random& random_;
  const Level level_;
  const bool has_denormals_;
  const Types& types_;
  PrimitiveCase made_;
};

// Returns a value of an expression as a formula: "add(mul(x0, x1), 1)".
inline std::string ValueFormula(const Expression& expression, int32_t value) {
  const Instruction& in = expression.instructions()[static_cast<size_t>(value)];
  const auto input = [&] { return "x" + std::to_string(in.a); };
  switch (in.opcode) {
    case Opcode::kInput:
      return input();
    case Opcode::kElement:
      return input() + "[" + ValueFormula(expression, in.b) + "]";
    case Opcode::kConstant:
      return ValueText(IsFloat(in.type) ? DataType::kDouble : DataType::kInt64,
                       in.bits);
    default:
      break;
  }
  const bool is_cast =
      in.opcode == Opcode::kCast || in.opcode == Opcode::kBitcast;
  std::string text = ir::InfoOf(in.opcode).name;
  if (is_cast) text += "<" + DataTypeName(in.type) + ">";
  text += "(" + ValueFormula(expression, in.a);
  for (const int32_t more : {in.b, in.c}) {
    if (more >= 0) text += ", " + ValueFormula(expression, more);
  }
  return text + ")";
}
// Returns the outputs of an expression as formulas of its inputs x0, x1, ...,
// or the text of a long expression.
inline std::string Formula(const Expression& expression) {
  if (expression.instructions().size() > 9) return Serialize(expression);
  std::string text;
  for (const Expression::Output& output : expression.outputs()) {
    text += (text.empty() ? "" : " and ") +
            ValueFormula(expression, output.value) + " as " +
            DataTypeName(output.type);
  }
  return text;
}

// Returns a description of the view: "float[3, 4] with strides [4, 1]".
inline std::string ViewText(const Operand& view) {
  const auto list = [&](const auto& values) {
    std::string text = "[";
    for (int d = 0; d < view.rank; ++d) {
      text += (d == 0 ? "" : ", ") + std::to_string(values(d));
    }
    return text + "]";
  };
  const auto dim = [&](int d) { return view.dim(d); };
  const auto stride = [&](int d) { return view.stride(d); };
  const char* const kind = view.kind == Operand::Kind::kScalar  ? " kScalar"
                           : view.kind == Operand::Kind::kIndex ? " kIndex"
                                                                : "";
  std::string text = DataTypeName(view.type) + list(dim) + kind;
  if (view.kind != Operand::Kind::kScalar) {
    text += " with strides " + list(stride);
  }
  if (view.axis_size != 0) {
    text += " and an axis of " + std::to_string(view.axis_size);
  }
  return text;
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_INTERNAL_PRIMITIVE_CASE_H_
