// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_TESTING_FAKE_RENDEZVOUS_H_
#define TFPLUG_TESTING_FAKE_RENDEZVOUS_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "tfplug/abi/tf_rendezvous.h"
#include "tfplug/testing/fake_context.h"
#include "tfplug/testing/tensor.h"

#pragma GCC visibility push(hidden)

namespace tfplug::testing {

// TensorFlow's exchange of tensors between the kernels of a step. The thread of
// the later call, to send or to receive, passes the tensor on. The destructor
// ends the step, which cancels the receivers that still wait.
//
//   testing::FakeRendezvous rendezvous;
//   run.context()->rendezvous = &rendezvous;
class FakeRendezvous {
 public:
  ~FakeRendezvous() { Abort(absl::CancelledError("the step has ended")); }

  // Returns the number of waiting receivers.
  size_t waiting() const { return waiting_.size(); }

  // Returns the functions that TF_GetRendezvous returns to a kernel.
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
      static_cast<FakeRendezvous*>(self)->Abort(ReadStatus(*status));
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
    constexpr char kName[] = "TF_RendezvousThunk";
    const std::string text(key.full_key, key.full_key_size);
    // TensorFlow parses the parts; here, only their number is checked.
    if (std::count(text.begin(), text.end(), ';') != 4) {
      AbortLikeTensorFlow(kName, "malformed key");
    }
    // TensorFlow releases a reference to the context without checking for null.
    if (args.device_context == nullptr) {
      AbortLikeTensorFlow(kName, "no device context");
    }
    // TensorFlow would copy device memory with the context's functions.
    if (args.alloc_attrs.value != 1) {
      AbortLikeTensorFlow(kName, "not host memory");
    }
    return text;
  }

  void Send(const capi::TF_RendezvousSend_Params& params) {
    const std::string key = Check(*params.key, *params.args);
    if (Fault::Hits("TF_RendezvousThunk::send_func", params.status)) return;
    if (!aborted_.ok()) return WriteStatus(aborted_, params.status);
    SetOk(params.status);
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
    constexpr char kName[] = "TF_RendezvousThunk::async_recv_func";
    const std::string key = Check(*params.key, *params.args);
    if (params.on_done.context == nullptr) {
      AbortLikeTensorFlow(kName, "no callback");
    }
    if (Fault::Hits(kName)) {
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
    if (status.ok()) {
      AbortLikeTensorFlow("TF_RendezvousThunk::start_abort_func",
                          "the status is OK");
    }
    aborted_ = status;
    sent_.clear();
    for (const auto& [key, done] : std::exchange(waiting_, {})) {
      Fail(done, status);
    }
  }

  // Failed receivers get an empty tensor.
  static void Fail(const capi::TF_RendezvousDoneCallbackImpl& done,
                   const absl::Status& status) {
    Finish(done, status, MakeTensor(capi::TF_FLOAT, {0}), false);
  }
  // TensorFlow owns status and tensor, which are valid during the call only.
  static void Finish(const capi::TF_RendezvousDoneCallbackImpl& done,
                     const absl::Status& status, const TF_Tensor& tensor,
                     bool is_dead) {
    TF_Status c_status;
    WriteStatus(status, &c_status);
    TF_Tensor c_tensor(tensor);
    capi::TF_RendezvousDoneCallback_Params params = {};
    params.status = &c_status;
    params.tensor = &c_tensor;
    params.is_dead = is_dead;
    done.callback(done.context, &params);
  }

  std::map<std::string, std::deque<Item>> sent_;
  std::multimap<std::string, capi::TF_RendezvousDoneCallbackImpl> waiting_;
  absl::Status aborted_;
};

TFPLUG_FAKE_FUNCTION capi::TF_RendezvousThunk TF_GetRendezvous(
    TF_OpKernelContext* context) {
  if (context->rendezvous == nullptr) return {};
  return context->rendezvous->Thunk();
}

inline void InstallRendezvousFunctions(capi::Functions& functions) {
  TFPLUG_FAKE_INSTALL(TF_GetRendezvous);
}

}  // namespace tfplug::testing

#pragma GCC visibility pop

#endif  // TFPLUG_TESTING_FAKE_RENDEZVOUS_H_
