// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/narrow_types.h>
#include <tfplug/base/tstring.h>
#include <tfplug/kernel/host_tensor.h>
#include <tfplug/kernel/tensor.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "leak_checked_fake.h"

namespace tfplug::tensor_test {
namespace {

using testing::LeakCheckedFake;

Tensor Make(const std::vector<int64_t>& dims, const std::vector<float>& v) {
  return Tensor(new testing::TF_Tensor(testing::MakeTensor<float>(dims, v)));
}

TEST_CASE("a data type has a name and a size") {
  CHECK(DataTypeName(DataType::kFloat) == "float");
  CHECK(DataTypeName(DataType::kFloat4E2m1fn) == "float4_e2m1fn");
  CHECK(DataTypeName(static_cast<DataType>(103)) == "int32_ref");
  CHECK(DataTypeName(static_cast<DataType>(99)) == "type 99");
  CHECK(DataTypeName(DataType(0)) == "type 0");
  CHECK(DataTypeSize(DataType::kComplex128) == 16);
  CHECK(DataTypeSize(DataType::kInt4) == 1);
  CHECK(DataTypeSize(DataType::kString) == 0);
  CHECK(DataTypeSize(static_cast<DataType>(99)) == 0);
  LeakCheckedFake fake;
  CHECK(DataTypeSizeInTensorFlow(DataType::kHalf) == 2);
}

TEST_CASE("elements are in row-major order, at any rank") {
  LeakCheckedFake fake;
  const Tensor x = Make({2, 3}, {0, 1, 2, 10, 11, 12});
  CHECK(x.ToString() == "float[2,3]");
  CHECK(x.byte_size() == 24);
  CHECK(x.is_aligned());
  CHECK(x.flat<float>()[4] == 11);
  const auto view = x.view<float, 2>();
  CHECK(view(1, 2) == 12);
  CHECK(view.dim(1) == 3);
  CHECK(view.size() == 6);
  view(0, 1) = 7;
  CHECK(x.flat<float>()[1] == 7);

  const Tensor cube = Make({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  CHECK((cube.view<float, 3>()(1, 0, 1)) == 5);
  const Tensor scalar = Make({}, {5});
  CHECK((scalar.view<float, 0>()()) == 5);
  CHECK(scalar.scalar<float>() == 5);
  const Tensor one = Make({1, 1}, {6});
  CHECK(one.scalar<float>() == 6);
  // A device that looks up addresses must not look up one of the host.
  const Tensor empty = Make({3, 0}, {});
  CHECK(empty.data() != nullptr);
  CHECK(empty.flat<float>().data() == nullptr);
  CHECK(empty.memory().opaque() == nullptr);
  CHECK(empty.flat<float>().empty());
  CHECK((empty.view<float, 2>().size()) == 0);
}

#if defined(__cpp_exceptions)
TEST_CASE("access with a wrong type, rank or size throws") {
  LeakCheckedFake fake;
  const Tensor x = Make({2, 3}, std::vector<float>(6));
  CHECK_THROWS_WITH_AS(x.flat<int32_t>(),
                       "elements were accessed as int32, but the tensor is "
                       "float[2,3]; check its type and shape, "
                       "or add a TypeConstraint to the kernel",
                       std::invalid_argument);
  CHECK_THROWS_AS((x.view<float, 3>()), std::invalid_argument);
  CHECK_THROWS_AS(x.scalar<float>(), std::invalid_argument);
}
#endif

TEST_CASE("bitcast and reshape share the buffer") {
  LeakCheckedFake fake;
  const Tensor x = Make({2, 3}, {0, 1, 2, 3, 4, 5});
  const Tensor y = x.Reshape({3, 2}).value();
  CHECK(y.data() == x.data());
  CHECK(y.shape() == Shape({3, 2}));
  const Tensor bytes = x.Bitcast(DataType::kUint8, {24}).value();
  CHECK(bytes.dtype() == DataType::kUint8);
  CHECK(x.Reshape({7}).status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(!x.Bitcast(DataType::kString, {1}).ok());
  testing::FailEachCall([&] { return x.Reshape({6}).status(); });
}

TEST_CASE("SetShape keeps the number of elements and needs 2.11") {
  Tensor x;
  {
    LeakCheckedFake fake;
    Tensor y = Make({2, 3}, std::vector<float>(6));
    CHECK(y.SetShape({6}).ok());
    CHECK(y.shape() == Shape({6}));
    Tensor empty = Make({0}, {});
    constexpr int64_t kBig = int64_t{1} << 32;
    const Shape deep(absl::MakeConstSpan(std::vector<int64_t>(302, 1)));
    for (const Shape& bad :
         {Shape{5}, Shape{-2, -3}, Shape{kBig, kBig}, deep}) {
      CHECK(absl::IsInvalidArgument(y.SetShape(bad)));
      CHECK(absl::IsInvalidArgument(empty.SetShape(bad)));
      CHECK(absl::IsInvalidArgument(y.Reshape(bad).status()));
    }
    CHECK(y.shape() == Shape({6}));
    CHECK(empty.shape() == Shape({0}));
    for (int type : {0, -1, 99, 101}) {
      CHECK(absl::IsInvalidArgument(
          y.Bitcast(static_cast<DataType>(type), {6}).status()));
    }
  }
  LeakCheckedFake old({{2, 10}, {}});
  Tensor z = Make({2, 3}, std::vector<float>(6));
  CHECK(z.SetShape({6}).code() == absl::StatusCode::kUnimplemented);
}

TEST_CASE("MaybeMove takes a buffer without other references") {
  LeakCheckedFake fake;
  Tensor x = Make({1}, {1});
  {
    const Tensor other(new testing::TF_Tensor(*x.get()));
    CHECK(!x.MaybeMove().has_value());
    CHECK(x);
  }
  const std::optional<Tensor> moved = x.MaybeMove();
  CHECK(moved.has_value());
  CHECK(!x);
}

TEST_CASE("host tensors: new, wrapped, and of strings") {
  LeakCheckedFake fake;
  CHECK(TensorAlignment() == 64);
  const Tensor made = NewHostTensor(DataType::kFloat, {2, 2}).value();
  CHECK(made.byte_size() == 16);
  CHECK(!NewHostTensor(DataType::kVariant, {1}).ok());
  CHECK(!NewHostTensor(DataType::kFloat, {-1}).ok());

  int released = 0;
  alignas(64) float data[2] = {1, 2};
  const auto release = [&](void* at, size_t size) {
    CHECK(at == data);
    CHECK(size == sizeof(data));
    ++released;
  };
  {
    const Tensor x =
        WrapHostTensor(DataType::kFloat, {2}, data, 8, release).value();
    CHECK(x.data() == data);
    CHECK(released == 0);
  }
  CHECK(released == 1);
  // The memory is released after each failure.
  CHECK(!WrapHostTensor(DataType::kFloat, {3}, data, 8, release).ok());
  CHECK(released == 2);
  CHECK(!WrapHostTensor(DataType::kFloat, {-1}, data, 8, release).ok());
  CHECK(released == 3);
  testing::Fault fault(1);
  CHECK(!WrapHostTensor(DataType::kFloat, {2}, data, 8, release).ok());
  CHECK(released == 4);
}

TEST_CASE("host tensors: sizes that overflow, ranks and types are checked") {
  LeakCheckedFake fake;
  constexpr int64_t kBig = int64_t{1} << 62;
  const Shape deep(absl::MakeConstSpan(std::vector<int64_t>(300, 1)));
  // 24 bytes per string wrap around to 8.
  using Case = std::pair<DataType, Shape>;
  for (const Case& tested :
       {Case{DataType::kString, {0x0AAAAAAAAAAAAAAB}},
        {DataType::kFloat, {kBig + 1}},
        {DataType::kFloat, deep},
        {DataType::kFloat, {int64_t{1} << 32, int64_t{1} << 32}},
        {DataType::kVariant, {1}},
        {DataType(0), {1}},
        {DataType(99), {1}},
        {DataType(101), {1}}}) {
    const DataType dtype = tested.first;
    const Shape& shape = tested.second;
    CAPTURE(DataTypeName(dtype) + shape.ToString());
    CHECK(absl::IsInvalidArgument(NewHostTensor(dtype, shape).status()));
    bool released = false;
    CHECK(absl::IsInvalidArgument(
        WrapHostTensor(dtype, shape, &released, 1, [&](void*, size_t) {
          released = true;
        }).status()));
    CHECK(released);
  }
  char data[24];
  const auto wrap = [&](DataType dtype, const Shape& shape, size_t size) {
    return WrapHostTensor(dtype, shape, data, size, [](void*, size_t) {})
        .status();
  };
  CHECK(absl::IsInvalidArgument(wrap(DataType::kFloat, {kBig}, 4)));
  CHECK(absl::IsInvalidArgument(wrap(DataType::kString, {10}, 24)));
  CHECK(absl::IsInvalidArgument(wrap(DataType::kVariant, {1}, 24)));
  CHECK(wrap(DataType::kFloat, {2}, 8).ok());
  CHECK(wrap(DataType::kFloat, {2}, 7) ==
        absl::InvalidArgumentError("WrapHostTensor: a tensor float[2] needs 8 "
                                   "bytes, but the buffer has 7"));
}

int string_inits, string_deallocs;

TEST_CASE("host tensors of strings initialize and release each element") {
  LeakCheckedFake fake;
  static capi::Functions original;
  original = internal::tensorflow;
  internal::tensorflow.TF_StringInit = [](capi::TF_TString* s) {
    ++string_inits;
    original.TF_StringInit(s);
  };
  internal::tensorflow.TF_StringDealloc = [](capi::TF_TString* s) {
    ++string_deallocs;
    original.TF_StringDealloc(s);
  };
  for (int n : {0, 1, 7, 8, 9}) {  // 8 strings fill 3 units of the alignment
    string_inits = string_deallocs = 0;
    {
      const Tensor x = NewHostTensor(DataType::kString, {n}).value();
      CHECK(x.num_elements() == n);
      CHECK(x.byte_size() == 24 * static_cast<uint64_t>(n));
      for (TString& s : x.flat<TString>()) s.Assign("x");
    }
    CHECK(string_inits == n);
    CHECK(string_deallocs == n);
  }
}

TEST_CASE("strings are read and written by TensorFlow's functions") {
  LeakCheckedFake fake;
  const Tensor x = NewHostTensor(DataType::kString, {3}).value();
  const std::string text(100, 'x');
  auto strings = x.flat<TString>();
  strings[0].Assign(text);
  strings[0].Assign("short");
  strings[1].AssignView(text);
  CHECK(strings[0].view() == "short");
  CHECK(strings[0].capacity() >= 5);
  CHECK(strings[1].data() == text.data());
  CHECK(strings[1].type() == capi::TF_TSTR_VIEW);
  CHECK(strings[2].view().empty());
  OwnedTString own(text);
  own.Assign(strings[0].view());
  CHECK(own.view() == "short");
}

}  // namespace
}  // namespace tfplug::tensor_test
