// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PROTO_PROTO_H_
#define TFPLUG_PROTO_PROTO_H_

// Converts graphs and attributes to and from protobuf messages, for existing
// code that uses them. Optional: link Meson's dependency('tfplug-proto') too,
// which adds a private libprotobuf to the plug-in. The messages have the fields
// of TensorFlow's, in the namespace tfplug::proto. New code should use
// tfplug::Graph, which takes a tenth of the time or less.
#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message_lite.h>

#include <climits>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/abi/tf_buffer.h"
#include "tfplug/base/buffer.h"
#include "tfplug/base/contents.h"
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/proto/graph.pb.h"

TFPLUG_CONTAINS("protobuf", TFPLUG_TEXT(GOOGLE_PROTOBUF_VERSION),
                "BSD-3-Clause");

#pragma GCC visibility push(hidden)

namespace tfplug {
namespace proto_internal {

inline absl::Status CheckMessageSize(absl::string_view type, size_t size) {
  if (size <= INT_MAX) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the ", type, " has ", size,
      " bytes, but protobuf and TensorFlow cannot ", "read more than ", INT_MAX,
      "; keep large constants in variables"));
}

// Writes `size` bytes, the message's ByteSizeLong(), to `to`. If
// `deterministic`, sorts the entries of maps by key, so that equal messages
// have equal bytes.
inline void WriteMessage(const google::protobuf::MessageLite& message,
                         size_t size, bool deterministic, void* to) {
  google::protobuf::io::ArrayOutputStream array(to, static_cast<int>(size));
  google::protobuf::io::CodedOutputStream stream(&array);
  stream.SetSerializationDeterministic(deterministic);
  message.SerializePartialToCodedStream(&stream);
}

}  // namespace proto_internal

// Returns the serialized message. RESOURCE_EXHAUSTED if it would have more than
// 2^31 - 1 bytes.
inline absl::StatusOr<std::string> MessageToBytes(
    const google::protobuf::MessageLite& message, bool deterministic = false) {
  const size_t size = message.ByteSizeLong();
  auto status = proto_internal::CheckMessageSize(message.GetTypeName(), size);
  if (!status.ok()) return status;
  std::string bytes(size, '\0');
  proto_internal::WriteMessage(message, size, deterministic, bytes.data());
  return bytes;
}

// Parses `bytes` into `message`. INVALID_ARGUMENT if they are truncated,
// damaged or of another type, or if a string is not UTF-8; RESOURCE_EXHAUSTED
// for more than 2^31 - 1 bytes. After an error, the contents of `message` are
// unspecified.
inline absl::Status BytesToMessage(absl::string_view bytes,
                                   google::protobuf::MessageLite* message) {
  const std::string type = message->GetTypeName();
  auto status = proto_internal::CheckMessageSize(type, bytes.size());
  if (!status.ok()) return status;
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", bytes.size(), " bytes are not a ", type,
                     ": they are truncated, damaged, or of another type"));
  }
  return absl::OkStatus();
}

// ---- TF_Buffer: the functions of RFC 318 ----

// Stores the serialized message in `buffer`, with a deallocator, and releases
// the previous contents. RESOURCE_EXHAUSTED, with `buffer` unchanged, for more
// than 2^31 - 1 bytes or if out of memory.
inline absl::Status MessageToBuffer(
    const google::protobuf::MessageLite& message, capi::TF_Buffer* buffer) {
  const size_t size = message.ByteSizeLong();
  auto status = proto_internal::CheckMessageSize(message.GetTypeName(), size);
  if (!status.ok()) return status;
  void* const data = std::malloc(size == 0 ? 1 : size);
  if (data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("out of host memory: cannot allocate ", size,
                     " bytes for a ", message.GetTypeName()));
  }
  proto_internal::WriteMessage(message, size, false, data);
  if (buffer->data_deallocator != nullptr) {
    buffer->data_deallocator(const_cast<void*>(buffer->data), buffer->length);
  }
  buffer->data = data;
  buffer->length = size;
  buffer->data_deallocator = [](void* data, size_t) { std::free(data); };
  return absl::OkStatus();
}

// Returns the serialized message in a new TF_Buffer. UNIMPLEMENTED in releases
// before 2.11.
inline absl::StatusOr<Buffer> MessageToBuffer(
    const google::protobuf::MessageLite& message) {
  absl::StatusOr<Buffer> buffer = Buffer::New();
  if (!buffer.ok()) return buffer;
  absl::Status status = MessageToBuffer(message, buffer->get());
  if (!status.ok()) return status;
  return buffer;
}

// Parses the bytes of `buffer` into `message`, like BytesToMessage(). An empty
// buffer is an empty message.
inline absl::Status BufferToMessage(const capi::TF_Buffer& buffer,
                                    google::protobuf::MessageLite* message) {
  return BytesToMessage(
      absl::string_view(static_cast<const char*>(buffer.data), buffer.length),
      message);
}
inline absl::Status BufferToMessage(const Buffer& buffer,
                                    google::protobuf::MessageLite* message) {
  return BytesToMessage(buffer.bytes(), message);
}

// ---- Graph ----

// Converts the graph, including its edits, to a message. Fails like
// BytesToMessage().
inline absl::Status GraphToMessage(Graph& graph, proto::GraphDef* message) {
  return BytesToMessage(graph.ToString(), message);
}

// Replaces the whole graph with `message` and invalidates all Node handles.
// Fails like MessageToBytes() or Graph::Replace().
inline absl::Status MessageToGraph(const proto::GraphDef& message,
                                   Graph* graph) {
  absl::StatusOr<std::string> bytes = MessageToBytes(message);
  if (!bytes.ok()) return bytes.status();
  return graph->Replace(*std::move(bytes));
}

// Base class of passes over messages, which are registered like other passes
// and can be combined with them:
//
//   class DropNoise : public tfplug::MessagePass {
//     absl::Status Rewrite(tfplug::proto::GraphDef& graph,
//                          const tfplug::PassContext& context) override { ... }
//   };
//   TFPLUG_REGISTER_GRAPH_PASSES("MY_DEVICE", DropNoise);
//
// Parses the graph once and serializes it twice. If the graph has changed, it
// is also indexed again for the passes that follow.
class MessagePass : public GraphPass {
 public:
  // May edit `graph`, which is allocated in an arena and destroyed after the
  // call. Edits are detected by comparing the serialized bytes. For errors, see
  // GraphPass::Run().
  virtual absl::Status Rewrite(proto::GraphDef& graph,
                               const PassContext& context) = 0;

 private:
  absl::Status Run(Graph& graph, const PassContext& context) final {
    google::protobuf::Arena arena;
    auto* const message =
        google::protobuf::Arena::CreateMessage<proto::GraphDef>(&arena);
    if (auto s = GraphToMessage(graph, message); !s.ok()) return s;
    const absl::StatusOr<std::string> before = MessageToBytes(*message, true);
    if (!before.ok()) return before.status();
    if (auto s = Rewrite(*message, context); !s.ok()) return s;
    absl::StatusOr<std::string> after = MessageToBytes(*message, true);
    if (!after.ok()) return after.status();
    if (*after == *before) return absl::OkStatus();
    if (auto s = graph.Replace(*std::move(after)); !s.ok()) return s;
    // Detects cycles and missing nodes now, as errors of this pass; otherwise,
    // TensorFlow would find them later.
    if (auto s = graph.TopologicalOrder().status(); !s.ok()) return s;
    return graph.status();
  }
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PROTO_PROTO_H_
