// SPDX-License-Identifier: Apache-2.0
// Graphs as protobuf messages, and the comparison of a node with its message.
// Needs protobuf; for tests and fuzzers.
#ifndef TFPLUG_TESTS_GRAPH_GRAPH_MESSAGES_H_
#define TFPLUG_TESTS_GRAPH_GRAPH_MESSAGES_H_

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tfplug/graph/graph.h"
#include "tfplug/proto/graph.pb.h"

namespace tfplug::testing {

// Returns whether protobuf accepts the bytes. Because the stream is bounded,
// protobuf does not allocate the claimed size of a truncated string, and the
// fuzzer can limit memory.
inline bool ParseGraphDef(absl::string_view bytes, proto::GraphDef* message) {
  const int size = static_cast<int>(bytes.size());
  google::protobuf::io::ArrayInputStream stream(bytes.data(), size);
  return message->ParseFromBoundedZeroCopyStream(&stream, size);
}

inline std::string Deterministic(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream string(&bytes);
  google::protobuf::io::CodedOutputStream stream(&string);
  stream.SetSerializationDeterministic(true);
  message.SerializePartialToCodedStream(&stream);
  stream.Trim();
  return bytes;
}

// An input as TensorFlow parses it: "name:digits", or else "^name" for a
// control edge (port -1), or else a name.
struct Reference {
  std::string name;
  int port;

  explicit Reference(const std::string& text) : name(text), port(0) {
    size_t digits = text.size();
    while (digits > 1 && text[digits - 1] >= '0' && text[digits - 1] <= '9') {
      --digits;
    }
    // TensorFlow does not parse more than 31 digits as a port.
    const size_t count = text.size() - digits;
    if (digits > 1 && count > 0 && count < 32 && text[digits - 1] == ':') {
      name = text.substr(0, digits - 1);
      uint32_t number = 0;
      for (; digits < text.size(); ++digits) {
        number = number * 10 + static_cast<uint32_t>(text[digits] - '0');
      }
      port = static_cast<int>(number);
    } else if (!text.empty() && text[0] == '^') {
      name = text.substr(1);
      port = -1;
    }
  }
};

inline proto::GraphDef WithControlsLast(proto::GraphDef graph) {
  for (proto::NodeDef& node : *graph.mutable_node()) {
    auto& inputs = *node.mutable_input();
    std::stable_partition(
        inputs.begin(), inputs.end(),
        [](const std::string& text) { return Reference(text).port != -1; });
  }
  return graph;
}

// ---- A node and its message

// Whether GetAttr<T> returns `want` if `has`, and fails otherwise.
template <class T>
bool Same(Node node, absl::string_view name, bool has, const T& want) {
  const absl::StatusOr<T> value = node.GetAttr<T>(name);
  return value.ok() == has && (!has || *value == want);
}
// Like Same, for a list. An empty `list` is not compared, because the
// attribute may hold values of another type.
template <class T, class List>
bool SameList(Node node, absl::string_view name, const List& list) {
  std::vector<T> want;
  for (const auto& value : list) want.push_back(static_cast<T>(value));
  return want.empty() || Same(node, name, true, want);
}
inline bool SameShape(Node node, absl::string_view name, bool has,
                      const proto::TensorShapeProto& want) {
  const auto shape = node.GetAttr<PartialShape>(name);
  if (shape.ok() != has) return false;
  if (!has || want.unknown_rank()) return !has || !shape->has_rank();
  if (shape->rank() != want.dim_size()) return false;
  for (int i = 0; i < want.dim_size(); ++i) {
    if (std::max<int64_t>(shape->dim(i), -1) !=
        std::max<int64_t>(want.dim(i).size(), -1)) {
      return false;
    }
  }
  return true;
}
inline bool CompareValue(Node node, absl::string_view name,
                         const proto::AttrValue& value) {
  using proto::AttrValue;
  const auto kind = value.value_case();
  const proto::AttrValue::ListValue& list = value.list();
  const auto function = node.GetAttr<Function>(name);
  // A NaN is not equal to itself.
  const auto is_nan = [](float f) { return f != f; };
  return Same<int64_t>(node, name, kind == AttrValue::kI, value.i()) &&
         Same<bool>(node, name, kind == AttrValue::kB, value.b()) &&
         Same<std::string>(node, name, kind == AttrValue::kS, value.s()) &&
         Same<DataType>(node, name, kind == AttrValue::kType,
                        static_cast<DataType>(value.type())) &&
         (is_nan(value.f()) ||
          Same<float>(node, name, kind == AttrValue::kF, value.f())) &&
         SameShape(node, name, kind == AttrValue::kShape, value.shape()) &&
         function.ok() == (kind == AttrValue::kFunc) &&
         (!function.ok() || function->name == value.func().name()) &&
         SameList<int64_t>(node, name, list.i()) &&
         SameList<bool>(node, name, list.b()) &&
         SameList<std::string>(node, name, list.s()) &&
         SameList<DataType>(node, name, list.type()) &&
         (std::any_of(list.f().begin(), list.f().end(), is_nan) ||
          SameList<float>(node, name, list.f()));
}

// Returns the first difference, or "".
inline std::string CompareNode(Node node, const proto::NodeDef& def) {
  if (node.name() != def.name()) return absl::StrCat("name ", node.name());
  if (node.op() != def.op()) return absl::StrCat("op ", node.op());
  if (node.device() != def.device()) return "device";
  const auto attrs = node.GetAttrs();
  if (attrs.size() != static_cast<size_t>(def.attr().size())) {
    return absl::StrCat(attrs.size(), " attrs, not ", def.attr().size());
  }
  for (const auto& [name, bytes] : attrs) {
    const auto found = def.attr().find(std::string(name));
    if (found == def.attr().end()) return absl::StrCat("attr ", name);
    proto::AttrValue value;
    if (!value.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
        Deterministic(value) != Deterministic(found->second)) {
      return absl::StrCat("attr ", name, " has another value");
    }
    if (node.RawAttr(name) != bytes || !node.HasAttr(name)) {
      return absl::StrCat("RawAttr of ", name);
    }
    if (!CompareValue(node, name, value)) {
      return absl::StrCat("GetAttr of ", name);
    }
  }
  return node.HasAttr("no such attribute") ? "HasAttr" : "";
}

}  // namespace tfplug::testing

#endif  // TFPLUG_TESTS_GRAPH_GRAPH_MESSAGES_H_
