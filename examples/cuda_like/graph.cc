// SPDX-License-Identifier: Apache-2.0
#include "graph.h"

#include <tfplug/base/status_macros.h>
#include <tfplug/base/tensor_float_32.h>

#include <utility>

#include "cuda_like.h"

namespace cuda_like {
namespace {

// The size that NVIDIA recommends for products on sm_90; others need less. It
// is that of a handle's own workspace, so that cuBLAS selects the same kernels.
constexpr size_t kWorkspace = size_t{32} << 20, kSmallWorkspace = 4 << 20;

}  // namespace

class Graphs::Graph final : public tfplug::LaunchGraph {
 public:
  Graph(std::shared_ptr<Graphs> owner, CUgraphExec graph)
      : owner_(std::move(owner)), graph_(graph) {}
  ~Graph() override { owner_->Destroy(graph_); }

  absl::Status Launch() override {
    if (tf32_ != tfplug::IsTensorFloat32Allowed()) {
      return absl::FailedPreconditionError(
          "TF32 was turned on or off since the graph was captured");
    }
    return owner_->Launch(graph_);
  }

 private:
  const std::shared_ptr<Graphs> owner_;
  const CUgraphExec graph_;
  const bool tf32_ = tfplug::IsTensorFloat32Allowed();
};

Graphs::Graphs(Stream& stream) : stream_(stream) {}
Graphs::~Graphs() = default;

absl::Status Graphs::Init() {
  if (capturing_ == nullptr) {
    auto capturing =
        std::make_unique<Stream>(stream_.device(), tfplug::StreamOptions());
    TFPLUG_RETURN_IF_ERROR(capturing->Init());
    capturing->set_capturing(true);
    capturing_ = std::move(capturing);
  }
  // The launches have run one by one: with products by cuBLAS, or without.
  return stream_.blas().is_used() && !capturing_->blas().is_used()
             ? InitBlas()
             : absl::OkStatus();
}

absl::Status Graphs::InitBlas() {
  const Device& device = stream_.device();
  const size_t bytes = device.sm() >= 90 ? kWorkspace : kSmallWorkspace;
  if (workspace_ == 0) {
    TFPLUG_RETURN_IF_ERROR(
        device.Call(device.driver().cuMemAlloc, &workspace_, bytes));
  }
  return capturing_->blas().CreateForCapture(
      *capturing_, reinterpret_cast<void*>(workspace_), bytes);
}

absl::StatusOr<CUgraphExec> Graphs::CaptureExec(
    const tfplug::CapturedWork<Stream>& work) {
  const Device& device = stream_.device();
  const Driver& driver = device.driver();
  const std::lock_guard<std::mutex> lock(stream_.device().capture_mutex());
  TFPLUG_RETURN_IF_ERROR(device.Call(driver.cuStreamBeginCapture,
                                     capturing_->handle(),
                                     CU_STREAM_CAPTURE_MODE_RELAXED));
  // Also after an exception.
  struct Scope {
    ~Scope() {
      if (!is_ended) End().IgnoreError();
      if (graph != nullptr) {
        device.Call(device.driver().cuGraphDestroy, graph).IgnoreError();
      }
    }
    absl::Status End() {
      is_ended = true;
      return device.Call(device.driver().cuStreamEndCapture, stream, &graph);
    }
    const Device& device;
    const CUstream stream;
    CUgraph graph = nullptr;
    bool is_ended = false;
  } scope{device, capturing_->handle()};
  TFPLUG_RETURN_IF_ERROR(work(*capturing_));
  TFPLUG_RETURN_IF_ERROR(scope.End());
  CUgraphExec executable = nullptr;
  TFPLUG_RETURN_IF_ERROR(device.Call(driver.cuGraphInstantiateWithFlags,
                                     &executable, scope.graph, 0ull));
  return executable;
}

tfplug::NewLaunchGraph Graphs::Capture(
    const tfplug::CapturedWork<Stream>& work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  TFPLUG_RETURN_IF_ERROR(Init());
  const absl::StatusOr<CUgraphExec> graph = CaptureExec(work);
  if (!graph.ok()) {
    capturing_.reset();  // whatever state it is in
    return graph.status();
  }
  graphs_.insert(*graph);
  return std::make_unique<Graph>(shared_from_this(), *graph);
}

absl::Status Graphs::Launch(CUgraphExec graph) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_destroyed_) {
    return absl::FailedPreconditionError("the stream is destroyed");
  }
  const Device& device = stream_.device();
  return device.Call(device.driver().cuGraphLaunch, graph, stream_.handle());
}

void Graphs::Destroy(CUgraphExec graph) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (graphs_.erase(graph) == 0) return;
  stream_.BlockHostUntilDone().IgnoreError();
  const Device& device = stream_.device();
  device.Call(device.driver().cuGraphExecDestroy, graph).IgnoreError();
}

void Graphs::Destroy() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_destroyed_ = true;
  if (capturing_ == nullptr) return;
  stream_.BlockHostUntilDone().IgnoreError();
  const Device& device = stream_.device();
  for (const CUgraphExec graph : graphs_) {
    device.Call(device.driver().cuGraphExecDestroy, graph).IgnoreError();
  }
  graphs_.clear();
  capturing_.reset();
  if (workspace_ != 0) {
    device.Call(device.driver().cuMemFree, workspace_).IgnoreError();
  }
}

}  // namespace cuda_like
