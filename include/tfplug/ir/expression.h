// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_IR_EXPRESSION_H_
#define TFPLUG_IR_EXPRESSION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/base/data_type.h"
#include "tfplug/ir/opcodes.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// One step of an Expression. Its result is the value with the step's index;
// `a`, `b` and `c` are the indices of earlier values.
struct Instruction {
  Opcode opcode = Opcode::kConstant;
  // The type of the result. Only kInput, kElement and kCast name types that
  // nothing is computed in (see ComputeType).
  DataType type = DataType::kFloat;
  int32_t a = -1;  // for kInput and kElement the index of the input
  int32_t b = -1;  // for kElement the value that is the index in the axis
  int32_t c = -1;
  // For kConstant the value: a double as its bits, a float as the bits of that
  // double, an integer or bool extended to 64 bits.
  uint64_t bits = 0;

  auto fields() const { return std::tie(opcode, type, a, b, c, bits); }
  friend bool operator==(const Instruction& x, const Instruction& y) {
    return x.fields() == y.fields();
  }
  friend bool operator<(const Instruction& x, const Instruction& y) {
    return x.fields() < y.fields();
  }
};

class Expression;

namespace ir_internal {

template <class T>
inline char type_tag;  // its address identifies T

// The analyses of an expression, at most a few. Thread-safe.
class Analyses {
 public:
  Analyses() = default;
  Analyses(const Analyses&) = delete;
  Analyses& operator=(const Analyses&) = delete;
  ~Analyses() {
    for (Node* node = first_; node != nullptr;) {
      delete std::exchange(node, node->next);
    }
  }

  template <class T>
  const T& Get(const Expression& expression) const {
    for (Node* node = first_; node != nullptr; node = node->next) {
      if (node->type == &type_tag<T>) {
        return static_cast<NodeOf<T>*>(node)->value;
      }
    }
    return Add<T>(expression);
  }

 private:
  // Another thread may add an equal one, which then stays unused.
  template <class T>
  [[gnu::noinline]] const T& Add(const Expression& expression) const {
    auto* const node = new NodeOf<T>(expression);
    node->next = first_;
    while (!first_.compare_exchange_weak(node->next, node)) {
    }
    return node->value;
  }

  struct Node {
    explicit Node(const char* type_of_value) : type(type_of_value) {}
    virtual ~Node() = default;

    const char* const type;
    Node* next = nullptr;
  };
  template <class T>
  struct NodeOf : Node {
    explicit NodeOf(const Expression& expression)
        : Node(&type_tag<T>), value(expression) {}

    const T value;
  };

  mutable std::atomic<Node*> first_{nullptr};
};

}  // namespace ir_internal

// A computation on scalars: some inputs, a list of instructions in which each
// value is assigned once, and some outputs. Map and Reduce apply it to each
// element of their operands. Immutable, and cheap to copy: a task that runs
// after its kernel was destroyed keeps a copy. value.h builds an expression
// from operators, serialize.h writes and reads it as text.
//
// Numbers of 8 and 16 bits are widened where they are loaded and narrowed where
// they are stored or cast, so nothing is computed in them (ComputeType).
class Expression {
 public:
  struct Output {
    int32_t value;
    DataType type;  // in memory

    friend bool operator<(const Output& x, const Output& y) {
      return std::tie(x.value, x.type) < std::tie(y.value, y.type);
    }
  };

  // The identity of floats.
  Expression();
  // Fails with INVALID_ARGUMENT if an instruction has a wrong type, refers to a
  // value that does not precede it, or to an input that does not exist.
  static absl::StatusOr<Expression> Make(std::vector<DataType> inputs,
                                         std::vector<Instruction> instructions,
                                         std::vector<Output> outputs);

  const std::vector<DataType>& inputs() const { return parts_->inputs; }
  const std::vector<Instruction>& instructions() const {
    return parts_->instructions;
  }
  const std::vector<Output>& outputs() const { return parts_->outputs; }

  // Returns a number that two expressions of this process share if, and only
  // if, they are equal: a key for programs compiled from one. It is below 2^31.
  uint32_t id() const { return parts_->id; }

  // Returns T(*this), which is made at the first call and then kept: what an
  // interpreter finds out about expressions. It may refer to instructions().
  template <class T>
  const T& Analysis() const {
    return parts_->analyses.Get<T>(*this);
  }

  // Returns whether the expression only copies its input.
  bool is_copy() const {
    return inputs().size() == 1 && outputs().size() == 1 &&
           instructions().size() == 1 && outputs()[0].type == inputs()[0];
  }

 private:
  struct Parts {
    std::vector<DataType> inputs = {DataType::kFloat};
    std::vector<Instruction> instructions = {
        {Opcode::kInput, DataType::kFloat, 0, -1, -1, 0}};
    std::vector<Output> outputs = {{0, DataType::kFloat}};
    uint32_t id = 0;
    ir_internal::Analyses analyses;
  };
  struct IsLess {
    bool operator()(const std::shared_ptr<const Parts>& x,
                    const std::shared_ptr<const Parts>& y) const {
      return std::tie(x->inputs, x->instructions, x->outputs) <
             std::tie(y->inputs, y->instructions, y->outputs);
    }
  };

  // Returns the parts that all expressions which are equal to these share.
  static std::shared_ptr<const Parts> Shared(std::shared_ptr<Parts> parts);

  std::shared_ptr<const Parts> parts_;
};

// Returns the bits of a constant of `type` for Instruction::bits and
// Operand::scalar.
inline uint64_t ConstantBits(DataType type, double real, int64_t integer) {
  if (!IsFloat(ComputeType(type))) return static_cast<uint64_t>(integer);
  uint64_t bits;
  std::memcpy(&bits, &real, sizeof(bits));
  return bits;
}

namespace ir {

// Calls use(value) for each earlier value that an instruction uses, once.
template <class Use>
void ForEachOperand(const Instruction& in, Use use) {
  const bool reads_input =
      in.opcode == Opcode::kInput || in.opcode == Opcode::kElement;
  const int32_t a = reads_input ? -1 : in.a;
  if (a >= 0) use(static_cast<size_t>(a));
  if (in.b >= 0 && in.b != a) use(static_cast<size_t>(in.b));
  if (in.c >= 0 && in.c != a && in.c != in.b) use(static_cast<size_t>(in.c));
}

}  // namespace ir

namespace ir_internal {

[[gnu::cold, gnu::noinline]] inline absl::Status WrongInstruction(
    size_t i, Opcode opcode, const char* problem) {
  return absl::InvalidArgumentError("instruction " + std::to_string(i) + " (" +
                                    ir::InfoOf(opcode).name +
                                    ") of an expression " + problem);
}

// Returns whether each value that `in` uses precedes it and has a type that the
// opcode takes.
inline absl::Status CheckInstruction(const std::vector<DataType>& inputs,
                                     const std::vector<Instruction>& all,
                                     size_t i) {
  const Instruction& in = all[i];
  const ir::OpcodeInfo info = ir::InfoOf(in.opcode);
  const auto fail = [&](const char* problem) {
    return WrongInstruction(i, in.opcode, problem);
  };
  const auto type_of = [&](int32_t value) {
    return value >= 0 && static_cast<size_t>(value) < i
               ? ComputeType(all[static_cast<size_t>(value)].type)
               : DataType(0);
  };
  if (ComputeType(in.type) == DataType(0)) {
    return fail("has a type that expressions do not compute");
  }
  const int32_t operands[] = {in.a, in.b, in.c};
  const int num_operands = in.opcode == Opcode::kInput     ? 1
                           : in.opcode == Opcode::kElement ? 2
                                                           : info.arity;
  for (int k = num_operands; k < 3; ++k) {
    if (operands[k] != -1) return fail("has too many operands");
  }
  if (in.opcode == Opcode::kInput || in.opcode == Opcode::kElement) {
    if (in.a < 0 || static_cast<size_t>(in.a) >= inputs.size()) {
      return fail("refers to an input that does not exist");
    }
    if (inputs[static_cast<size_t>(in.a)] != in.type) {
      return fail("has another type than its input");
    }
    if (in.opcode == Opcode::kElement && type_of(in.b) != DataType::kInt64) {
      return fail("needs an index of int64");
    }
    return absl::OkStatus();
  }
  for (int k = 0; k < info.arity; ++k) {
    if (type_of(operands[k]) == DataType(0)) {
      return fail("uses a value that does not precede it");
    }
  }
  if (in.opcode == Opcode::kCast) return absl::OkStatus();
  if (in.type != ComputeType(in.type)) {
    return fail("computes in a type that is only stored");
  }
  if (in.opcode == Opcode::kConstant) {
    if (in.type == DataType::kBool && in.bits > 1) {
      return fail("is a bool other than 0 and 1");
    }
    const bool has_32_bits =
        in.bits <= UINT32_MAX || in.bits >= static_cast<uint64_t>(INT32_MIN);
    return DataTypeSize(in.type) == 4 && !IsFloat(in.type) && !has_32_bits
               ? fail("has more bits than its type")
               : absl::OkStatus();
  }
  // The type in which it computes, which for comparisons is not the result's.
  const int first = in.opcode == Opcode::kSelect ? 1 : 0;
  const DataType type = type_of(operands[first]);
  for (int k = first; k < info.arity; ++k) {
    if (type_of(operands[k]) != type) return fail("mixes types");
  }
  if (in.opcode == Opcode::kSelect && type_of(in.a) != DataType::kBool) {
    return fail("needs a condition of bool");
  }
  if (!ir::Allows(info.types, type)) return fail("does not support this type");
  if (in.opcode == Opcode::kBitcast) {
    return DataTypeSize(in.type) == DataTypeSize(type)
               ? absl::OkStatus()
               : fail("changes the size of a value");
  }
  const DataType result = info.gives_bool ? DataType::kBool : type;
  return in.type == result ? absl::OkStatus() : fail("has a wrong result type");
}

}  // namespace ir_internal

inline absl::StatusOr<Expression> Expression::Make(
    std::vector<DataType> inputs, std::vector<Instruction> instructions,
    std::vector<Output> outputs) {
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (auto s = ir_internal::CheckInstruction(inputs, instructions, i);
        !s.ok()) {
      return s;
    }
  }
  if (outputs.empty()) {
    return absl::InvalidArgumentError("an expression needs an output");
  }
  for (const Output& output : outputs) {
    const bool exists = output.value >= 0 &&
                        static_cast<size_t>(output.value) < instructions.size();
    if (!exists || ComputeType(output.type) == DataType(0)) {
      return absl::InvalidArgumentError(
          "an output of an expression refers to no value, or has a type that "
          "expressions do not store");
    }
  }
  auto parts = std::make_shared<Parts>();
  parts->inputs = std::move(inputs);
  parts->instructions = std::move(instructions);
  parts->outputs = std::move(outputs);
  Expression expression;
  expression.parts_ = Shared(std::move(parts));
  return expression;
}

inline Expression::Expression() {
  static const auto* const identity =
      new std::shared_ptr<const Parts>(Shared(std::make_shared<Parts>()));
  parts_ = *identity;
}

inline std::shared_ptr<const Expression::Parts> Expression::Shared(
    std::shared_ptr<Parts> parts) {
  // Programs outlive the kernels that they were compiled for, and so do these.
  static auto& all = *new std::set<std::shared_ptr<const Parts>, IsLess>();
  static auto& mutex = *new std::mutex();
  const std::lock_guard<std::mutex> lock(mutex);
  parts->id = static_cast<uint32_t>(all.size());
  return *all.insert(std::move(parts)).first;
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_IR_EXPRESSION_H_
