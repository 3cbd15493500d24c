// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTS_FAULT_CORE_RENDEZVOUS_H_
#define TFPLUG_TESTS_FAULT_CORE_RENDEZVOUS_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "fault_core/run.h"
#include "fault_core/tensor.h"
#include "tfplug/abi/tf_rendezvous.h"

namespace tfplug::testing {

// What TF_RendezvousThunk::rendezvous points to: hands over on the thread that
// comes last, as core does, and ends the process over what core does.
class FakeRendezvous {
 public:
  ~FakeRendezvous() { Abort(absl::CancelledError("the step has ended")); }

  size_t waiting() const { return waiting_.size(); }

  capi::TF_RendezvousThunk Thunk() {
    capi::TF_RendezvousThunk thunk = {};
    thunk.rendezvous = this;
    thunk.send_func = [](void* self, capi::TF_RendezvousSend_Params* params) {
      static_cast<FakeRendezvous*>(self)->Send(*params);
    };
    thunk.async_recv_func = [](void* self,
                               capi::TF_RendezvousAsyncRecv_Params* params) {
      static_cast<FakeRendezvous*>(self)->Receive(*params);
    };
    thunk.start_abort_func = [](void* self, const TF_Status* status) {
      static_cast<FakeRendezvous*>(self)->Abort(FromCore(*status));
    };
    return thunk;
  }

 private:
  struct Item {
    TF_Tensor tensor;
    bool is_dead;
  };

  static std::string Check(const capi::TF_RendezvousParsedKey& key,
                           const capi::TF_RendezvousArgsStruct& args) {
    const std::string text(key.full_key, key.full_key_size);
    // Core reads the parts; the number of them will do here.
    if (std::count(text.begin(), text.end(), ';') != 4) {
      FakeWouldAbort("a rendezvous key");
    }
    // Core gives back a reference to it, without a look.
    if (args.device_context == nullptr) FakeWouldAbort("no device context");
    // Otherwise core copies, by the functions in the context.
    if (args.alloc_attrs.value != 1) FakeWouldAbort("not host memory");
    return text;
  }

  void Send(const capi::TF_RendezvousSend_Params& params) {
    const std::string key = Check(*params.key, *params.args);
    if (Fault::Hits("TF_RendezvousThunk::send_func", params.status)) return;
    if (!aborted_.ok()) return SetStatus(params.status, aborted_);
    TF_SetStatus(params.status, capi::TF_OK, "");
    const auto receiver = waiting_.find(key);
    if (receiver == waiting_.end()) {
      sent_[key].push_back({*params.tensor, params.is_dead});
      return;
    }
    const capi::TF_RendezvousDoneCallbackImpl done = receiver->second;
    waiting_.erase(receiver);
    Finish(done, absl::OkStatus(), *params.tensor, params.is_dead);
  }

  void Receive(const capi::TF_RendezvousAsyncRecv_Params& params) {
    const std::string key = Check(*params.key, *params.args);
    if (params.on_done.context == nullptr) FakeWouldAbort("no callback");
    if (Fault::Hits("TF_RendezvousThunk::async_recv_func")) {
      return Fail(params.on_done, absl::ResourceExhaustedError("injected"));
    }
    if (!aborted_.ok()) return Fail(params.on_done, aborted_);
    const auto found = sent_.find(key);
    if (found == sent_.end() || found->second.empty()) {
      waiting_.emplace(key, params.on_done);
      return;
    }
    const Item item = found->second.front();
    found->second.pop_front();
    Finish(params.on_done, absl::OkStatus(), item.tensor, item.is_dead);
  }

  void Abort(const absl::Status& status) {
    if (status.ok()) FakeWouldAbort("StartAbort with OK");
    aborted_ = status;
    sent_.clear();
    for (const auto& [key, done] : std::exchange(waiting_, {})) {
      Fail(done, status);
    }
  }

  // Core has an empty tensor for who gets none.
  static void Fail(const capi::TF_RendezvousDoneCallbackImpl& done,
                   const absl::Status& status) {
    Finish(done, status, MakeTensor(capi::TF_FLOAT, {0}), false);
  }
  // Status and tensor are core's, and gone when the call returns.
  static void Finish(const capi::TF_RendezvousDoneCallbackImpl& done,
                     const absl::Status& status, const TF_Tensor& tensor,
                     bool is_dead) {
    TF_Status* const c_status = TF_NewStatus();
    SetStatus(c_status, status);
    auto* const c_tensor = new TF_Tensor(tensor);
    capi::TF_RendezvousDoneCallback_Params params = {};
    params.status = c_status;
    params.tensor = c_tensor;
    params.is_dead = is_dead;
    done.callback(done.context, &params);
    TF_DeleteStatus(c_status);
    delete c_tensor;
  }

  std::map<std::string, std::deque<Item>> sent_;
  std::multimap<std::string, capi::TF_RendezvousDoneCallbackImpl> waiting_;
  absl::Status aborted_;
};

TFPLUG_TESTING_CORE_FUNCTION capi::TF_RendezvousThunk TF_GetRendezvous(
    TF_OpKernelContext* ctx) {
  if (ctx->rendezvous == nullptr) return {};
  return static_cast<FakeRendezvous*>(ctx->rendezvous)->Thunk();
}

inline void InstallRendezvousFunctions(capi::Functions& core) {
  core.TF_GetRendezvous = &TF_GetRendezvous;
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTS_FAULT_CORE_RENDEZVOUS_H_
