// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "backend/backend.h"
#include "backend/device_views.h"
#include "backend/floats.h"
#include "kernels/parallel.h"
#include "kernels/row_code.h"

// Softmax and its losses, in float.
namespace cpu_sim {
namespace {

using tfplug::DataType;
using tfplug::Launcher;
using tfplug::Operand;
using Base = tfplug::Backend<Stream>;

template <class T = float>
T* DataOf(const Operand& view) {
  return static_cast<T*>(view.data);
}

constexpr int64_t kCost = 16;  // of a class

}  // namespace

absl::Status Backend::Softmax(Stream& stream, Launcher& launcher,
                              tfplug::SoftmaxKind kind, const Operand& logits,
                              const Operand& output) {
  if (!IsComputedInFloat(logits.type)) {
    return Base::Softmax(stream, launcher, kind, logits, output);
  }
  FloatOutputs outputs(launcher);
  TFPLUG_ASSIGN_OR_RETURN(const Operand x, ToFloats(launcher, logits));
  TFPLUG_ASSIGN_OR_RETURN(const Operand y, outputs.Add(output));
  TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views, ForDevice(stream, {x, y}));
  const auto function = kind == tfplug::SoftmaxKind::kSoftmax
                            ? Rows().softmax
                            : Rows().log_softmax;
  const int64_t classes = logits.dim(logits.rank - 1);
  TFPLUG_RETURN_IF_ERROR(stream.LaunchTask(
      [function, views, classes, rows = logits.num_elements() / classes] {
        ForEachPiece(rows, PieceOf(kCost * classes),
                     [&](int64_t begin, int64_t end, int64_t) {
                       function(DataOf(views[0]) + begin * classes,
                                DataOf(views[1]) + begin * classes, end - begin,
                                classes);
                     });
      }));
  return outputs.Finish();
}

absl::Status Backend::CrossEntropy(Stream& stream, Launcher& launcher,
                                   const Operand& logits, const Operand& labels,
                                   const Operand& loss,
                                   const Operand& gradient) {
  if (!IsComputedInFloat(logits.type)) {
    return Base::CrossEntropy(stream, launcher, logits, labels, loss, gradient);
  }
  // Classes are a dense vector.
  const bool is_sparse = labels.rank < logits.rank;
  Operand wanted = labels;
  FloatOutputs outputs(launcher);
  TFPLUG_ASSIGN_OR_RETURN(const Operand x, ToFloats(launcher, logits));
  if (!is_sparse) {
    TFPLUG_ASSIGN_OR_RETURN(wanted, ToFloats(launcher, labels));
  }
  TFPLUG_ASSIGN_OR_RETURN(const Operand y, outputs.Add(loss));
  TFPLUG_ASSIGN_OR_RETURN(const Operand dx, outputs.Add(gradient));
  TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views,
                          ForDevice(stream, {x, wanted, y, dx}));
  const int64_t classes = logits.dim(logits.rank - 1);
  const int64_t rows = logits.num_elements() / classes;
  TFPLUG_RETURN_IF_ERROR(stream.LaunchTask([is_sparse, views, classes, rows] {
    const auto run = [&](auto function, const auto* of_rows, int64_t labels) {
      ForEachPiece(
          rows, PieceOf(kCost * classes),
          [&](int64_t begin, int64_t end, int64_t) {
            function(DataOf(views[0]) + begin * classes,
                     of_rows + begin * labels, DataOf(views[2]) + begin,
                     DataOf(views[3]) + begin * classes, end - begin, classes);
          });
    };
    if (!is_sparse) {
      run(Rows().cross_entropy, DataOf(views[1]), classes);
    } else if (views[1].type == DataType::kInt32) {
      run(Rows().sparse_cross_entropy_32, DataOf<int32_t>(views[1]), 1);
    } else {
      run(Rows().sparse_cross_entropy_64, DataOf<int64_t>(views[1]), 1);
    }
  }));
  return outputs.Finish();
}

}  // namespace cpu_sim
