// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_RUNTIME_NODE_RUN_H_
#define TFPLUG_RUNTIME_NODE_RUN_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tfplug/abi/tf_allocator_attributes.h"
#include "tfplug/abi/tf_string_view.h"
#include "tfplug/base/status.h"
#include "tfplug/kernel/tensor.h"
#include "tfplug/runtime/handles.h"
#include "tfplug/runtime/run_observer.h"
#include "tfplug/runtime/subgraph.h"

#pragma GCC visibility push(hidden)

// TensorFlow's half of the runs of the kernels in a region. Tensors are
// TensorFlow's own: an intermediate value is a temporary of the region.
namespace tfplug::runtime {

// Returns another handle to the tensor's buffer.
inline absl::StatusOr<Tensor> Share(const Tensor& tensor) {
  return tensor.Reshape(tensor.shape());
}

// One run of a subgraph, for the run `outer` of the region.
class SubgraphRun {
 public:
  // `observer` may be null. With one, no input of the region is forwarded to an
  // output, because TensorFlow could forward it in one run and not in another.
  SubgraphRun(const Subgraph& subgraph, capi::TF_OpKernelContext* outer,
              RunObserver* observer)
      : subgraph_(subgraph),
        outer_(outer),
        observer_(observer),
        tensors_(subgraph.values().size()),
        uses_left_(subgraph.values().size()) {
    for (size_t i = 0; i < uses_left_.size(); ++i) {
      uses_left_[i] = subgraph.values()[i].uses;
    }
  }

  // Runs the kernels one after the other, until one fails.
  absl::Status Run();

  capi::TF_OpKernelContext* outer() const { return outer_; }
  RunObserver* observer() const { return observer_; }
  const SubValue& value(int i) const { return subgraph_.value(i); }
  Tensor& tensor(int i) { return tensors_[static_cast<size_t>(i)]; }
  int uses_left(int i) const { return uses_left_[static_cast<size_t>(i)]; }

 private:
  const Subgraph& subgraph_;
  capi::TF_OpKernelContext* const outer_;
  RunObserver* const observer_;
  std::vector<Tensor> tensors_;  // by value; empty if nothing needs it
  std::vector<int> uses_left_;   // by value
};

// One run of a node's kernel. Each function is that of the C API with TF_
// before its name.
class NodeRun : public ObservedRun {
 public:
  NodeRun(SubgraphRun& run, const SubNode& node)
      : ObservedRun(run.observer()), run_(run), node_(node) {}

  capi::TF_OpKernelContext* handle() {
    return ToHandle<capi::TF_OpKernelContext>(this);
  }
  capi::TF_OpKernelContext* outer() const { return run_.outer(); }
  const SubNode& node() const { return node_; }

  // The first failure that the kernel reports.
  absl::Status failure;

  // ---- Inputs ----------------------------------------------------------------

  static int NumInputs(NodeRun& self) {
    return static_cast<int>(self.node_.inputs.size());
  }
  static capi::TF_DataType InputDatatype(NodeRun& self, int i) {
    return self.TypeOf(self.IsInput(i) ? self.Input(i) : -1);
  }
  static bool IsHostMemoryInput(NodeRun& self, int i, capi::TF_Status* status) {
    if (!self.CheckInput(i, status)) return false;
    return self.run_.value(self.Input(i)).port.on_host;
  }
  static bool IsRefInput(NodeRun& self, int i, capi::TF_Status* status) {
    self.CheckInput(i, status);
    return false;
  }
  static void GetInput(NodeRun& self, int i, capi::TF_Tensor** tensor,
                       capi::TF_Status* status) {
    *tensor = nullptr;
    if (!self.CheckInput(i, status)) return;
    const int v = self.Input(i);
    const SubValue& value = self.run_.value(v);
    if (value.input >= 0) {
      return original.TF_GetInput(self.outer(), value.input, tensor, status);
    }
    *tensor = self.Take(value.constant ? value.constant : self.run_.tensor(v),
                        status);
  }

  // ---- Outputs ---------------------------------------------------------------

  static int NumOutputs(NodeRun& self) { return self.node_.num_outputs; }
  static capi::TF_DataType ExpectedOutputDataType(NodeRun& self, int i) {
    return self.TypeOf(self.IsOutput(i) ? self.Output(i) : -1);
  }
  static bool IsHostMemoryOutput(NodeRun& self, int i,
                                 capi::TF_Status* status) {
    if (!self.CheckOutput(i, status)) return false;
    return self.run_.value(self.Output(i)).port.on_host;
  }
  static capi::TF_Tensor* AllocateOutput(NodeRun& self, int i,
                                         capi::TF_DataType /*dtype*/,
                                         const int64_t* dims, int num_dims,
                                         size_t bytes,
                                         capi::TF_Status* status) {
    if (!self.CheckOutput(i, status)) return nullptr;
    const int v = self.Output(i);
    const SubValue& value = self.run_.value(v);
    const auto type = static_cast<capi::TF_DataType>(value.port.type);
    capi::TF_Tensor* raw = nullptr;
    if (value.output >= 0) {
      raw = original.TF_AllocateOutput(self.outer(), value.output, type, dims,
                                       num_dims, bytes, status);
    } else {
      capi::TF_AllocatorAttributes attributes = {};
      attributes.struct_size =
          capi::StructInfo<capi::TF_AllocatorAttributes>::kSize;
      attributes.on_host = value.port.on_host;
      raw = original.TF_AllocateTemp(self.outer(), type, dims, num_dims,
                                     &attributes, status);
    }
    Tensor tensor(raw);
    if (tensor && self.observer() != nullptr) {
      self.observer()->OnAllocate(v, tensor);
    }
    return self.Store(v, std::move(tensor), status).release();
  }
  static capi::TF_Tensor* AllocateTemp(NodeRun& self, capi::TF_DataType dtype,
                                       const int64_t* dims, int num_dims,
                                       capi::TF_AllocatorAttributes* attributes,
                                       capi::TF_Status* status) {
    Tensor tensor(original.TF_AllocateTemp(self.outer(), dtype, dims, num_dims,
                                           attributes, status));
    if (tensor && self.observer() != nullptr && attributes->on_host == 0) {
      self.observer()->OnAllocate(-1, tensor);
    }
    return tensor.release();
  }
  // Forwards an input on TensorFlow's conditions: nothing else uses its buffer.
  static capi::TF_Tensor* ForwardInputOrAllocateOutput(
      NodeRun& self, const int* candidates, int num_candidates, int i,
      const int64_t* dims, int num_dims, int* forwarded_input,
      capi::TF_Status* status) {
    *forwarded_input = -1;
    if (!self.CheckOutput(i, status)) return nullptr;
    const int v = self.Output(i);
    const SubValue& target = self.run_.value(v);
    // The inputs of the region that could become its output, and the index of
    // each as a candidate.
    std::vector<int> outer_inputs, indices;
    for (int k = 0; k < num_candidates; ++k) {
      if (!self.IsInput(candidates[k])) continue;
      const int from = self.Input(candidates[k]);
      const SubValue& source = self.run_.value(from);
      if (!(source.port == target.port) || self.run_.uses_left(from) != 1) {
        continue;
      }
      if (source.input >= 0) {
        outer_inputs.push_back(source.input);
        indices.push_back(candidates[k]);
      } else if (self.Forward(from, v, dims, num_dims)) {
        *forwarded_input = candidates[k];
        return self.Publish(v, status);
      }
    }
    if (target.output < 0 || outer_inputs.empty() ||
        self.observer() != nullptr) {
      return AllocateOutput(self, i, capi::TF_DataType(), dims, num_dims,
                            ByteSize(target, dims, num_dims), status);
    }
    int forwarded = -1;
    Tensor output(original.TF_ForwardInputOrAllocateOutput(
        self.outer(), outer_inputs.data(),
        static_cast<int>(outer_inputs.size()), target.output, dims, num_dims,
        &forwarded, status));
    for (size_t k = 0; k < indices.size(); ++k) {
      if (outer_inputs[k] == forwarded) *forwarded_input = indices[k];
    }
    return self.Store(v, std::move(output), status).release();
  }
  static void SetOutput(NodeRun& self, int i, const capi::TF_Tensor* tensor,
                        capi::TF_Status* status) {
    if (!self.CheckOutput(i, status)) return;
    const int v = self.Output(i);
    // The kernel keeps its handle.
    Tensor borrowed(const_cast<capi::TF_Tensor*>(tensor));
    auto shared = Share(borrowed);
    static_cast<void>(borrowed.release());
    if (!shared.ok()) return SetStatus(status, shared.status());
    if (self.observer() != nullptr) self.observer()->OnShare(v, *shared);
    if (self.run_.value(v).output >= 0) {
      original.TF_SetOutput(self.outer(), self.run_.value(v).output, tensor,
                            status);
      if (original.TF_GetCode(status) != capi::TF_OK) return;
    }
    if (self.run_.uses_left(v) > 0) self.run_.tensor(v) = *std::move(shared);
  }
  static capi::TF_Tensor* GetMutableOutput(NodeRun& self, int i,
                                           capi::TF_Status* status) {
    if (!self.CheckOutput(i, status)) return nullptr;
    const int v = self.Output(i);
    if (self.run_.value(v).output >= 0) {
      return original.TF_GetMutableOutput(self.outer(),
                                          self.run_.value(v).output, status);
    }
    return self.Take(self.run_.tensor(v), status);
  }

  // ---- The run ---------------------------------------------------------------

  static capi::SP_Stream GetStream(NodeRun& self, capi::TF_Status* status) {
    if (self.observer() != nullptr) self.observer()->OnGetStream();
    return original.TF_GetStream(self.outer(), status);
  }

  static void Failure(NodeRun& self, capi::TF_Status* status) {
    self.failure.Update(ToStatus(status));
  }
  static capi::TF_StringView GetOpKernelName(NodeRun& self) {
    return {self.node_.name.data(), self.node_.name.size()};
  }

 private:
  bool IsInput(int i) const {
    return i >= 0 && static_cast<size_t>(i) < node_.inputs.size();
  }
  bool IsOutput(int i) const { return i >= 0 && i < node_.num_outputs; }
  int Input(int i) const { return node_.inputs[static_cast<size_t>(i)]; }
  int Output(int i) const { return node_.first_output + i; }
  bool IsStored(int v) const {
    return run_.uses_left(v) > 0 || run_.value(v).output < 0;
  }
  capi::TF_DataType TypeOf(int value) const {
    return value < 0
               ? capi::TF_DataType()
               : static_cast<capi::TF_DataType>(run_.value(value).port.type);
  }
  static bool Check(bool is_valid, const char* message,
                    capi::TF_Status* status) {
    original.TF_SetStatus(status,
                          is_valid ? capi::TF_OK : capi::TF_OUT_OF_RANGE,
                          is_valid ? "" : message);
    return is_valid;
  }
  bool CheckInput(int i, capi::TF_Status* status) const {
    return Check(IsInput(i), "input index out of range", status);
  }
  bool CheckOutput(int i, capi::TF_Status* status) const {
    return Check(IsOutput(i), "output index out of range", status);
  }

  static size_t ByteSize(const SubValue& value, const int64_t* dims,
                         int num_dims) {
    size_t size = DataTypeSize(value.port.type);
    for (int d = 0; d < num_dims; ++d) size *= static_cast<size_t>(dims[d]);
    return size;
  }

  // Returns a handle for the kernel to a tensor that stays here.
  static capi::TF_Tensor* Take(const Tensor& tensor, capi::TF_Status* status) {
    if (!tensor) {
      original.TF_SetStatus(status, capi::TF_INTERNAL,
                            "an earlier node of the region left this unset");
      return nullptr;
    }
    auto shared = Share(tensor);
    if (shared.ok()) return shared->release();
    SetStatus(status, shared.status());
    return nullptr;
  }
  // Stores a value that later nodes need, or that TensorFlow does not keep
  // while the kernel runs, and returns its tensor.
  Tensor Store(int v, Tensor tensor, capi::TF_Status* status) {
    if (!tensor || !IsStored(v)) return tensor;
    auto shared = Share(tensor);
    if (!shared.ok()) {
      SetStatus(status, shared.status());
      return Tensor();
    }
    run_.tensor(v) = *std::move(shared);
    return tensor;
  }

  // Makes value `v` share the buffer of the intermediate value `from`, which
  // only this node uses. Returns false if something else refers to the buffer.
  bool Forward(int from, int v, const int64_t* dims, int num_dims) {
    const SubValue& source = run_.value(from);
    Tensor& tensor = run_.tensor(from);
    const size_t bytes = ByteSize(run_.value(v), dims, num_dims);
    if (source.constant || source.output >= 0 || !tensor || bytes == 0 ||
        tensor.byte_size() != bytes) {
      return false;
    }
    auto moved = tensor.MaybeMove();
    if (!moved.has_value()) return false;
    // The kernel may read the input again.
    tensor = *std::move(moved);
    auto shared = tensor.Reshape(
        Shape(absl::MakeConstSpan(dims, static_cast<size_t>(num_dims))));
    if (!shared.ok()) return false;
    run_.tensor(v) = *std::move(shared);
    return true;
  }
  // Returns a handle for the kernel to value `v`, which it has forwarded, and
  // sets the region's output that the value is.
  capi::TF_Tensor* Publish(int v, capi::TF_Status* status) {
    Tensor& tensor = run_.tensor(v);
    if (observer() != nullptr) observer()->OnShare(v, tensor);
    if (run_.value(v).output >= 0) {
      original.TF_SetOutput(outer(), run_.value(v).output, tensor.get(),
                            status);
      if (original.TF_GetCode(status) != capi::TF_OK) return nullptr;
    }
    if (IsStored(v)) return Take(tensor, status);
    return std::exchange(tensor, Tensor()).release();
  }

  SubgraphRun& run_;
  const SubNode& node_;
};

inline absl::Status SubgraphRun::Run() {
  int index = 0;
  for (const SubNode& node : subgraph_.nodes()) {
    NodeRun run(*this, node);
    if (observer_ != nullptr) observer_->OnNode(index++);
    node.functions->compute_func(node.kernel, run.handle());
    if (!run.failure.ok()) return run.failure;
    for (int k = 0; k < node.num_outputs; ++k) {
      const int i = node.first_output + k;
      if (uses_left(i) == 0) tensor(i) = Tensor();
    }
    for (const int i : node.inputs) {
      if (--uses_left_[static_cast<size_t>(i)] == 0) tensor(i) = Tensor();
    }
  }
  return absl::OkStatus();
}

}  // namespace tfplug::runtime

#pragma GCC visibility pop

#endif  // TFPLUG_RUNTIME_NODE_RUN_H_
