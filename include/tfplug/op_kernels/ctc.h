// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_CTC_H_
#define TFPLUG_OP_KERNELS_CTC_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tfplug/op_kernels/read_then_host_kernel.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// CTCLoss, on the host, like TensorFlow's own kernel; and CTCLossV2, whose blank
// is the first class.
namespace tfplug {
namespace op_kernels_internal {

// The loss and the gradient of one sequence (Graves, "Supervised Sequence
// Labelling with Recurrent Neural Networks", chapter 7), in logarithms.
class CtcSequence {
 public:
  // `labels` has a blank before and after each label.
  CtcSequence(std::vector<int64_t> labels, int64_t time, int64_t classes,
              bool merges_repeated)
      : blank_(labels[0]),
        labels_(std::move(labels)),
        states_(static_cast<int64_t>(labels_.size())),
        time_(time),
        classes_(classes),
        merges_repeated_(merges_repeated) {}

  // logits(t) and gradient(t) return the rows of a step. Returns the loss.
  template <class Logits, class Gradient>
  double Compute(Logits logits, Gradient gradient) {
    logs_.resize(Size(time_ * classes_));
    for (int64_t t = 0; t < time_; ++t) SetLogs(t, logits(t));
    forward_.assign(Size(time_ * states_), kLogOfZero);
    backward_ = forward_;
    Forward();
    Backward();
    double total = kLogOfZero;
    for (int64_t u = 0; u < states_; ++u) {
      total = LogSum(total, forward_[Size(u)] + backward_[Size(u)]);
    }
    for (int64_t t = 0; t < time_; ++t) {
      AddGradient(t, total, gradient(t));
    }
    return -total;
  }

 private:
  static constexpr double kLogOfZero = -std::numeric_limits<double>::infinity();

  static size_t Size(int64_t n) { return static_cast<size_t>(n); }
  static double LogSum(double a, double b) {
    if (a == kLogOfZero) return b;
    if (b == kLogOfZero) return a;
    return std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
  }
  bool IsBlank(int64_t u) const { return labels_[Size(u)] == blank_; }
  double LogOf(int64_t t, int64_t u) const {
    return logs_[Size(t * classes_ + labels_[Size(u)])];
  }
  // Returns whether a path may go from state `u` to `u + step` in one step.
  bool MayMove(int64_t u, int64_t step) const {
    const int64_t to = u + step;
    if (step == 0) return merges_repeated_ || IsBlank(u);
    if (step == 1) return true;
    return !IsBlank(to) &&
           !(merges_repeated_ && labels_[Size(u)] == labels_[Size(to)]);
  }
  // Return the first and the last of the states that can be reached, and from
  // which the end can be reached.
  int64_t First(int64_t t) const {
    return std::max<int64_t>(0, states_ - 2 * (time_ - t));
  }
  int64_t Last(int64_t t) const { return std::min(states_, 2 * (t + 1)); }

  template <class T>
  void SetLogs(int64_t t, const T* logits) {
    double largest = kLogOfZero, sum = 0;
    for (int64_t c = 0; c < classes_; ++c) {
      largest = std::max(largest, static_cast<double>(logits[c]));
    }
    for (int64_t c = 0; c < classes_; ++c) {
      sum += std::exp(static_cast<double>(logits[c]) - largest);
    }
    const double shift = largest + std::log(sum);
    for (int64_t c = 0; c < classes_; ++c) {
      logs_[Size(t * classes_ + c)] = static_cast<double>(logits[c]) - shift;
    }
  }

  void Forward() {
    for (int64_t u = 0; u < std::min<int64_t>(states_, 2); ++u) {
      forward_[Size(u)] = LogOf(0, u);
    }
    for (int64_t t = 1; t < time_; ++t) {
      for (int64_t u = First(t); u < Last(t); ++u) {
        double sum = kLogOfZero;
        for (int64_t step = 0; step < 3 && step <= u; ++step) {
          if (!MayMove(u - step, step)) continue;
          sum = LogSum(sum, forward_[Size((t - 1) * states_ + u - step)]);
        }
        forward_[Size(t * states_ + u)] = sum + LogOf(t, u);
      }
    }
  }
  void Backward() {
    for (int64_t u = std::max<int64_t>(states_ - 2, 0); u < states_; ++u) {
      backward_[Size((time_ - 1) * states_ + u)] = 0;
    }
    for (int64_t t = time_ - 1; t-- > 0;) {
      for (int64_t u = First(t); u < Last(t); ++u) {
        double sum = kLogOfZero;
        for (int64_t step = 0; step < 3 && u + step < states_; ++step) {
          if (!MayMove(u, step)) continue;
          sum = LogSum(sum, backward_[Size((t + 1) * states_ + u + step)] +
                                LogOf(t + 1, u + step));
        }
        backward_[Size(t * states_ + u)] = sum;
      }
    }
  }

  // Writes the probability of each class, minus that of the paths through it.
  template <class T>
  void AddGradient(int64_t t, double total, T* gradient) const {
    std::vector<double> through(Size(classes_), kLogOfZero);
    for (int64_t u = 0; u < states_; ++u) {
      double& sum = through[Size(labels_[Size(u)])];
      const size_t at = Size(t * states_ + u);
      sum = LogSum(sum, forward_[at] + backward_[at]);
    }
    for (int64_t c = 0; c < classes_; ++c) {
      const double p = std::exp(logs_[Size(t * classes_ + c)]);
      // Without any valid path, the gradient is the probability alone.
      const double path =
          total == kLogOfZero ? 0 : std::exp(through[Size(c)] - total);
      gradient[c] = static_cast<T>(p - path);
    }
  }

  const int64_t blank_;
  const std::vector<int64_t> labels_;
  const int64_t states_, time_, classes_;
  const bool merges_repeated_;
  std::vector<double> logs_, forward_, backward_;
};

class CtcLossKernel final : public ReadThenHostKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    blank_is_first_ = op == "CTCLossV2";
    for (const auto& [attr, value] :
         {std::pair<const char*, bool*>{"preprocess_collapse_repeated",
                                        &collapses_},
          {"ctc_merge_repeated", &merges_repeated_},
          {"ignore_longer_outputs_than_inputs", &ignores_longer_}}) {
      TFPLUG_ASSIGN_OR_RETURN(*value, construction.GetAttr<bool>(attr));
    }
    return absl::OkStatus();
  }

  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    TFPLUG_RETURN_IF_ERROR(CheckShapes(in));
    const Shape& shape = in[0].shape;
    const int64_t batch = shape.dim(1), classes = shape.dim(2);
    std::vector<std::vector<int64_t>> labels(static_cast<size_t>(batch));
    const int64_t* const indices = in[1].as<int64_t>();
    for (int64_t i = 0; i < in[2].shape.dim(0); ++i) {
      const int64_t b = indices[2 * i], at = indices[2 * i + 1];
      const bool ascends = i == 0 || indices[2 * i - 2] < b ||
                           (indices[2 * i - 2] == b && indices[2 * i - 1] < at);
      if (b < 0 || b >= batch || at < 0 || !ascends) {
        return absl::InvalidArgumentError(
            "label SparseTensor is not valid: indices[" + std::to_string(i) +
            "] = [" + std::to_string(b) + "," + std::to_string(at) +
            (ascends ? "] is out of bounds" : "] is out of order or repeated"));
      }
      labels[static_cast<size_t>(b)].push_back(in[2].as<int32_t>()[i]);
    }
    const HostArray& loss = outputs.Add(in[0].type, {batch});
    const HostArray& gradient = outputs.Add(in[0].type, shape);
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t time = in[3].as<int32_t>()[b];
      TFPLUG_ASSIGN_OR_RETURN(
          std::vector<int64_t> states,
          StatesOf(labels[static_cast<size_t>(b)], b, time, classes));
      const auto length =
          static_cast<int64_t>(labels[static_cast<size_t>(b)].size());
      if (time == 0 || (ignores_longer_ && length > time)) continue;
      CtcSequence sequence(std::move(states), time, classes, merges_repeated_);
      if (in[0].type == DataType::kDouble) {
        ComputeAs<double>(sequence, b, in[0], loss, gradient);
      } else {
        ComputeAs<float>(sequence, b, in[0], loss, gradient);
      }
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status CheckShapes(absl::Span<const HostArray> in) {
    const Shape &inputs = in[0].shape, &indices = in[1].shape,
                &values = in[2].shape, &length = in[3].shape;
    const auto fail = [](const std::string& problem) {
      return absl::InvalidArgumentError(problem);
    };
    if (inputs.rank() != 3) return fail("inputs is not a 3-Tensor");
    if (length.rank() != 1) return fail("sequence_length is not a vector");
    if (indices.rank() != 2) return fail("labels_indices is not a matrix");
    if (values.rank() != 1) return fail("labels_values is not a vector");
    if (inputs.dim(0) == 0) return fail("max_time is 0");
    if (inputs.dim(2) == 0) return fail("num_classes is 0");
    if (inputs.dim(1) != length.dim(0)) {
      return fail(
          "len(sequence_length) != batch_size.  len(sequence_length):  " +
          std::to_string(length.dim(0)) +
          " batch_size: " + std::to_string(inputs.dim(1)));
    }
    if (indices.dim(0) != values.dim(0) || indices.dim(1) != 2) {
      return fail(
          "labels_indices and labels_values must contain the same number of "
          "rows, but saw shapes: " +
          indices.ToString() + " vs. " + values.ToString());
    }
    if (inputs.dim(1) == 0) return fail("batch_size must not be 0");
    for (int64_t b = 0; b < length.dim(0); ++b) {
      const int32_t time = in[3].as<int32_t>()[b];
      if (time > inputs.dim(0)) {
        return fail("sequence_length(" + std::to_string(b) +
                    ") <= " + std::to_string(inputs.dim(0)));
      }
      if (time < 0) return fail("seq_len(" + std::to_string(b) + ") < 0");
    }
    return absl::OkStatus();
  }

  // Returns the labels with blanks around each.
  absl::StatusOr<std::vector<int64_t>> StatesOf(
      const std::vector<int64_t>& labels, int64_t b, int64_t time,
      int64_t classes) const {
    const std::string in_batch = ", batch: " + std::to_string(b);
    if (labels.empty()) {
      return absl::InvalidArgumentError("Labels length is zero in batch " +
                                        std::to_string(b));
    }
    const int64_t blank = blank_is_first_ ? 0 : classes - 1;
    std::vector<int64_t> states = {blank};
    bool is_finished = false;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (i > 0 && collapses_ && labels[i] == labels[i - 1]) continue;
      if (blank_is_first_ && (labels[i] == 0 || labels[i] >= classes)) {
        return absl::InvalidArgumentError(
            absl::StrCat("Labels must be from 1 to ", classes - 1, in_batch));
      }
      if (!blank_is_first_ && labels[i] >= blank) {
        is_finished = true;
        continue;
      }
      if (is_finished) {
        return absl::InvalidArgumentError(
            "Saw a non-null label (index >= num_classes - 1) following a null "
            "label" +
            in_batch + " num_classes: " + std::to_string(classes));
      }
      if (labels[i] < 0) {
        return absl::InvalidArgumentError(
            "All labels must be nonnegative integers" + in_batch);
      }
      states.push_back(labels[i]);
      states.push_back(blank);
    }
    const auto required = static_cast<int64_t>(labels.size());
    if (!ignores_longer_ && required > time) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Not enough time for target transition sequence (required: ",
          required, ", available: ", time, ")", b,
          "You can turn this error into a warning by using the flag "
          "ignore_longer_outputs_than_inputs"));
    }
    return states;
  }

  template <class T>
  static void ComputeAs(CtcSequence& sequence, int64_t b,
                        const HostArray& inputs, const HostArray& loss,
                        const HostArray& gradient) {
    const int64_t batch = inputs.shape.dim(1), classes = inputs.shape.dim(2);
    const auto row = [&](const HostArray& array) {
      return [&array, b, batch, classes](int64_t t) {
        return array.as<T>() + (t * batch + b) * classes;
      };
    };
    loss.as<T>()[b] =
        static_cast<T>(sequence.Compute(row(inputs), row(gradient)));
  }

  bool collapses_ = false, merges_repeated_ = true, ignores_longer_ = false;
  bool blank_is_first_ = false;
};

}  // namespace op_kernels_internal

inline void CtcOps(const Registrar& registrar) {
  registrar.Add<op_kernels_internal::CtcLossKernel>(
      KernelDef("CTCLoss"), "T",
      kernel::SetOf(DataType::kFloat, DataType::kDouble));
  if (registrar.Supported(kernel::SetOf(DataType::kFloat)).empty()) return;
  registrar.Add<op_kernels_internal::CtcLossKernel>(KernelDef("CTCLossV2"));
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_CTC_H_
