// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_RNN_LAYOUT_H_
#define TFPLUG_OP_KERNELS_RNN_LAYOUT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tfplug/kernel/kernel_construction.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/rnn_cell.h"

#pragma GCC visibility push(hidden)

// The arrays of the CudnnRNN ops: inputs, states, parameters, and what a gradient
// needs.
namespace tfplug::op_kernels_internal {

// Returns `view` with its steps, the first dimension, in the opposite order.
inline Operand Reversed(Operand view) {
  view.Advance((view.dim(0) - 1) * view.stride(0));
  view.stride(0) = -view.stride(0);
  return view;
}
// Returns a dense array as a matrix: its last dimension has the columns.
inline Operand AsRows(const Operand& view) {
  const int64_t columns = view.dim(view.rank - 1);
  return Operand::Dense(view.data, view.type,
                        {ir::CountOf(view, 0, view.rank - 1), columns});
}
// Appends `count` parts of the last dimension, which have the same width.
inline void AddParts(const Operand& rows, int count,
                     std::vector<Operand>& parts) {
  const int last = rows.rank - 1;
  for (int i = 0; i < count; ++i) {
    const int64_t width = rows.dim(last) / count;
    parts.push_back(ir::Range(rows, last, i * width, (i + 1) * width));
  }
}

// The parameters of one direction of a layer, with the gates one below the
// other: [gates * units, columns], and the biases [gates * units].
struct RnnWeights {
  Operand of_input, of_state, input_bias, state_bias;
};

// The arrays that one direction of a layer leaves for its gradient. There are
// time + 1 states: the first one is the initial state or, in reverse, the last.
struct RnnReserve {
  Operand h, c;    // [time + 1, batch, units]
  Operand stored;  // [time, batch, RnnCell::stored * units]
};

struct RnnSizes {
  RnnCell cell;
  int64_t time, batch, input, units, layers, directions;

  // Returns the elements of all gates of a step of a sequence.
  int64_t width() const { return cell.gates * units; }
  // A direction of a layer is number layer * directions + direction.
  int64_t count() const { return layers * directions; }
  bool IsReverse(int64_t p) const { return p % directions == 1; }
  int64_t inputs_of(int64_t p) const {
    return p < directions ? input : directions * units;
  }

  // Returns the number of parameters: the weights of all layers, of the input
  // before those of the state, and then their biases in the same order.
  absl::StatusOr<int64_t> CountParams() const {
    const auto of = [](int64_t n) { return static_cast<double>(n); };
    const double most = of(cell.gates) * of(units) * of(count()) *
                        (of(input) + 3 * of(units) + 2);
    if (most > 1e18) {
      return absl::InvalidArgumentError("the RNN has too many parameters");
    }
    return StartOfWeights(count()) + count() * 2 * width();
  }
  RnnWeights WeightsOf(const Operand& params, int64_t p) const {
    const int64_t start = StartOfWeights(p), columns = inputs_of(p);
    const int64_t biases = StartOfWeights(count()) + p * 2 * width();
    const auto at = [&](int64_t offset, const Ints& dims) {
      Operand view = params;
      return Operand::Dense(view.Advance(offset).data, view.type, dims);
    };
    return {at(start, {width(), columns}),
            at(start + width() * columns, {width(), units}),
            at(biases, {width()}), at(biases + width(), {width()})};
  }
  // Returns the bias of the state's part of the last gate, for each step of each
  // sequence.
  Operand CandidateBias(const RnnWeights& weights) const {
    return ForSteps(ir::WithDim(
        ir::Range(weights.state_bias, 0, width() - units, width()), 0, batch));
  }
  // Returns `time` of the time + 1 states, from the first or the second one on.
  Operand StatesOf(const Operand& states, bool from_second) const {
    return ir::Range(states, 0, from_second, time + from_second);
  }
  // Returns a view that is the same in all steps.
  Operand ForSteps(const Operand& of_step) const {
    return ir::WithDim(of_step, 0, time);
  }
  // Returns values of sequences or steps, for all units.
  Operand ForUnits(Operand of_sequence) const {
    return of_sequence.AddDim(units, 0);
  }

  // Return the number of elements of the reserved space, and its parts: that of
  // each direction of each layer, and then the outputs of all layers but the
  // last one.
  int64_t reserve() const {
    return count() * ReserveOfOne() + (layers - 1) * LayerOutputSize();
  }
  RnnReserve ReserveOf(const Operand& reserve, int64_t p) const {
    Operand at = reserve;
    at.Advance(p * ReserveOfOne());
    const auto next = [&](const Ints& dims) {
      const Operand view = Operand::Dense(at.data, at.type, dims);
      at.Advance(view.num_elements());
      return view;
    };
    RnnReserve result;
    result.h = next({time + 1, batch, units});
    if (cell.has_cell()) result.c = next({time + 1, batch, units});
    result.stored = next({time, batch, cell.stored * units});
    return result;
  }
  Operand LayerOutput(const Operand& reserve, int64_t layer) const {
    Operand at = reserve;
    at.Advance(count() * ReserveOfOne() + layer * LayerOutputSize());
    return Operand::Dense(at.data, at.type, {time, batch, directions * units});
  }

 private:
  int64_t StartOfWeights(int64_t p) const {
    const int64_t later = p < directions ? 0 : p - directions;
    return width() * ((p - later) * (input + units) +
                      later * (directions * units + units));
  }
  int64_t ReserveOfOne() const {
    const int64_t states = (time + 1) * batch * units;
    return states * (1 + cell.has_cell()) + time * batch * cell.stored * units;
  }
  int64_t LayerOutputSize() const { return time * batch * directions * units; }
};

// The layout of an op's arrays, by its attributes.
struct RnnLayout {
  RnnCell cell;
  int64_t directions = 1;
  bool time_major = true;

  static absl::StatusOr<RnnLayout> Make(KernelConstruction& construction) {
    RnnLayout layout;
    TFPLUG_ASSIGN_OR_RETURN(const std::string mode,
                            construction.GetAttr<std::string>("rnn_mode"));
    TFPLUG_ASSIGN_OR_RETURN(layout.cell, RnnCell::Find(mode));
    TFPLUG_ASSIGN_OR_RETURN(const std::string direction,
                            construction.GetAttr<std::string>("direction"));
    layout.directions = direction == "bidirectional" ? 2 : 1;
    TFPLUG_ASSIGN_OR_RETURN(const std::string input_mode,
                            construction.GetAttr<std::string>("input_mode"));
    if (input_mode != "linear_input") {
      return absl::UnimplementedError("input_mode " + input_mode +
                                      " is not supported; use linear_input");
    }
    if (construction.HasAttr("num_proj")) {
      TFPLUG_ASSIGN_OR_RETURN(const int64_t num_proj,
                              construction.GetAttr<int64_t>("num_proj"));
      if (num_proj != 0) {
        return absl::UnimplementedError(
            "num_proj is not supported; multiply the output instead");
      }
    }
    return layout;
  }

  // Returns a view with the time or, of states, the layers first.
  Operand TimeMajor(Operand view) const {
    if (time_major) return view;
    std::swap(view.dim(0), view.dim(1));
    std::swap(view.stride(0), view.stride(1));
    return view;
  }

  absl::StatusOr<RnnSizes> SizesOf(const Operand& x, const Operand& h,
                                   const Operand& params) const {
    if (x.rank != 3) {
      return absl::InvalidArgumentError("RNN input must be a 3-D vector.");
    }
    if (h.rank != 3) {
      return absl::InvalidArgumentError("RNN input_h must be a 3-D vector.");
    }
    const Operand in = TimeMajor(x), state = TimeMajor(h);
    RnnSizes sizes = {cell,      in.dim(0),    in.dim(1),
                      in.dim(2), state.dim(2), state.dim(0) / directions,
                      directions};
    if (state.dim(1) != sizes.batch || state.dim(0) % directions != 0 ||
        sizes.layers < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Invalid input_h shape: ", ShapeOf(h).ToString(), " of an RNN with ",
          directions, " directions and the input ", ShapeOf(x).ToString()));
    }
    if (sizes.input < 1 || sizes.units < 1) {
      return absl::InvalidArgumentError(
          "an RNN's input and state must have at least one feature, got "
          "input " +
          ShapeOf(x).ToString() + " and input_h " + ShapeOf(h).ToString());
    }
    TFPLUG_RETURN_IF_ERROR(CheckParams(sizes, params));
    return sizes;
  }
  static absl::Status CheckParams(const RnnSizes& sizes,
                                  const Operand& params) {
    TFPLUG_ASSIGN_OR_RETURN(const int64_t count, sizes.CountParams());
    if (params.num_elements() == count) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "params of this RNN must have " + std::to_string(count) +
        " elements, got shape " + ShapeOf(params).ToString());
  }

  Shape OutputShape(const RnnSizes& sizes) const {
    return Ordered(sizes.time, sizes.batch, sizes.directions * sizes.units);
  }
  Shape StateShape(const RnnSizes& sizes) const {
    return Ordered(sizes.count(), sizes.batch, sizes.units);
  }
  // A scalar if there is no cell.
  Shape CellShape(const RnnSizes& sizes) const {
    return cell.has_cell() ? StateShape(sizes) : Shape();
  }

 private:
  Shape Ordered(int64_t first, int64_t batch, int64_t last) const {
    return time_major ? Shape{first, batch, last} : Shape{batch, first, last};
  }
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_RNN_LAYOUT_H_
