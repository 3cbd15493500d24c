// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_INTERNAL_REGION_RECORD_H_
#define TFPLUG_OP_KERNELS_INTERNAL_REGION_RECORD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/kernel/kernel_context.h"
#include "tfplug/kernel/region_op.h"
#include "tfplug/op_kernels/internal/region_graphs.h"
#include "tfplug/op_kernels/internal/region_launches.h"
#include "tfplug/op_kernels/internal/registered_backend.h"
#include "tfplug/op_kernels/op_run.h"
#include "tfplug/runtime/subgraph.h"

#pragma GCC visibility push(hidden)

namespace tfplug::op_kernels_internal {

// Memory that launches use: an input or output of the region, or a part of the
// arena, which exists during a run.
struct RegionBuffer {
  enum class Kind : uint8_t { kInput, kOutput, kArena };

  Kind kind = Kind::kArena;
  int index = -1;  // of the input or output
  size_t size = 0;
  int first = -1, last = -1;  // the launches that use it
  int64_t offset = 0;         // in the arena
};

// The temporary memory of one launch after the other, in the arena.
class ArenaScratch final : public Scratch {
 public:
  static constexpr int64_t kAlignment = 256;

  static int64_t RoundUp(int64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  // Sets the memory of the next launch, which that of the last one may overlap.
  void Reset(char* begin, size_t size) {
    next_ = begin;
    left_ = static_cast<int64_t>(size);
  }

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    if (bytes == 0) return static_cast<void*>(nullptr);
    const int64_t size = RoundUp(bytes);
    if (size > left_) {
      return absl::InternalError(
          "a launch of a region needs more temporary memory than when it was "
          "recorded; set TFPLUG_REGIONS=0 and report the op");
    }
    void* const memory = next_;
    next_ += size;
    left_ -= size;
    return memory;
  }

 private:
  char* next_ = nullptr;
  int64_t left_ = 0;
};

// Gives each buffer of the arena a place such that buffers that are used at the
// same time do not overlap. Returns the size of the arena.
inline int64_t PlanArena(std::vector<RegionBuffer>& buffers) {
  std::vector<RegionBuffer*> placed;
  int64_t size = 0;
  for (RegionBuffer& buffer : buffers) {
    if (buffer.kind != RegionBuffer::Kind::kArena || buffer.first < 0) continue;
    const auto bytes = static_cast<int64_t>(buffer.size);
    // The buffers used at the same time, by offset.
    std::vector<const RegionBuffer*> others;
    for (const RegionBuffer* other : placed) {
      if (other->first <= buffer.last && buffer.first <= other->last) {
        others.push_back(other);
      }
    }
    std::sort(others.begin(), others.end(), [](const auto* a, const auto* b) {
      return a->offset < b->offset;
    });
    for (const RegionBuffer* other : others) {
      if (buffer.offset + bytes <= other->offset) break;
      const int64_t end = other->offset + static_cast<int64_t>(other->size);
      buffer.offset = std::max(buffer.offset, ArenaScratch::RoundUp(end));
    }
    size = std::max(size, buffer.offset + bytes);
    placed.push_back(&buffer);
  }
  return size;
}

// What one run of a region launched, to repeat it for inputs of the same shapes
// and the same values in host memory.
class RegionRecord {
 public:
  struct Input {
    std::vector<int64_t> dims;
    std::string host_value;  // the bytes of an input in host memory
    int same_as = -1;        // an earlier input that is the same memory
  };
  struct Output {
    std::vector<int64_t> dims;
    std::string host_value;
    int buffer = -1;  // whose memory it shares; -1 for memory of its own
  };

  // Returns whether the record holds for these inputs.
  bool Fits(const std::vector<Tensor>& inputs,
            const std::vector<runtime::Port>& ports) const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Tensor& tensor = inputs[i];
      const std::vector<int64_t>& dims = inputs_[i].dims;
      if (static_cast<size_t>(tensor.rank()) != dims.size()) return false;
      for (size_t d = 0; d < dims.size(); ++d) {
        if (tensor.dim(static_cast<int>(d)) != dims[d]) return false;
      }
      const int same_as = inputs_[i].same_as;
      if (same_as >= 0 &&
          tensor.data() != inputs[static_cast<size_t>(same_as)].data()) {
        return false;
      }
      const std::string& value = inputs_[i].host_value;
      if (ports[i].on_host && !value.empty() &&
          std::memcmp(tensor.data(), value.data(), value.size()) != 0) {
        return false;
      }
    }
    return true;
  }

  // Enqueues the launches and sets the outputs.
  absl::Status Replay(KernelContext& context, const std::vector<Tensor>& inputs,
                      const runtime::Subgraph& subgraph) const {
    OpRun run(context);
    TFPLUG_ASSIGN_OR_RETURN(void* const stream,
                            registered_backend.get_stream(context));
    std::vector<Tensor> outputs(outputs_.size());
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const Output& output = outputs_[k];
      if (output.buffer >= 0) continue;
      TFPLUG_ASSIGN_OR_RETURN(
          outputs[k],
          context.AllocateOutput(static_cast<int>(k), Shape(output.dims)));
      if (!output.host_value.empty()) {
        std::memcpy(outputs[k].data(), output.host_value.data(),
                    output.host_value.size());
      }
    }
    TFPLUG_ASSIGN_OR_RETURN(void* const arena, run.Allocate(arena_size_));
    std::vector<char*> addresses(buffers_.size() + 1);  // null first
    for (size_t b = 0; b < buffers_.size(); ++b) {
      const RegionBuffer& buffer = buffers_[b];
      const auto index = static_cast<size_t>(buffer.index);
      addresses[b + 1] = buffer.kind == RegionBuffer::Kind::kInput
                             ? static_cast<char*>(inputs[index].data())
                         : buffer.kind == RegionBuffer::Kind::kOutput
                             ? static_cast<char*>(outputs[index].data())
                             : static_cast<char*>(arena) + buffer.offset;
    }
    const auto enqueue = [&](void* on) {
      return Enqueue(on, addresses, subgraph);
    };
    const auto log = [&](const std::string& decision) {
      if (!AreRegionsLogged()) return;
      LogRegions(
          absl::StrCat("the ", launches_.size(), " launches of the region '",
                       context.GetNodeName().value_or(""), "' ", decision));
    };
    if (!graphs_->Launch(*registered_backend.table,
                         registered_backend.get_backend(), stream, addresses,
                         enqueue, log)) {
      TFPLUG_RETURN_IF_ERROR(enqueue(stream));
    }
    for (size_t k = 0; k < outputs_.size(); ++k) {
      if (outputs_[k].buffer < 0) continue;
      const RegionBuffer& buffer =
          buffers_[static_cast<size_t>(outputs_[k].buffer)];
      const Tensor& source = buffer.kind == RegionBuffer::Kind::kInput
                                 ? inputs[static_cast<size_t>(buffer.index)]
                                 : outputs[static_cast<size_t>(buffer.index)];
      TFPLUG_ASSIGN_OR_RETURN(const Tensor shared,
                              source.Reshape(Shape(outputs_[k].dims)));
      TFPLUG_RETURN_IF_ERROR(context.SetOutput(static_cast<int>(k), shared));
    }
    return absl::OkStatus();
  }

 private:
  friend class RegionRecorder;

  // Enqueues the launches, of which the first buffer is null.
  absl::Status Enqueue(void* stream, const std::vector<char*>& buffers,
                       const runtime::Subgraph& subgraph) const {
    ArenaScratch scratch;
    void* const backend = registered_backend.get_backend();
    Launcher launcher(registered_backend.table, backend, stream, &scratch);
    const Target target = {registered_backend.table, backend, stream,
                           &launcher};
    for (const auto& launch : launches_) {
      if (launch->scratch >= 0) {
        const auto b = static_cast<size_t>(launch->scratch);
        scratch.Reset(buffers[b + 1], buffers_[b].size);
      } else {
        scratch.Reset(nullptr, 0);
      }
      absl::Status status = launch->Run(target, buffers);
      if (status.ok()) continue;
      const runtime::SubNode& node =
          subgraph.nodes()[static_cast<size_t>(launch->node)];
      const std::string text = "op '" + node.op + "', node '" + node.name + "'";
      return internal::Annotate(status, text.c_str());
    }
    return absl::OkStatus();
  }

  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<RegionBuffer> buffers_;
  std::vector<std::unique_ptr<RecordedLaunch>> launches_;
  int64_t arena_size_ = 0;
  std::unique_ptr<RegionGraphs> graphs_;
};

}  // namespace tfplug::op_kernels_internal

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_INTERNAL_REGION_RECORD_H_
