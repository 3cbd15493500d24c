// SPDX-License-Identifier: Apache-2.0
#include <tfplug/kernel/variables.h>
#include <tfplug/ops/list.h>

#include <cstdint>
#include <string>
#include <utility>

#include "kernels/elementwise.h"

// What core cannot do with lists of tensors on a device that is not its own:
// sums and zeros, which loops have for gradients, and lists of bool.
namespace cpu_sim {
namespace {

namespace ops = tfplug::ops;

// What core's functions for lists, in the releases that export them, ask the
// device to do with the tensors in them.
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

// In graphs, passes/list_gradients.h does without these ops where core lacks
// the functions. That a kernel is there lets TensorFlow place the ops on the
// device before.
absl::Status Explain(const absl::Status& lacking) {
  if (lacking.code() != absl::StatusCode::kUnimplemented) return lacking;
  return absl::UnimplementedError(
      std::string(lacking.message()) +
      ", and without it a plug-in cannot look into a list of tensors; unroll "
      "the loop (unroll=True in Keras' recurrent layers)");
}

class AddLists final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    return Explain(tfplug::AddNVariant<Lists>(context));
  }
};
TFPLUG_REGISTER_KERNEL(AddLists, tfplug::KernelDef("AddN").TypeConstraint(
                                     "T", {tfplug::DataType::kVariant}));

class ZerosLikeList final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    return Explain(tfplug::ZerosLikeVariant<Lists>(context));
  }
};
TFPLUG_REGISTER_KERNEL(ZerosLikeList,
                       tfplug::KernelDef("ZerosLike")
                           .TypeConstraint("T", {tfplug::DataType::kVariant}));

// ---- Lists of bool ---------------------------------------------------------

// The same with these: passes/bool_lists.h makes other lists of them.
class BoolList final : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& /*context*/) override {
    return absl::UnimplementedError(
        "core has lists of bool for no device but its own, and in a graph "
        "alone they become lists of numbers; cast to tf.float16 before");
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
