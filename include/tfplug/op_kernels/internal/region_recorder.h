// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_REGION_RECORDER_H_
#define TFPLUG_OP_KERNELS_INTERNAL_REGION_RECORDER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tfplug/op_kernels/internal/launch_observer.h"
#include "tfplug/op_kernels/internal/region_launches.h"
#include "tfplug/op_kernels/internal/region_record.h"
#include "tfplug/op_kernels/internal/registered_backend.h"
#include "tfplug/primitives/launcher.h"
#include "tfplug/runtime/subgraph.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// Records what the kernels of a region launch while they run. A launch is
// recorded and passed on to the backend; launches that a composed primitive
// makes of others are a part of it.
//
// Gives up, with a reason, if a launch reads or writes memory that belongs to
// no tensor of the region, or if a kernel uses the stream without the launcher.
class RegionRecorder final : public LaunchObserver {
 public:
  RegionRecorder(const runtime::Subgraph& subgraph,
                 const std::vector<Tensor>& inputs)
      : subgraph_(subgraph), record_(new RegionRecord) {
    record_->outputs_.resize(static_cast<size_t>(subgraph.num_outputs()));
    is_known_.resize(record_->outputs_.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& tensor = inputs[i];
      RegionRecord::Input input{DimsOf(tensor), "", -1};
      if (subgraph.inputs()[i].on_host) {
        input.host_value = BytesOf(tensor);
      } else {
        input.same_as = FindSame(tensor);
        AddBuffer(RegionBuffer::Kind::kInput, static_cast<int>(i), tensor);
        // Launches use the earlier one.
        if (input.same_as >= 0) places_.back().is_alive = false;
      }
      record_->inputs_.push_back(std::move(input));
    }
  }

  // Returns whether inputs share a part of their memory in this run, which they
  // may not do in later ones: the run cannot be recorded.
  bool shares_memory() const { return shares_memory_; }
  // Returns null while the region can be recorded.
  const char* why_not() const { return why_not_; }

  // Returns the record after a run that succeeded; null if there is none.
  std::unique_ptr<RegionRecord> Finish() {
    for (const auto& [output, tensor] : host_outputs_) {
      SetOutput(output, tensor, -1);
      record_->outputs_[static_cast<size_t>(output)].host_value =
          BytesOf(tensor);
    }
    for (const bool is_known : is_known_) {
      if (!is_known) GiveUp("a kernel sets an output in another way");
    }
    if (why_not_ != nullptr) return nullptr;
    record_->arena_size_ = PlanArena(record_->buffers_);
    record_->graphs_ =
        std::make_unique<RegionGraphs>(record_->launches_.size());
    return std::move(record_);
  }

  // ---- RunObserver -----------------------------------------------------------

  void OnAllocate(int value, const Tensor& tensor) override {
    const runtime::SubValue* const v =
        value >= 0 ? &subgraph_.value(value) : nullptr;
    if (v != nullptr && v->port.on_host) return OnHostValue(*v, tensor);
    if (in_launch_) {
      scratch_size_ +=
          ArenaScratch::RoundUp(static_cast<int64_t>(tensor.byte_size()));
      return;
    }
    const bool is_output = v != nullptr && v->output >= 0;
    AddBuffer(
        is_output ? RegionBuffer::Kind::kOutput : RegionBuffer::Kind::kArena,
        is_output ? v->output : -1, tensor);
    if (is_output) SetOutput(v->output, tensor, -1);
    if (v == nullptr) scratch_buffers_.push_back(places_.size() - 1);
  }
  void OnShare(int value, const Tensor& tensor) override {
    const runtime::SubValue& v = subgraph_.value(value);
    if (v.port.on_host) return OnHostValue(v, tensor);
    if (v.output < 0) return;
    if (tensor.byte_size() == 0) return SetOutput(v.output, tensor, -1);
    const auto* const begin = static_cast<const char*>(tensor.data());
    const int b = Find(begin, begin + tensor.byte_size());
    if (b < 0 || places_[static_cast<size_t>(b)].address != begin ||
        record_->buffers_[static_cast<size_t>(b)].size != tensor.byte_size()) {
      return GiveUp("an output is a part of another tensor");
    }
    RegionBuffer& buffer = record_->buffers_[static_cast<size_t>(b)];
    if (buffer.kind == RegionBuffer::Kind::kArena) {
      buffer.kind = RegionBuffer::Kind::kOutput;
      buffer.index = v.output;
      return SetOutput(v.output, tensor, -1);
    }
    SetOutput(v.output, tensor, b);
  }
  void OnGetStream() override {
    if (!starts_) GiveUp("a kernel uses the stream itself");
  }

  void OnNode(int node) override {
    node_ = node;
    // The scratch of the node before is free.
    for (const size_t b : scratch_buffers_) places_[b].is_alive = false;
    scratch_buffers_.clear();
  }

  // ---- LaunchObserver --------------------------------------------------------

  absl::StatusOr<Launcher> MakeLauncher(KernelContext& context,
                                        Scratch* scratch) override {
    starts_ = true;
    const auto stream = registered_backend.get_stream(context);
    starts_ = false;
    if (!stream.ok()) return stream.status();
    target_ = {registered_backend.table, registered_backend.get_backend(),
               *stream, nullptr};
    scratch_ = scratch;
    return Launcher(&Table(), this, *stream, scratch);
  }

 private:
  struct Address {
    const char* address = nullptr;
    bool is_alive = true;
  };

  void GiveUp(const char* reason) {
    if (why_not_ == nullptr) why_not_ = reason;
  }

  // Returns the earlier input that is the same memory, or -1. Two reads of a
  // variable are.
  int FindSame(const Tensor& tensor) {
    const auto* const begin = static_cast<const char*>(tensor.data());
    const uint64_t size = tensor.byte_size();
    for (size_t b = 0; b < places_.size() && size != 0; ++b) {
      const char* const other = places_[b].address;
      const RegionBuffer& buffer = record_->buffers_[b];
      if (!places_[b].is_alive || other >= begin + size ||
          begin >= other + buffer.size) {
        continue;
      }
      if (other == begin && buffer.size == size) return buffer.index;
      shares_memory_ = true;
    }
    return -1;
  }

  static std::vector<int64_t> DimsOf(const Tensor& tensor) {
    std::vector<int64_t> dims;
    dims.reserve(static_cast<size_t>(tensor.rank()));
    for (int d = 0; d < tensor.rank(); ++d) dims.push_back(tensor.dim(d));
    return dims;
  }
  std::string BytesOf(const Tensor& tensor) {
    constexpr uint64_t kMost = 65536;
    if (tensor.byte_size() > kMost) {
      GiveUp("a value in host memory is too large to be compared in each run");
      return "";
    }
    return std::string(static_cast<const char*>(tensor.data()),
                       tensor.byte_size());
  }

  void AddBuffer(RegionBuffer::Kind kind, int index, const Tensor& tensor) {
    RegionBuffer buffer;
    buffer.kind = kind;
    buffer.index = index;
    buffer.size = tensor.byte_size();
    const auto* const begin = static_cast<const char*>(tensor.data());
    if (buffer.size != 0 && kind != RegionBuffer::Kind::kInput) {
      // Memory that is allocated again was freed before.
      for (size_t b = 0; b < places_.size(); ++b) {
        const char* const other = places_[b].address;
        if (other < begin + buffer.size &&
            begin < other + record_->buffers_[b].size) {
          places_[b].is_alive = false;
        }
      }
    }
    record_->buffers_.push_back(buffer);
    places_.push_back({begin, buffer.size != 0});
  }

  // Returns the buffer that contains [begin, end), or -1.
  int Find(const char* begin, const char* end) const {
    for (size_t b = places_.size(); b-- > 0;) {
      const char* const first = places_[b].address;
      if (places_[b].is_alive && first <= begin &&
          end <= first + record_->buffers_[b].size) {
        return static_cast<int>(b);
      }
    }
    return -1;
  }

  void SetOutput(int output, const Tensor& tensor, int buffer) {
    const auto k = static_cast<size_t>(output);
    is_known_[k] = true;
    record_->outputs_[k] = {DimsOf(tensor), "", buffer};
  }
  // A value in host memory depends only on shapes and on inputs in host memory.
  // Kernels on the host are done with it when they return.
  void OnHostValue(const runtime::SubValue& value, const Tensor& tensor) {
    if (value.output < 0) return;
    auto shared = tensor.Reshape(tensor.shape());
    if (!shared.ok()) return GiveUp("out of memory");
    host_outputs_.emplace_back(value.output, *std::move(shared));
  }

  // ---- Launches --------------------------------------------------------------

  // Returns the place of the elements in [begin, end), whose view begins at
  // `data`, and marks the buffer as used by the launch that is being recorded.
  Place PlaceOf(const char* data, const char* begin, const char* end) {
    if (begin >= end) return {};
    const int b = Find(begin, end);
    if (b < 0) {
      GiveUp("a launch uses memory of no tensor in the region");
      return {};
    }
    RegionBuffer& buffer = record_->buffers_[static_cast<size_t>(b)];
    buffer.last = static_cast<int>(record_->launches_.size());
    if (buffer.first < 0) buffer.first = buffer.last;
    const auto index = static_cast<size_t>(b);
    return {index + 1, data - places_[index].address};
  }
  // Does the same for a view. A view may begin outside of the memory that its
  // elements are in.
  Place PlaceOf(const Operand& view) {
    if (!view.has_memory() || view.data == nullptr) return {};
    const auto size = static_cast<int64_t>(DataTypeSize(view.type));
    int64_t first = 0, last = size;
    const auto extend = [&](int64_t count, int64_t stride) {
      const int64_t distance = (count - 1) * stride * size;
      (distance < 0 ? first : last) += distance;
    };
    for (int d = 0; d < view.rank; ++d) {
      if (view.dim(d) == 0) return {};
      extend(view.dim(d), view.stride(d));
    }
    if (view.axis_size > 1) extend(view.axis_size, view.axis_stride);
    const auto* const data = static_cast<const char*>(view.data);
    return PlaceOf(data, data + first, data + last);
  }

  // Keeps a launch, and calls launch(target) for the backend.
  template <class Call>
  absl::Status Add(std::unique_ptr<RecordedLaunch> launch, const Call& call) {
    launch->node = node_;
    record_->launches_.push_back(std::move(launch));
    Launcher launcher(target_.table, target_.backend, target_.stream, scratch_);
    Target target = target_;
    target.launcher = &launcher;
    scratch_size_ = 0;
    in_launch_ = true;
    absl::Status status = call(target);
    in_launch_ = false;
    if (scratch_size_ > 0) AddScratch();
    return status;
  }
  // Adds the temporary memory of the last launch, which is in the arena in each
  // replay, so that its address does not change in a graph.
  void AddScratch() {
    RegionBuffer buffer;
    buffer.size = static_cast<size_t>(scratch_size_);
    buffer.first = buffer.last =
        static_cast<int>(record_->launches_.size()) - 1;
    record_->launches_.back()->scratch =
        static_cast<int>(record_->buffers_.size());
    record_->buffers_.push_back(buffer);
    places_.push_back({nullptr, false});
  }
  template <auto member, class... A>
  absl::Status AddCall(A... arguments) {
    auto launch = std::make_unique<LaunchOf<member, A...>>(
        [this](const Operand& operand) { return PlaceOf(operand); },
        arguments...);
    return Add(std::move(launch), [&](const Target& target) {
      return (target.table->*member)(target.backend, target.stream,
                                     *target.launcher, arguments...);
    });
  }
  absl::Status AddFlat(const Expression& expression,
                       const FlatOperands& operands) {
    std::vector<Place> places;
    const size_t num_inputs = expression.inputs().size();
    for (size_t i = 0; i < operands.addresses.size(); ++i) {
      const bool is_input = i < num_inputs;
      if (i >= num_inputs + expression.outputs().size()) break;
      const DataType type = is_input
                                ? expression.inputs()[i]
                                : expression.outputs()[i - num_inputs].type;
      const int64_t count =
          operands.size == 0 || (operands.repeated >> i & 1) == 0
              ? operands.size
              : 1;
      const auto* const data = static_cast<const char*>(operands.addresses[i]);
      places.push_back(PlaceOf(
          data, data, data + count * static_cast<int64_t>(DataTypeSize(type))));
    }
    return Add(
        std::make_unique<FlatLaunch>(expression, operands, std::move(places)),
        [&](const Target& target) {
          return target.table->map_flat(target.backend, target.stream,
                                        expression, operands);
        });
  }

  // The functions of Table().
  template <auto member>
  struct Recording;
  template <class... A, absl::Status (*primitives::PrimitiveTable::*member)(
                            void*, void*, Launcher&, A...)>
  struct Recording<member> {
    static absl::Status Call(void* self, void*, Launcher&, A... arguments) {
      return static_cast<RegionRecorder*>(self)->template AddCall<member, A...>(
          arguments...);
    }
  };
  static const primitives::PrimitiveTable& Table() {
    static const primitives::PrimitiveTable table = MakeTable();
    return table;
  }
  static primitives::PrimitiveTable MakeTable() {
    using T = primitives::PrimitiveTable;
    T table = {};
    table.map_flat = [](void* self, void*, const Expression& expression,
                        const FlatOperands& operands) {
      return static_cast<RegionRecorder*>(self)->AddFlat(expression, operands);
    };
    table.map = &Recording<&T::map>::Call;
    table.reduce = &Recording<&T::reduce>::Call;
#define TFPLUG_INTERNAL_PRIMITIVE(name, ...) \
  table.name = &Recording<&T::name>::Call;
#include "tfplug/primitives/primitives.def"
    table.enqueue = &Recording<&T::enqueue>::Call;
    return table;
  }

  const runtime::Subgraph& subgraph_;
  std::unique_ptr<RegionRecord> record_;
  std::vector<Address> places_;          // of the buffers
  std::vector<size_t> scratch_buffers_;  // of the node that runs
  std::vector<bool> is_known_;           // by output
  std::vector<std::pair<int, Tensor>> host_outputs_;
  const char* why_not_ = nullptr;
  bool shares_memory_ = false, starts_ = false, in_launch_ = false;
  int64_t scratch_size_ = 0;  // of the launch that is being recorded
  Target target_ = {};
  Scratch* scratch_ = nullptr;
  int node_ = 0;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_REGION_RECORDER_H_
