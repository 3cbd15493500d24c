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

namespace tfplug {

// What a tensor is handed over under: who sends it, who receives it, and a name
// of their own, in one iteration of a loop. Core ends the process over a key
// that it cannot read, so Make checks each part.
class RendezvousKey {
 public:
  // The two devices by their full names, as RunInfo::device_name gives them;
  // `edge_name` is any text without ';'. INVALID_ARGUMENT if one is not that.
  // Core's own edges also carry the number of the sender's incarnation.
  static absl::StatusOr<RendezvousKey> Make(absl::string_view src_device,
                                            absl::string_view dst_device,
                                            absl::string_view edge_name,
                                            uint64_t frame_id = 0,
                                            int64_t iter_id = 0,
                                            uint64_t src_incarnation = 0) {
    for (absl::string_view device : {src_device, dst_device}) {
      if (!internal::IsFullDeviceName(device)) {
        return absl::InvalidArgumentError(
            "not a full device name, such as /job:localhost/replica:0/task:0/"
            "device:MY_DEVICE:0: \"" +
            std::string(device) + "\"");
      }
    }
    if (edge_name.empty() || edge_name.find(';') != absl::string_view::npos) {
      return absl::InvalidArgumentError(
          "an edge's name has at least one character and no ';': \"" +
          std::string(edge_name) + "\"");
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

// Where the kernels of one step hand tensors to each other (TF_RendezvousThunk)
// in whatever order they run. Since 2.16.
//
// Tensors go by reference and as they are: nothing is copied between a device
// and the host, for the C API has no word for a plug-in's device that core's
// copies understand. So both sides have to mean the same memory: a tensor on
// the device is for a kernel on the same device, one in host memory for any.
//
// Valid for the run that it was asked of; what has been sent or asked for
// goes on without it. Any thread.
class Rendezvous {
 public:
  // UNIMPLEMENTED in words where this release has none; FAILED_PRECONDITION
  // where the run has none. Core leaves 32 bytes behind with each call: ask
  // once a run.
  static absl::StatusOr<Rendezvous> Of(const RunInfo<>& run) {
    if (auto s = Require(&CApi::TF_GetRendezvous); !s.ok()) return s;
    const capi::TF_RendezvousThunk thunk =
        internal::tensorflow.TF_GetRendezvous(run.get());
    if (thunk.rendezvous == nullptr) {
      return absl::FailedPreconditionError("this run has no rendezvous");
    }
    return Rendezvous(thunk);
  }

  // Leaves `tensor` for who receives `key`. Several under one key are received
  // in this order. ABORTED and the like after StartAbort.
  absl::Status Send(const RendezvousKey& key, const Tensor& tensor,
                    bool is_dead = false) const {
    if (!tensor) return absl::InvalidArgumentError("no tensor to send");
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
  // once: with what was sent under `key`, or with the error of StartAbort or of
  // the step's end. On this thread, before the call returns, if it has been
  // sent; else on the thread that sends it. The tensor is core's and goes with
  // the call: an output may be set to it, Reshape gives one to keep. Without a
  // tensor in it after an error. What `done` throws goes to the log.
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

  // Ends the step's exchange, core's own included, for good: all who wait and
  // all who come fail with `status`; with ABORTED if that is OK.
  void StartAbort(const absl::Status& status) const {
    OwnedStatus c_status;
    SetStatus(c_status.get(), status.ok() ? absl::AbortedError("") : status);
    thunk_.start_abort_func(thunk_.rendezvous, c_status.get());
  }

 private:
  explicit Rendezvous(const capi::TF_RendezvousThunk& thunk) : thunk_(thunk) {}

  // A receiver's callback until core calls it.
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
        struct GiveBack {
          Tensor& tensor;
          ~GiveBack() { tensor.release(); }
        } give_back{tensor};
        self->done(status, static_cast<const Tensor&>(tensor), p->is_dead);
        return absl::OkStatus();
      });
    }

    Done done;
  };

  // What goes with a key. Core wants a device's context, of which it counts the
  // uses; with both sides declared to be host memory it never copies by it.
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

#endif  // TFPLUG_KERNEL_RENDEZVOUS_H_
