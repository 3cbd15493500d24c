// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_RNN_CELL_H_
#define TFPLUG_OP_KERNELS_RNN_CELL_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tfplug/ir/value.h"

#pragma GCC visibility push(hidden)

// The formulas of one step of a recurrent layer, and of its gradient.
namespace tfplug::op_kernels_internal {

// A kind of recurrent layer. A step has products of the input and of the last
// state for each gate; of the latter, those of the last gate of a GRU get a bias
// of their own.
struct RnnCell {
  enum class Mode { kRelu, kTanh, kLstm, kGru };

  Mode mode = Mode::kTanh;
  int gates = 1;
  int stored = 0;  // arrays that the gradient needs, besides the states

  bool has_cell() const { return mode == Mode::kLstm; }
  // Returns whether the bias of the last gate's state is no part of the others.
  bool has_candidate() const { return mode == Mode::kGru; }
  // Returns whether the gradient needs the state before a step, or after it.
  bool needs_old() const { return mode == Mode::kGru; }
  bool needs_new() const { return mode <= Mode::kTanh; }

  static absl::StatusOr<RnnCell> Find(const std::string& name) {
    if (name == "rnn_relu") return RnnCell{Mode::kRelu, 1, 0};
    if (name == "rnn_tanh") return RnnCell{Mode::kTanh, 1, 0};
    if (name == "lstm") return RnnCell{Mode::kLstm, 4, 4};
    if (name == "gru") return RnnCell{Mode::kGru, 3, 4};
    return absl::InvalidArgumentError(
        "rnn_mode " + name + " is none of rnn_relu, rnn_tanh, lstm and gru");
  }

  // Returns the expression of a step. Inputs: the gates' products of the input,
  // those of the state, the bias of the candidate, the old state, the old cell,
  // and whether the step is valid: otherwise, the state stays. Outputs: the new
  // state, the new cell, and, with `stores`, what the gradient needs.
  absl::StatusOr<Expression> Step(DataType type, bool stores) const {
    ExpressionBuilder builder;
    const Values x = Inputs(builder, type, gates);
    const Values h = Inputs(builder, type, gates);
    const Values bias = Inputs(builder, type, has_candidate());
    const Value old = builder.Input(type);
    const Values cell = Inputs(builder, type, has_cell());
    const Value valid = builder.Input(DataType::kBool);
    const auto output = [&](Value value) { builder.Output(value, type); };
    switch (mode) {
      case Mode::kRelu:
      case Mode::kTanh: {
        const Value sum = x[0] + h[0];
        const Value state = mode == Mode::kTanh ? Tanh(sum) : Max(sum, 0);
        output(Select(valid, state, old));
        break;
      }
      case Mode::kLstm: {
        const Value i = Sigmoid(x[0] + h[0]), f = Sigmoid(x[1] + h[1]);
        const Value g = Tanh(x[2] + h[2]), o = Sigmoid(x[3] + h[3]);
        const Value c = f * cell[0] + i * g;
        output(Select(valid, o * Tanh(c), old));
        output(Select(valid, c, cell[0]));
        if (!stores) break;
        for (const Value gate : {i, f, g, o}) output(gate);
        break;
      }
      case Mode::kGru: {
        const Value z = Sigmoid(x[0] + h[0]), r = Sigmoid(x[1] + h[1]);
        const Value q = h[2] + bias[0], n = Tanh(x[2] + r * q);
        output(Select(valid, n + z * (old - n), old));
        if (!stores) break;
        for (const Value gate : {z, r, n, q}) output(gate);
        break;
      }
    }
    return std::move(builder).Build();
  }

  // Returns the expression of the gradient of a step. Inputs: the gradients of
  // the step's output and of its new state, the latter as the sum of a product
  // and of what the next step passed on; the gradient of the new cell; what Step
  // stored; the state, if it is needed; the old and the new cell; whether the
  // step is valid. Outputs: the gradients of the gates' products of the input and,
  // for a candidate, of those of the state, which otherwise are the same; what is
  // passed on to the old state; the gradient of the old cell.
  absl::StatusOr<Expression> Gradient(DataType type) const {
    ExpressionBuilder builder;
    const Value from_output = builder.Input(type);
    const Value from_product = builder.Input(type), past = builder.Input(type);
    const Values from_cell = Inputs(builder, type, has_cell());
    const Values gate = Inputs(builder, type, stored);
    const Values state = Inputs(builder, type, needs_old() || needs_new());
    const Values cell = Inputs(builder, type, has_cell() ? 2 : 0);
    const Value valid = builder.Input(DataType::kBool);
    const Value from_state = from_product + past;
    const Value dh = from_output + from_state;
    const auto output = [&](Value value, Value otherwise) {
      builder.Output(Select(valid, value, otherwise), type);
    };
    const Value zero = dh.Like(0);
    // The gradient of the arguments of tanh and sigmoid, from their values.
    const auto tanh = [](Value d, Value y) { return d * (1 - y * y); };
    const auto sigmoid = [](Value d, Value y) { return d * y * (1 - y); };
    switch (mode) {
      case Mode::kRelu:
        output(Select(state[0] > 0, dh, zero), zero);
        output(zero, from_state);
        break;
      case Mode::kTanh:
        output(tanh(dh, state[0]), zero);
        output(zero, from_state);
        break;
      case Mode::kLstm: {
        const Value &i = gate[0], &f = gate[1], &g = gate[2], &o = gate[3];
        const Value y = Tanh(cell[1]);
        const Value dc = from_cell[0] + tanh(dh * o, y);
        output(sigmoid(dc * g, i), zero);
        output(sigmoid(dc * cell[0], f), zero);
        output(tanh(dc * i, g), zero);
        output(sigmoid(dh * y, o), zero);
        output(zero, from_state);
        output(dc * f, from_cell[0]);
        break;
      }
      case Mode::kGru: {
        const Value &z = gate[0], &r = gate[1], &n = gate[2], &q = gate[3];
        const Value dn = tanh(dh * (1 - z), n);
        output(sigmoid(dh * (state[0] - n), z), zero);
        output(sigmoid(dn * q, r), zero);
        output(dn, zero);
        output(sigmoid(dh * (state[0] - n), z), zero);
        output(sigmoid(dn * q, r), zero);
        output(dn * r, zero);
        output(dh * z, from_state);
        break;
      }
    }
    return std::move(builder).Build();
  }

 private:
  using Values = std::vector<Value>;

  static Values Inputs(ExpressionBuilder& builder, DataType type, int count) {
    Values values;
    values.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) values.push_back(builder.Input(type));
    return values;
  }
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_RNN_CELL_H_
