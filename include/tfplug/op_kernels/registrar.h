// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_REGISTRAR_H_
#define TFPLUG_OP_KERNELS_REGISTRAR_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tfplug/ir/elementwise.h"
#include "tfplug/ir/expression.h"
#include "tfplug/ir/unsupported.h"
#include "tfplug/kernel/default_kernels.h"
#include "tfplug/kernel/internal/kernel_functions.h"
#include "tfplug/kernel/internal/kernel_registry.h"
#include "tfplug/kernel/internal/shared_functions.h"
#include "tfplug/kernel/kernel_def.h"
#include "tfplug/kernel/op.h"
#include "tfplug/op_kernels/internal/registered_backend.h"
#include "tfplug/op_kernels/op_run.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Sets of types, as bits of TF_DataType.
inline constexpr uint64_t kFloatTypes = kernel::SetOf(
    DataType::kFloat, DataType::kDouble, DataType::kHalf, DataType::kBfloat16);
inline constexpr uint64_t kIntegerTypes = kernel::SetOf(
    DataType::kInt8, DataType::kInt16, DataType::kInt32, DataType::kInt64,
    DataType::kUint8, DataType::kUint16, DataType::kUint32, DataType::kUint64);
inline constexpr uint64_t kNumberTypes = kFloatTypes | kIntegerTypes;
inline constexpr uint64_t kAllTypes =
    kNumberTypes | kernel::SetOf(DataType::kBool);
inline constexpr uint64_t kComplexTypes =
    kernel::SetOf(DataType::kComplex64, DataType::kComplex128);
// The types of ops that only copy elements: complex128 is copied as two words.
inline constexpr uint64_t kCopiedTypes = kAllTypes | kComplexTypes;
inline constexpr uint64_t kInt32Type = kernel::SetOf(DataType::kInt32);
inline constexpr uint64_t kIndexTypes =
    kernel::SetOf(DataType::kInt32, DataType::kInt64);

// Adds kernels that are made from a backend's primitives to the library. A
// family of ops is a function that takes a Registrar; list families in
// TFPLUG_REGISTER_BACKEND.
//
// A kernel of the library's author for the same op and types wins.
class Registrar {
 public:
  Registrar() = default;
  // Returns a registrar whose kernels compute int32 on the host, without a
  // backend. Kernels of variables, and ops of HasHostKernel(), are left out.
  static Registrar OnHost() { return Registrar(/*on_host=*/true); }

  // Returns the types in `set` that the backend supports: a complex type if it
  // supports the type of its parts.
  std::vector<DataType> Supported(uint64_t set) const {
    std::vector<DataType> types;
    for (int i = 1; i < internal::kDataTypeCount && i < 64; ++i) {
      const DataType type = static_cast<DataType>(i);
      const DataType computed = type == DataType::kComplex64 ? DataType::kFloat
                                : type == DataType::kComplex128
                                    ? DataType::kDouble
                                    : type;
      if ((set & (kAllTypes | kComplexTypes) & kernel::SetOf(type)) != 0 &&
          Supports(computed)) {
        types.push_back(type);
      }
    }
    return types;
  }

  // Returns the types in `set` for which the backend has all operations of the
  // expression that make(type) returns.
  template <class Make>
  uint64_t WithOpcodes(uint64_t set, const Make& make) const {
    const auto supports =
        op_kernels_internal::registered_backend.supports_opcode;
    if (on_host_ || supports == nullptr) return set;
    for (const DataType type : Supported(set)) {
      const absl::StatusOr<Expression> expression = make(type);
      if (expression.ok() &&
          !ir::FindUnsupported(*expression, supports).empty()) {
        set &= ~kernel::SetOf(type);
      }
    }
    return set;
  }

  // Adds KernelT for the op for each type in `set` as its attribute `attr`.
  template <class KernelT>
  void Add(KernelDef&& def, const char* attr, uint64_t set) const {
    Add(std::move(def), attr, set, kMade<KernelT>);
  }
  template <class KernelT>
  void Add(KernelDef&& def) const {
    Add(std::move(def), kMade<KernelT>);
  }
  // Lets the pass FuseElementwise fuse an op whose kernel computes each element
  // from the elements at the same index.
  void AddFusable(ir::FusableOp op) const {
    if (on_host_) return;
    for (uint64_t* const types : {&op.types, &op.host_types}) {
      const std::vector<DataType> supported = Supported(*types & kAllTypes);
      *types = 0;
      for (DataType type : supported) *types |= kernel::SetOf(type);
    }
    ir::FusableOps().push_back(op);
  }

 private:
  // The priorities of an author's own kernels are higher (init_kernel.h). No
  // priority is negative: TensorFlow would place ops on the CPU, whose kernels
  // have 0.
  static constexpr int32_t kPriority = 1, kPriorityOnHost = 0;

  explicit Registrar(bool on_host) : on_host_(on_host) {}

  bool Supports(DataType type) const {
    return on_host_ ? type == DataType::kInt32
                    : op_kernels_internal::registered_backend.supports(type);
  }
  static bool MayBeOnHost(const KernelDef& def);

  // A class of kernels. The second function is null if it cannot compute on the
  // host.
  struct Made {
    kernel_internal::KernelFunctions functions;
    void* (*create_on_host)(capi::TF_OpKernelConstruction*);
    bool fits_regions;  // unless KernelT::kFitsRegions is false
  };
  template <class KernelT>
  static void* CreateOnHost(capi::TF_OpKernelConstruction* construction) {
    constexpr kernel_internal::KernelFunctions kFunctions =
        kernel_internal::SharedFunctionsOf<KernelT>();
    return MoveToHost(kFunctions.create_func(construction));
  }
  static void* MoveToHost(void* kernel) {
    if (kernel != nullptr) static_cast<BackendKernel*>(kernel)->MoveToHost();
    return kernel;
  }
  template <class KernelT>
  static constexpr Made MakeMade() {
    Made made = {kernel_internal::SharedFunctionsOf<KernelT>(), nullptr,
                 kernel_internal::kFitsRegions<KernelT, true>};
    if constexpr (std::is_base_of_v<BackendKernel, KernelT>) {
      made.create_on_host = &CreateOnHost<KernelT>;
    }
    return made;
  }
  template <class KernelT>
  static constexpr Made kMade = MakeMade<KernelT>();

  void Add(KernelDef&& def, const char* attr, uint64_t set,
           const Made& made) const;
  void Add(KernelDef&& def, const Made& made) const;

  const bool on_host_ = false;
};

inline void Registrar::Add(KernelDef&& def, const char* attr, uint64_t set,
                           const Made& made) const {
  std::vector<DataType> types = Supported(set);
  if (types.empty()) return;
  Add(std::move(def).TypeConstraint(attr, std::move(types)), made);
}

inline void Registrar::Add(KernelDef&& def, const Made& made) const {
  kernel_internal::KernelFunctions functions = made.functions;
  if (on_host_) {
    if (made.create_on_host == nullptr || !MayBeOnHost(def)) return;
    functions.create_func = made.create_on_host;
    def = std::move(def).AllInHostMemory();
  }
  // The op's name is not recorded for error messages: one class implements many
  // ops, and the node's name is in the message.
  kernel_internal::RegisteredKernels().AddMade(
      std::move(def).Priority(on_host_ ? kPriorityOnHost : kPriority),
      functions, made.fits_regions);
}

inline bool Registrar::MayBeOnHost(const KernelDef& def) {
  // Without a type, all tensors would be moved to the host; variables are in
  // device memory.
  return !def.type_constraints().empty() && !kernel::HasHostKernel(def.op()) &&
         !absl::StartsWith(def.op(), "Assign") &&
         !absl::StartsWith(def.op(), "Resource");
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_REGISTRAR_H_
