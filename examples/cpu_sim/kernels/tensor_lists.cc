// SPDX-License-Identifier: Apache-2.0
#include <tfplug/base/status_macros.h>
#include <tfplug/kernel/register_kernel.h>
#include <tfplug/kernel/variables.h>
#include <tfplug/ops/list.h>

#include <cstdint>
#include <string>
#include <utility>

#include "cpu_sim.h"
#include "kernels/rows.h"

// List ops that TensorFlow does not provide for plug-in devices: sums and
// zeros, which gradients of loops use, and lists of bool.
namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// Callbacks of TensorFlow's list functions, in the releases that export them.
struct Lists : tfplug::VariableCode<Stream> {
  static absl::Status Add(tfplug::KernelContext& context,
                          const tfplug::Tensor& a, const tfplug::Tensor& b,
                          const tfplug::Tensor& out) {
    if (a.dtype() == tfplug::DataType::kInt64) {
      return AddAs<int64_t>(context, a, b, out);
    }
    return AddAs<float>(context, a, b, out);
  }

  static absl::Status ZerosLike(tfplug::KernelContext& context,
                                const tfplug::Tensor& /*like*/,
                                const tfplug::Tensor& out) {
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->MemZero(out.memory(), out.byte_size());
  }

 private:
  template <typename T>
  static absl::Status AddAs(tfplug::KernelContext& context,
                            const tfplug::Tensor& a, const tfplug::Tensor& b,
                            const tfplug::Tensor& out) {
    TFPLUG_ASSIGN_OR_RETURN(Stream * stream, context.GetStream<Stream>());
    return stream->Launch(
        [](T* out, const T* a, const T* b, int64_t size) {
          RowMap<T>(out, size) =
              ConstRowMap<T>(a, size) + ConstRowMap<T>(b, size);
        },
        out.flat<T>(), a.flat<T>(), b.flat<T>(), a.num_elements());
  }
};

// In graphs, passes/list_gradients.h replaces these ops where TensorFlow lacks
// the functions. Kernels are registered nevertheless, so that TensorFlow places
// the ops on the device before that pass runs.
absl::Status AddWorkaround(const absl::Status& lacking) {
  if (lacking.code() != absl::StatusCode::kUnimplemented) return lacking;
  return absl::UnimplementedError(
      std::string(lacking.message()) +
      ", which a plug-in needs to read a list of tensors; unroll the loop "
      "(unroll=True in Keras' recurrent layers)");
}

class AddLists final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    return AddWorkaround(tfplug::AddNVariant<Lists>(context));
  }
};
TFPLUG_REGISTER_KERNEL(AddLists, tfplug::KernelDef("AddN").TypeConstraint(
                                     "T", {tfplug::DataType::kVariant}));

class ZerosLikeList final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    return AddWorkaround(tfplug::ZerosLikeVariant<Lists>(context));
  }
};
TFPLUG_REGISTER_KERNEL(ZerosLikeList,
                       tfplug::KernelDef("ZerosLike")
                           .TypeConstraint("T", {tfplug::DataType::kVariant}));

// ---- Lists of bool ---------------------------------------------------------

// In graphs, passes/bool_lists.h replaces these lists too.
class BoolList final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& /*context*/) override {
    return absl::UnimplementedError(
        "TensorFlow supports lists of bool only on its own devices; use "
        "tf.function, in which they are replaced, or cast to tf.float16");
  }
};

template <class Op, typename... Host>
bool RegisterBoolList(Host... in_host_memory) {
  Op op = Op().template element_dtype<bool>();
  ((op = std::move(op).HostMemory(in_host_memory)), ...);
  return tfplug::RegisterKernel<BoolList>(std::move(op));
}

[[maybe_unused]] const bool bool_lists =
    RegisterBoolList<ops::TensorListFromTensor>(
        ops::TensorListFromTensor::element_shape) &&
    RegisterBoolList<ops::TensorListGetItem>(
        ops::TensorListGetItem::index, ops::TensorListGetItem::element_shape) &&
    RegisterBoolList<ops::TensorListSetItem>(ops::TensorListSetItem::index) &&
    RegisterBoolList<ops::TensorListPopBack>(
        ops::TensorListPopBack::element_shape) &&
    RegisterBoolList<ops::TensorListStack>(
        ops::TensorListStack::element_shape) &&
    RegisterBoolList<ops::TensorListGather>(
        ops::TensorListGather::indices, ops::TensorListGather::element_shape);

}  // namespace
}  // namespace cpu_sim
