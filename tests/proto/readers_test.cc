// SPDX-License-Identifier: Apache-2.0
// Compares the parsers of OpDefs, tensors and tensor properties with protobuf:
// fields of another wire type are unknown, repeated occurrences of a message
// are merged, and so on.
#include <google/protobuf/stubs/logging.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "doctest/doctest.h"
#include "tfplug/graph/constant.h"
#include "tfplug/graph/graph_properties.h"
#include "tfplug/graph/op_signature.h"
#include "tfplug/proto/op_def.pb.h"
#include "tfplug/proto/op_performance_data.pb.h"
#include "tfplug/proto/tensor.pb.h"

namespace tfplug::readers_test {
namespace {

using Random = std::minstd_rand;

uint32_t Below(Random& random, uint32_t limit) {
  return static_cast<uint32_t>(random()) % limit;
}

// Returns random fields with common field numbers and any wire type. `depth`
// limits the nesting.
std::string RandomMessage(Random& random, int depth) {
  std::string bytes;
  for (uint32_t count = Below(random, 6); count > 0; --count) {
    const uint32_t number = 1 + Below(random, Below(random, 2) == 0 ? 7 : 20);
    switch (Below(random, 6)) {
      case 0:
      case 1:
        internal::AppendField(bytes, static_cast<int>(number),
                              uint64_t{random()} << Below(random, 30));
        break;
      case 2:
        internal::AppendVarint(
            bytes, internal::MakeTag(number, internal::kFixed32Type));
        bytes += "abcd";
        break;
      case 3:
        internal::AppendVarint(
            bytes, internal::MakeTag(number, internal::kFixed64Type));
        bytes += "abcdefgh";
        break;
      default:
        internal::AppendField(bytes, static_cast<int>(number),
                              depth > 0 && Below(random, 3) > 0
                                  ? RandomMessage(random, depth - 1)
                                  : std::string(4 * Below(random, 3), 'x'));
    }
  }
  return bytes;
}

// Calls check(message, bytes) for each random message of type M that protobuf
// accepts.
template <class M, class F>
void ForEachRandom(const F& check) {
  google::protobuf::LogSilencer quiet;
  Random random(1);
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string bytes = RandomMessage(random, 3);
    M message;
    if (!message.ParseFromString(bytes)) continue;
    ++taken;
    check(message, bytes);
  }
  CHECK(taken > 2000);
}

bool Same(const PartialShape& shape, const proto::TensorShapeProto& want) {
  if (!shape.has_rank() || want.unknown_rank()) {
    return shape.has_rank() != want.unknown_rank();
  }
  if (shape.rank() != want.dim_size()) return false;
  for (int i = 0; i < want.dim_size(); ++i) {
    if (shape.shape().dims()[static_cast<size_t>(i)] != want.dim(i).size()) {
      return false;
    }
  }
  return true;
}

TEST_CASE("TensorProperties are read as protobuf reads them") {
  ForEachRandom<proto::OpInfo::TensorProperties>(
      [](const proto::OpInfo::TensorProperties& want, absl::string_view bytes) {
        const TensorProperties properties = TensorProperties::Parse(bytes);
        CHECK(static_cast<int>(properties.dtype) == want.dtype());
        REQUIRE(Same(properties.shape, want.shape()));
        const auto value = internal::MessageField(bytes, 3);
        REQUIRE(value.has_value() == want.has_value());
        proto::TensorProto tensor;
        REQUIRE(tensor.ParseFromString(value.value_or("")));
        REQUIRE(tensor.SerializeAsString() == want.value().SerializeAsString());
      });
}

void CheckArgs(
    const std::vector<OpSignature::Arg>& args,
    const google::protobuf::RepeatedPtrField<proto::OpDef::ArgDef>& want) {
  REQUIRE(static_cast<int>(args.size()) == want.size());
  for (int i = 0; i < want.size(); ++i) {
    const OpSignature::Arg& arg = args[static_cast<size_t>(i)];
    REQUIRE(arg.name == want[i].name());
    REQUIRE(static_cast<int>(arg.type) == want[i].type());
    REQUIRE(arg.type_attr == want[i].type_attr());
    REQUIRE(arg.type_list_attr == want[i].type_list_attr());
    REQUIRE(arg.number_attr == want[i].number_attr());
    REQUIRE(arg.is_ref == want[i].is_ref());
  }
}

TEST_CASE("an OpSignature is read as protobuf reads an OpDef") {
  ForEachRandom<proto::OpDef>([](const proto::OpDef& want,
                                 absl::string_view bytes) {
    const OpSignature op = OpSignature::Parse(bytes);
    REQUIRE(op.name == want.name());
    CheckArgs(op.inputs, want.input_arg());
    CheckArgs(op.outputs, want.output_arg());
    REQUIRE(static_cast<int>(op.attrs.size()) == want.attr_size());
    for (int i = 0; i < want.attr_size(); ++i) {
      const OpSignature::Attr& attr = op.attrs[static_cast<size_t>(i)];
      REQUIRE(attr.name == want.attr(i).name());
      REQUIRE(attr.type == want.attr(i).type());
      REQUIRE(attr.has_default == want.attr(i).has_default_value());
      proto::AttrValue value;
      REQUIRE(value.ParseFromString(attr.default_value));
      REQUIRE(value.SerializeAsString() ==
              want.attr(i).default_value().SerializeAsString());
    }
    REQUIRE(op.is_stateful == want.is_stateful());
    REQUIRE(op.is_commutative == want.is_commutative());
    REQUIRE(op.is_aggregate == want.is_aggregate());
    REQUIRE(op.allows_uninitialized_input == want.allows_uninitialized_input());
  });
}

// Returns the elements that TensorFlow reads from a message, before it repeats
// the last one.
template <class T, class List>
std::string BytesOf(const List& list) {
  std::string bytes;
  for (const auto& element : list) {
    const T value = static_cast<T>(element);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return bytes;
}
std::string Elements(const proto::TensorProto& tensor) {
  if (!tensor.tensor_content().empty()) return tensor.tensor_content();
  switch (tensor.dtype()) {
    case proto::DT_FLOAT:
      return BytesOf<float>(tensor.float_val());
    case proto::DT_COMPLEX64:
      return BytesOf<float>(tensor.scomplex_val());
    case proto::DT_DOUBLE:
      return BytesOf<double>(tensor.double_val());
    case proto::DT_COMPLEX128:
      return BytesOf<double>(tensor.dcomplex_val());
    case proto::DT_INT64:
      return BytesOf<int64_t>(tensor.int64_val());
    case proto::DT_BOOL:
      return BytesOf<bool>(tensor.bool_val());
    case proto::DT_HALF:
    case proto::DT_BFLOAT16:
      return BytesOf<uint16_t>(tensor.half_val());
    case proto::DT_UINT32:
      return BytesOf<uint32_t>(tensor.uint32_val());
    case proto::DT_UINT64:
      return BytesOf<uint64_t>(tensor.uint64_val());
    case proto::DT_INT32:
    case proto::DT_QINT32:
      return BytesOf<int32_t>(tensor.int_val());
    case proto::DT_FLOAT8_E5M2:
    case proto::DT_FLOAT8_E4M3FN:
    case proto::DT_FLOAT8_E4M3FNUZ:
    case proto::DT_FLOAT8_E4M3B11FNUZ:
    case proto::DT_FLOAT8_E5M2FNUZ:
      return tensor.float8_val();
    default:
      return DataTypeSize(static_cast<DataType>(tensor.dtype())) == 2
                 ? BytesOf<int16_t>(tensor.int_val())
                 : BytesOf<int8_t>(tensor.int_val());
  }
}

TEST_CASE("a Constant is read as protobuf reads a TensorProto") {
  google::protobuf::LogSilencer quiet;
  Random random(2);
  int read = 0;
  for (int i = 0; i < 40000; ++i) {
    // A valid type, and a scalar's shape, which fits the most common messages.
    std::string bytes, shape;
    internal::AppendField(bytes, 1, uint64_t{1 + Below(random, 33)});
    internal::AppendField(bytes, 2, "");
    bytes += RandomMessage(random, 1);
    proto::TensorProto tensor;
    if (!tensor.ParseFromString(bytes)) continue;
    const size_t size = DataTypeSize(static_cast<DataType>(tensor.dtype()));
    std::string want = Elements(tensor);
    const auto whole = Constant::Parse(bytes);
    if (tensor.tensor_shape().dim_size() > 0) {
      if (whole.ok()) CHECK(Same(whole->shape(), tensor.tensor_shape()));
      continue;
    }
    if (want.empty()) want.assign(size, '\0');
    const bool fits = size > 0 && want.size() == size &&
                      !tensor.tensor_shape().unknown_rank();
    REQUIRE(whole.ok() == fits);
    if (!fits) continue;
    ++read;
    REQUIRE(static_cast<int>(whole->dtype()) == tensor.dtype());
    proto::TensorProto again;
    REQUIRE(again.ParseFromString(whole->Serialize()));
    REQUIRE(again.tensor_content() == want);
  }
  CHECK(read > 5000);
}

}  // namespace
}  // namespace tfplug::readers_test
