// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_SELECTION_H_
#define TFPLUG_OP_KERNELS_SELECTION_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "tfplug/ir/scalar_code.h"
#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/read_then_host_kernel.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// Ops that select elements one after the other, each depending on those before:
// on the host.
namespace tfplug {
namespace op_kernels_internal {

// UniqueWithCounts: the different elements in the order of their first
// occurrence, where each one is, and how often.
class UniqueKernel final : public ReadThenHostKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(index_, construction.GetAttr<DataType>("out_idx"));
    return absl::OkStatus();
  }
  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    const HostArray& x = in[0];
    if (x.shape.rank() != 1) {
      return absl::InvalidArgumentError("unique expects a 1D vector, not " +
                                        x.shape.ToString());
    }
    const int64_t n = x.shape.dim(0);
    std::vector<int64_t> firsts, counts, places(static_cast<size_t>(n));
    // The bits of equal values are equal: a map for each type would be compiled
    // for long.
    std::map<uint64_t, int64_t> known;
    ir::VisitStored(x.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < n; ++i) {
        const T value = x.as<T>()[i];
        uint64_t bits = 0;
        bool is_number = true;  // NaN differs from everything.
        if constexpr (std::is_integral_v<T>) {
          bits = static_cast<uint64_t>(value);
        } else {
          const double wide = static_cast<double>(value) + 0.0;  // Not -0.
          std::memcpy(&bits, &wide, sizeof(bits));
          is_number = wide == wide;
        }
        const auto next = static_cast<int64_t>(firsts.size());
        const int64_t place =
            is_number ? known.emplace(bits, next).first->second : next;
        if (place == next) {
          firsts.push_back(i);
          counts.push_back(0);
        }
        places[static_cast<size_t>(i)] = place;
        ++counts[static_cast<size_t>(place)];
      }
    });
    const auto size = static_cast<int64_t>(firsts.size());
    const HostArray& y = outputs.Add(x.type, {size});
    const size_t bytes = DataTypeSize(x.type);
    for (size_t i = 0; i < firsts.size(); ++i) {
      std::memcpy(y.as<char>() + i * bytes,
                  x.as<char>() + static_cast<size_t>(firsts[i]) * bytes, bytes);
    }
    AddIndices(outputs, places);
    AddIndices(outputs, counts);
    return absl::OkStatus();
  }

 private:
  void AddIndices(HostOutputs& outputs,
                  const std::vector<int64_t>& values) const {
    const HostArray& to =
        outputs.Add(index_, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) {
      if (index_ == DataType::kInt64) {
        to.as<int64_t>()[i] = values[i];
      } else {
        to.as<int32_t>()[i] = static_cast<int32_t>(values[i]);
      }
    }
  }

  DataType index_{};
};

// NonMaxSuppressionV2, V3 and V4: the boxes with the highest scores, without
// those that overlap a selected box too much.
class SuppressionKernel final : public ReadThenHostKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::string op, construction.GetOp());
    has_minimum_ = op != "NonMaxSuppressionV2";
    counts_ = op == "NonMaxSuppressionV4";
    if (counts_) {
      TFPLUG_ASSIGN_OR_RETURN(
          pads_, construction.GetAttr<bool>("pad_to_max_output_size"));
    }
    return absl::OkStatus();
  }
  bool IsInputOnHost(int i) const override { return i >= 2; }

  absl::Status Compute(absl::Span<const HostArray> in,
                       HostOutputs& outputs) const override {
    for (size_t i = 2; i < in.size(); ++i) {
      if (in[i].shape.rank() != 0) {
        return absl::InvalidArgumentError(
            "max_output_size and the thresholds must be 0-D, not " +
            in[i].shape.ToString());
      }
    }
    const Shape &boxes = in[0].shape, &scores = in[1].shape;
    const bool is_empty =
        boxes.num_elements() == 0 && scores.num_elements() == 0;
    if (boxes.rank() != 2 || scores.rank() != 1 ||
        (!is_empty && (boxes.dim(1) != 4 || scores != Shape{boxes.dim(0)}))) {
      return absl::InvalidArgumentError(
          "boxes must have shape [boxes, 4] and scores [boxes], not " +
          boxes.ToString() + " and " + scores.ToString());
    }
    const int32_t most = in[2].as<int32_t>()[0];
    if (most < 0) {
      return absl::InvalidArgumentError("output size must be non-negative");
    }
    const float limit = Floats(in[3])[0];
    if (!(limit >= 0 && limit <= 1)) {
      return absl::InvalidArgumentError("iou_threshold must be in [0, 1]");
    }
    const float minimum = has_minimum_
                              ? Floats(in[4])[0]
                              : -std::numeric_limits<float>::infinity();
    std::vector<int32_t> selected =
        Select(Floats(in[0]), Floats(in[1]), most, limit, minimum);
    const auto count = static_cast<int32_t>(selected.size());
    if (pads_) selected.resize(static_cast<size_t>(most));
    const HostArray& y =
        outputs.Add(DataType::kInt32, {static_cast<int64_t>(selected.size())});
    std::copy(selected.begin(), selected.end(), y.as<int32_t>());
    if (counts_) outputs.Add(DataType::kInt32, {}).as<int32_t>()[0] = count;
    return absl::OkStatus();
  }

 private:
  // Returns the numbers of an array of any type.
  static std::vector<float> Floats(const HostArray& array) {
    std::vector<float> result;
    ir::VisitStored(array.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < array.shape.num_elements(); ++i) {
        result.push_back(ir::Convert<float>(array.as<T>()[i]));
      }
    });
    return result;
  }
  static std::vector<int32_t> Select(const std::vector<float>& boxes,
                                     const std::vector<float>& scores,
                                     int32_t most, float limit, float minimum) {
    std::vector<int32_t> order, selected;
    for (size_t i = 0; i < scores.size(); ++i) {
      if (scores[i] > minimum) order.push_back(static_cast<int32_t>(i));
    }
    const auto score = [&](int32_t i) {
      return scores[static_cast<size_t>(i)];
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return score(a) > score(b); });
    for (const int32_t candidate : order) {
      if (static_cast<int32_t>(selected.size()) >= most) break;
      const bool overlaps =
          std::any_of(selected.begin(), selected.end(), [&](int32_t other) {
            return Overlap(&boxes[4 * static_cast<size_t>(candidate)],
                           &boxes[4 * static_cast<size_t>(other)]) > limit;
          });
      if (!overlaps) selected.push_back(candidate);
    }
    return selected;
  }
  // Returns the area of the intersection of two boxes as a part of their union.
  static float Overlap(const float* a, const float* b) {
    const auto low = [](const float* box, int k) {
      return std::min(box[k], box[k + 2]);
    };
    const auto high = [](const float* box, int k) {
      return std::max(box[k], box[k + 2]);
    };
    const auto area = [&](const float* box) {
      return (high(box, 0) - low(box, 0)) * (high(box, 1) - low(box, 1));
    };
    if (area(a) <= 0 || area(b) <= 0) return 0;
    float both = 1;
    for (int k = 0; k < 2; ++k) {
      both *= std::max(
          std::min(high(a, k), high(b, k)) - std::max(low(a, k), low(b, k)),
          0.0f);
    }
    return both / (area(a) + area(b) - both);
  }

  bool has_minimum_ = false, counts_ = false, pads_ = false;
};

}  // namespace op_kernels_internal

inline void SelectionOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  registrar.Add<UniqueKernel>(
      KernelDef("UniqueWithCounts").TypeConstraint<int32_t, int64_t>("out_idx"),
      "T", kAllTypes);
  constexpr uint64_t kTypes = kernel::SetOf(DataType::kFloat, DataType::kHalf);
  const auto def = [](const char* op) {
    return KernelDef(op)
        .HostMemory("max_output_size")
        .HostMemory("iou_threshold");
  };
  registrar.Add<SuppressionKernel>(def("NonMaxSuppressionV2"), "T", kTypes);
  for (const char* op : {"NonMaxSuppressionV3", "NonMaxSuppressionV4"}) {
    registrar.Add<SuppressionKernel>(def(op).HostMemory("score_threshold"), "T",
                                     kTypes);
  }
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_SELECTION_H_
