// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PROTO_PROTO_H_
#define TFPLUG_PROTO_PROTO_H_

// Graphs and attributes as protobuf messages, for code that has been written
// over them. Opt-in: link with Meson's dependency('tfplug-proto') as well,
// which brings a libprotobuf of the plug-in's own. The messages are
// TensorFlow's, in the namespace tfplug::proto. What is new is better written
// over tfplug::Graph: that costs a tenth.
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
#include "tfplug/graph/graph.h"
#include "tfplug/graph/graph_pass.h"
#include "tfplug/graph/pass_context.h"
#include "tfplug/proto/graph.pb.h"

namespace tfplug {
namespace internal {

inline absl::Status CheckMessageSize(absl::string_view type, size_t size) {
  if (size <= INT_MAX) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "a ", type, " of ", size, " bytes: protobuf and TensorFlow cannot read ",
      "more than ", INT_MAX, "; keep large constants in variables"));
}

// `deterministic`: the entries of maps in the order of their keys, so that
// equal messages are equal bytes.
inline void WriteMessage(const google::protobuf::MessageLite& message,
                         size_t size, bool deterministic, void* to) {
  google::protobuf::io::ArrayOutputStream array(to, static_cast<int>(size));
  google::protobuf::io::CodedOutputStream stream(&array);
  stream.SetSerializationDeterministic(deterministic);
  message.SerializePartialToCodedStream(&stream);
}

}  // namespace internal

// The serialised message. RESOURCE_EXHAUSTED for more than 2^31 - 1 bytes.
inline absl::StatusOr<std::string> MessageToBytes(
    const google::protobuf::MessageLite& message, bool deterministic = false) {
  const size_t size = message.ByteSizeLong();
  auto status = internal::CheckMessageSize(message.GetTypeName(), size);
  if (!status.ok()) return status;
  std::string bytes(size, '\0');
  internal::WriteMessage(message, size, deterministic, bytes.data());
  return bytes;
}

// Replaces `message` by what `bytes` are the serialised form of.
// INVALID_ARGUMENT if they are not of its type: cut off, say, or with a string
// that is not UTF-8 (testing::ValidateGraphDef says where); RESOURCE_EXHAUSTED
// for more than 2^31 - 1 of them. `message` is then of no use.
inline absl::Status BytesToMessage(absl::string_view bytes,
                                   google::protobuf::MessageLite* message) {
  const std::string type = message->GetTypeName();
  auto status = internal::CheckMessageSize(type, bytes.size());
  if (!status.ok()) return status;
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat("these ", bytes.size(), " bytes are not a ", type,
                     ": they are cut off, damaged, or of another type"));
  }
  return absl::OkStatus();
}

// ---- TF_Buffer, by the names of RFC 318
// --------------------------------------

// Gives the serialised message to `buffer`, such as the one that a C function
// of yours is to fill, with the function that frees it. What `buffer` held is
// freed. RESOURCE_EXHAUSTED for more than 2^31 - 1 bytes, or if there is no
// memory for them; `buffer` is then as it was.
inline absl::Status MessageToBuffer(
    const google::protobuf::MessageLite& message, capi::TF_Buffer* buffer) {
  const size_t size = message.ByteSizeLong();
  auto status = internal::CheckMessageSize(message.GetTypeName(), size);
  if (!status.ok()) return status;
  void* const data = std::malloc(size == 0 ? 1 : size);
  if (data == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("no host memory for a ",
                                                     message.GetTypeName(),
                                                     " of ", size, " bytes"));
  }
  internal::WriteMessage(message, size, false, data);
  if (buffer->data_deallocator != nullptr) {
    buffer->data_deallocator(const_cast<void*>(buffer->data), buffer->length);
  }
  buffer->data = data;
  buffer->length = size;
  buffer->data_deallocator = [](void* data, size_t) { std::free(data); };
  return absl::OkStatus();
}

// The same, as a buffer of core's; UNIMPLEMENTED in a TensorFlow before 2.11.
inline absl::StatusOr<Buffer> MessageToBuffer(
    const google::protobuf::MessageLite& message) {
  absl::StatusOr<Buffer> buffer = Buffer::New();
  if (!buffer.ok()) return buffer;
  absl::Status status = MessageToBuffer(message, buffer->get());
  if (!status.ok()) return status;
  return buffer;
}

// See BytesToMessage. A buffer without data is an empty message.
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

// ---- Graph
// -------------------------------------------------------------------

// The graph as it is now, edits included.
inline absl::Status GraphToMessage(Graph& graph, proto::GraphDef* message) {
  return BytesToMessage(graph.ToString(), message);
}

// Replaces all of the graph; nodes that were handed out are no more.
inline absl::Status MessageToGraph(const proto::GraphDef& message,
                                   Graph* graph) {
  absl::StatusOr<std::string> bytes = MessageToBytes(message);
  if (!bytes.ok()) return bytes.status();
  return graph->Replace(*std::move(bytes));
}

// A pass over messages, registered and run as any GraphPass, beside those over
// Graph:
//
//   class DropNoise : public tfplug::MessagePass {
//     absl::Status Rewrite(tfplug::proto::GraphDef& graph,
//                          const tfplug::PassContext& context) override { ... }
//   };
//   TFPLUG_REGISTER_GRAPH_PASSES("MY_DEVICE", DropNoise);
//
// Costs one parse and two serialisations of the graph, and, if it is changed,
// the index of the Graph for those that follow.
class MessagePass : public GraphPass {
 public:
  // May edit `graph`, which lives on an arena and is gone afterwards. Whether
  // it was edited is found out by its bytes. Failing: as GraphPass::Run.
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
    // Finds what core would not accept while it is clear whose doing it is.
    if (auto s = graph.TopologicalOrder().status(); !s.ok()) return s;
    return graph.status();
  }
};

}  // namespace tfplug

#endif  // TFPLUG_PROTO_PROTO_H_
