// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <tfplug/base/narrow_types.h>
#include <tfplug/base/status_macros.h>
#include <tfplug/ops/all.h>
#include <tfplug/plugin.h>
#include <tfplug/testing.h>

#include <complex>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "minimal_device.h"

namespace {

namespace ops = tfplug::ops;

// Computes a * b elementwise instead of a matrix product; negated if
// transpose_a.
class MatMul : public tfplug::Kernel {
 public:
  absl::Status Init(tfplug::KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(transpose_a_,
                            construction.GetAttr(ops::MatMul::transpose_a));
    CHECK(construction.HasAttr(ops::MatMul::transpose_a));
    CHECK_FALSE(construction.HasAttr(ops::MatMul::grad_b));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::DataType type,
                            construction.GetAttr(ops::MatMul::T_attr));
    CHECK(type == tfplug::DataType::kFloat);
    return absl::OkStatus();
  }
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor a,
                            context.GetInput(ops::MatMul::a));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor b,
                            context.GetInput(ops::MatMul::b));
    CHECK(context.output_dtype(ops::MatMul::product) ==
          tfplug::DataType::kFloat);
    TFPLUG_ASSIGN_OR_RETURN(
        const tfplug::Tensor product,
        context.ForwardOrAllocateOutput(
            ops::MatMul::product, {ops::MatMul::a, ops::MatMul::b}, a.shape()));
    const float sign = transpose_a_ ? -1 : 1;
    for (size_t i = 0; i < product.flat<float>().size(); ++i) {
      product.flat<float>()[i] = sign * a.flat<float>()[i] * b.flat<float>()[i];
    }
    return absl::OkStatus();
  }

 private:
  bool transpose_a_ = false;
};

// Outputs the number of values and the axis, an input that follows a list.
class ConcatV2 : public tfplug::Kernel {
 public:
  absl::Status Compute(tfplug::KernelContext& context) override {
    TFPLUG_ASSIGN_OR_RETURN(const std::vector<tfplug::Tensor> values,
                            context.GetInputList(ops::ConcatV2::values));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::ArgumentRange range,
                            context.GetInputRange(ops::ConcatV2::values));
    CHECK(range.size() == static_cast<int>(values.size()));
    TFPLUG_ASSIGN_OR_RETURN(const tfplug::Tensor axis,
                            context.GetInput(ops::ConcatV2::axis));
    TFPLUG_ASSIGN_OR_RETURN(
        const tfplug::Tensor output,
        context.AllocateTemp(tfplug::DataType::kFloat, tfplug::Shape{2}));
    output.flat<float>()[0] = static_cast<float>(values.size());
    output.flat<float>()[1] = axis.flat<float>()[0];
    return context.SetOutput(ops::ConcatV2::output, output);
  }
};

}  // namespace

TFPLUG_REGISTER_DEVICE(minimal::Platform);
TFPLUG_REGISTER_KERNEL(MatMul, ops::MatMul().T<float>());
TFPLUG_REGISTER_KERNEL(ConcatV2, ops::ConcatV2().T<float>());

namespace tfplug {
namespace {

using testing::FakeKernel;
using testing::KernelRun;
using testing::Node;

TEST_CASE("a typed op is a KernelDef") {
  const KernelDef def = ops::Sum()
                            .HostMemory(ops::Sum::reduction_indices)
                            .T<float>()
                            .Tidx<int32_t, int64_t>()
                            .Device("CPU")
                            .Priority(3)
                            .Label("mine")
                            .OnlyIf([] { return false; });
  CHECK(def.device_type() == "CPU");
  CHECK_FALSE(def.IsEnabled());
  const KernelDef plain = KernelDef("Sum")
                              .HostMemory("reduction_indices")
                              .TypeConstraint<float>("T")
                              .TypeConstraint<int32_t, int64_t>("Tidx")
                              .Priority(3)
                              .Label("mine");
  CHECK(def.Serialize("CPU") == plain.Serialize("CPU"));
}

TEST_CASE("names that C++ reserves or tfplug::Op uses") {
  CHECK(KernelDef(ops::InternalFusedMatMul()).op() == "_FusedMatMul");
  CHECK(std::string(ops::InternalFusedConv2D::kName) == "_FusedConv2D");
  CHECK(std::string(ops::NoOp::kName) == "NoOp");
  CHECK(std::string(ops::VarHandleOp::kName) == "VarHandleOp");
  CHECK(std::string(kernel_internal::NameOf(ops::StringFormat::template_)) ==
        "template");
  CHECK(std::string(kernel_internal::NameOf(ops::Cast::DstT_attr)) == "DstT");
  CHECK(std::string(kernel_internal::NameOf(ops::Split::split_dim)) ==
        "split_dim");
}

TEST_CASE("the index of an argument is a constant") {
  static_assert(kernel_internal::InputIndex(ops::MatMul::b) == 1);
  static_assert(
      kernel_internal::OutputIndex(ops::FusedBatchNormV3::batch_mean) == 1);
  // An argument after a reference.
  static_assert(kernel_internal::InputIndex(ops::Assign::value) == 1);
  CHECK(std::string(kernel_internal::NameOf(ops::Assign::value)) == "value");
}

TEST_CASE("every kind of argument can be in host memory") {
  const KernelDef def = ops::ConcatV2()
                            .HostMemory(ops::ConcatV2::values)
                            .HostMemory(ops::ConcatV2::axis)
                            .HostMemory(ops::ConcatV2::output);
  CHECK(def.host_memory() ==
        std::vector<std::string>{"values", "axis", "output"});
}

template <class T, class E>
constexpr bool kReadAs = std::is_same_v<kernel_internal::AttrType<E>, T>;

TEST_CASE("the type of an attribute follows from its kind") {
  CHECK(kReadAs<bool, ops::Conv2D::Bools>);
  CHECK(kReadAs<std::string, ops::Conv2D::Strings>);
  CHECK(kReadAs<DataType, ops::Conv2D::Types>);
  CHECK(kReadAs<std::vector<int64_t>, ops::Conv2D::IntLists>);
  CHECK(kReadAs<float, ops::LeakyRelu::Floats>);
  CHECK(kReadAs<int64_t, ops::AddN::Ints>);
  CHECK(kReadAs<PartialShape, ops::Placeholder::Shapes>);
  CHECK(kReadAs<Tensor, ops::Const::Tensors>);
  CHECK(kReadAs<Function, ops::PartitionedCall::Functions>);
  CHECK(kReadAs<std::vector<DataType>, ops::IdentityN::TypeLists>);
  CHECK(kReadAs<std::vector<PartialShape>, ops::ParseExample::ShapeLists>);
  CHECK(
      kReadAs<std::vector<std::string>, ops::InternalFusedMatMul::StringLists>);
  CHECK(kReadAs<std::vector<float>, ops::Bucketize::FloatLists>);
  CHECK(kReadAs<std::vector<Function>, ops::Case::FunctionLists>);
}

class Fixture {
 protected:
  Fixture() { testing::KernelRegistry::Get().Refill(&TF_InitKernel); }
  std::unique_ptr<FakeKernel> Make(Node node) {
    auto kernel = FakeKernel::Create(std::move(node), "MINIMAL");
    REQUIRE_MESSAGE(kernel.ok(), kernel.status().ToString());
    return *std::move(kernel);
  }
  testing::ScopedFakeTensorFlow tensorflow_;
  std::unique_ptr<testing::Host> host_ =
      testing::Host::Register(&SE_InitPlugin).value();
  testing::FakeDevice* const device_ = host_->Device(0).value();
};

TEST_CASE_FIXTURE(Fixture, "a kernel finds its arguments by typed names") {
  for (bool transpose : {false, true}) {
    auto kernel = Make({"MatMul",
                        "m",
                        {{"T", DataType::kFloat}, {"transpose_a", transpose}},
                        {}});
    KernelRun run(*kernel, device_);
    run.AddInput<float>({{2}, {2, 3}});
    run.AddInput<float>({{2}, {5, 7}});
    run.AddOutput(DataType::kFloat);
    CHECK(run.Run().ok());
    CHECK(run.Output<float>(0).elements == (transpose
                                                ? std::vector<float>{-10, -21}
                                                : std::vector<float>{10, 21}));
  }
}

TEST_CASE_FIXTURE(Fixture, "a missing attribute is named") {
  const auto kernel = FakeKernel::Create(
      {"MatMul", "m", {{"T", DataType::kFloat}}, {}}, "MINIMAL");
  CHECK(std::string(kernel.status().message()).find("transpose_a") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "an input after a list is looked up by name") {
  for (int n : {1, 3}) {
    auto kernel = Make({"ConcatV2",
                        "c",
                        {{"T", DataType::kFloat}},
                        {{"values", n}, {"axis", 1}}});
    KernelRun run(*kernel, device_);
    for (int i = 0; i < n; ++i) run.AddInput<float>({{1}, {0}});
    run.AddInput<float>({{1}, {42}});
    run.AddOutput(DataType::kFloat);
    CHECK(run.Run().ok());
    CHECK(run.Output<float>(0).elements ==
          std::vector<float>{static_cast<float>(n), 42});
  }
}

TEST_CASE("the type attributes with functions in Op itself") {
  const auto attrs = [](const KernelDef& def) {
    std::string names;
    for (const auto& constraint : def.type_constraints()) {
      names += constraint.attr + "=" + DataTypeName(constraint.types[0]) + " ";
    }
    return names;
  };
  CHECK(attrs(ops::ArgMax().T<float>().Tidx<int32_t>()) ==
        "T=float Tidx=int32 ");
  CHECK(attrs(ops::Real().T<std::complex<float>>().Tout<float>()) ==
        "T=complex64 Tout=float ");
  CHECK(attrs(ops::RandomUniform().dtype<double>()) == "dtype=double ");
  CHECK(attrs(ops::ResourceGather().Tindices<int64_t>()) == "Tindices=int64 ");
  CHECK(attrs(ops::Shape().out_type<int64_t>()) == "out_type=int64 ");
  CHECK(attrs(ops::Case().Tin<float>()) == "Tin=float ");
  CHECK(attrs(ops::QuantizedConv2D().Tinput<Qint8>().Tfilter<Qint8>()) ==
        "Tinput=qint8 Tfilter=qint8 ");
}

}  // namespace
}  // namespace tfplug
