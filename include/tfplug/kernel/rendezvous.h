// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_KERNEL_RENDEZVOUS_H_
#define TFPLUG_KERNEL_RENDEZVOUS_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tfplug/abi/tf_rendezvous.h"
#include "tfplug/base/capability.h"
#include "tfplug/base/internal/device_name.h"
#include "tfplug/base/internal/guard.h"
#include "tfplug/base/internal/tensorflow.h"
#include "tfplug/base/status.h"
#include "tfplug/kernel/run_info.h"
#include "tfplug/kernel/tensor.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Identifies one transfer of a tensor: the sending and the receiving device, a
// name chosen by the kernels, and the iteration of a loop. TensorFlow aborts on
// a key that it cannot parse, so Make validates each part.
class RendezvousKey {
 public:
  // Devices are given by their full names, as RunInfo::GetDeviceName returns
  // them; `edge_name` must not be empty or contain ';'. INVALID_ARGUMENT
  // otherwise. `src_incarnation` is needed only to match TensorFlow's own keys.
  static absl::StatusOr<RendezvousKey> Make(absl::string_view src_device,
                                            absl::string_view dst_device,
                                            absl::string_view edge_name,
                                            uint64_t frame_id = 0,
                                            int64_t iter_id = 0,
                                            uint64_t src_incarnation = 0) {
    for (absl::string_view device : {src_device, dst_device}) {
      if (!internal::IsFullDeviceName(device)) {
        return absl::InvalidArgumentError(
            "\"" + std::string(device) +
            "\" is not a full device name, such as "
            "/job:localhost/replica:0/task:0/device:MY_DEVICE:0");
      }
    }
    if (edge_name.empty() || edge_name.find(';') != absl::string_view::npos) {
      return absl::InvalidArgumentError("the edge name \"" +
                                        std::string(edge_name) +
                                        "\" must not be empty or contain ';'");
    }
    char incarnation[17];
    std::snprintf(incarnation, sizeof(incarnation), "%016llx",
                  static_cast<unsigned long long>(src_incarnation));
    RendezvousKey key;
    key.text_ = std::string(src_device) + ";" + incarnation + ";" +
                std::string(dst_device) + ";" + std::string(edge_name) + ";" +
                std::to_string(frame_id) + ":" + std::to_string(iter_id);
    return key;
  }

  const std::string& text() const { return text_; }

 private:
  RendezvousKey() = default;

  std::string text_;
};

// Passes tensors between the kernels of one step, in whatever order they run
// (TF_RendezvousThunk). Since 2.16.
//
// Tensors are passed by reference: nothing is copied between a device and the
// host, because TensorFlow's copies do not support the device context that the
// C API passes for a plug-in's device. Both sides must therefore access the
// same memory: only kernels of the same device can receive a tensor in device
// memory; any kernel can receive one in host memory.
//
// Valid during the run that it was obtained from; pending sends and receives
// outlive it. Its functions may be called on any thread.
class Rendezvous {
 public:
  // Returns the rendezvous of the run's step. UNIMPLEMENTED if the release has
  // none, FAILED_PRECONDITION if the run has none. TensorFlow leaks 32 bytes
  // per call: call it once per run.
  static absl::StatusOr<Rendezvous> Get(const RunInfo<>& run) {
    if (auto s = Require(&CApi::TF_GetRendezvous); !s.ok()) return s;
    const capi::TF_RendezvousThunk thunk =
        internal::tensorflow.TF_GetRendezvous(run.get());
    if (thunk.rendezvous == nullptr) {
      return absl::FailedPreconditionError("this run has no rendezvous");
    }
    return Rendezvous(thunk);
  }

  // Sends `tensor` to the receiver of `key`. Several tensors under one key are
  // received in the order in which they were sent. After StartAbort, returns
  // its status.
  absl::Status Send(const RendezvousKey& key, const Tensor& tensor,
                    bool is_dead = false) const {
    if (!tensor)
      return absl::InvalidArgumentError("the tensor to send is empty");
    Arguments arguments(key);
    OwnedStatus status;
    capi::TF_RendezvousSend_Params params = {};
    params.key = &arguments.key;
    params.args = &arguments.args;
    params.tensor = tensor.get();
    params.is_dead = is_dead;
    params.status = status.get();
    thunk_.send_func(thunk_.rendezvous, &params);
    return status.ToStatus();
  }

  // Calls `done(const absl::Status&, const Tensor&, bool is_dead)` exactly
  // once: with the tensor sent under `key`, or with an empty tensor and the
  // error of StartAbort or of the end of the step. If the tensor has been sent,
  // `done` runs on this thread before the call returns, otherwise on the
  // sender's. TensorFlow owns the tensor, which is valid during `done`: pass it
  // to SetOutput, or keep the result of Reshape. Exceptions from `done` are
  // logged.
  template <class Done>
  void RecvAsync(const RendezvousKey& key, Done done) const {
    Arguments arguments(key);
    auto pending = std::make_unique<Pending<Done>>(std::move(done));
    capi::TF_RendezvousAsyncRecv_Params params = {};
    params.key = &arguments.key;
    params.args = &arguments.args;
    params.on_done.context = pending.release();
    params.on_done.callback = &Pending<Done>::Call;
    thunk_.async_recv_func(thunk_.rendezvous, &params);
  }

  // Fails all pending and future sends and receives of the step, including
  // TensorFlow's own, with `status`; with ABORTED if that is OK.
  void StartAbort(const absl::Status& status) const {
    OwnedStatus c_status;
    SetStatus(c_status.get(), status.ok() ? absl::AbortedError("") : status);
    thunk_.start_abort_func(thunk_.rendezvous, c_status.get());
  }

 private:
  explicit Rendezvous(const capi::TF_RendezvousThunk& thunk) : thunk_(thunk) {}

  // Holds a receiver's callback until TensorFlow calls it.
  template <class Done>
  struct Pending {
    explicit Pending(Done done) : done(std::move(done)) {}

    static void Call(void* context, capi::TF_RendezvousDoneCallback_Params* p) {
      const std::unique_ptr<Pending> self(static_cast<Pending*>(context));
      internal::GuardOrLog("TF_RendezvousDoneCallback", [&] {
        const absl::Status status = ToStatus(p->status);
        Tensor tensor;
        if (status.ok()) {
          tensor = Tensor(const_cast<capi::TF_Tensor*>(p->tensor));
        }
        // TensorFlow deletes the tensor, so this Tensor must not.
        struct Disown {
          Tensor& tensor;
          ~Disown() { tensor.release(); }
        } disown{tensor};
        self->done(status, static_cast<const Tensor&>(tensor), p->is_dead);
        return absl::OkStatus();
      });
    }

    Done done;
  };

  // The C arguments that accompany a key. TensorFlow requires a device context
  // and counts its references, but never uses it for a copy, because both sides
  // are declared to be in host memory.
  struct Arguments {
    explicit Arguments(const RendezvousKey& k) {
      key.full_key = const_cast<char*>(k.text().data());
      key.full_key_size = static_cast<uint32_t>(k.text().size());
      args.device_context = &context;
      args.alloc_attrs.value = kOnHost;
    }
    static constexpr uint32_t kOnHost = 1;

    capi::TF_RendezvousParsedKey key = {};
    capi::TF_RendezvousArgsStruct args = {};
    capi::TF_DeviceContext context = {};
  };

  capi::TF_RendezvousThunk thunk_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_KERNEL_RENDEZVOUS_H_
