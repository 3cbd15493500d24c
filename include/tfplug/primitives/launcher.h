// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_PRIMITIVES_LAUNCHER_H_
#define TFPLUG_PRIMITIVES_LAUNCHER_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tfplug/base/status_macros.h"
#include "tfplug/ir/reduction.h"
#include "tfplug/ir/view.h"
#include "tfplug/primitives/launch_graph.h"
#include "tfplug/primitives/nn.h"

#pragma GCC visibility push(hidden)

namespace tfplug {

// Allocates temporary device memory for one op, which stays valid for the work
// that the op enqueues.
class Scratch {
 public:
  virtual ~Scratch() = default;
  virtual absl::StatusOr<void*> Allocate(int64_t bytes) = 0;
};

enum class ScatterKind : uint8_t { kSet, kAdd, kMultiply, kMax, kMin };

class Launcher;

namespace primitives {

// The function that Launcher::Enqueue calls, with the backend's stream.
using OwnWork = std::function<absl::Status(void* stream, Operands)>;

// The primitives of a backend, for its author's stream.
struct PrimitiveTable {
  // Map, MapFlat and Reduce take operands of any rank.
  absl::Status (*map)(void* backend, void* stream, Launcher&, const Expression&,
                      absl::Span<Operand>, absl::Span<Operand>);
  absl::Status (*map_flat)(void* backend, void* stream, const Expression&,
                           const FlatOperands&);
  absl::Status (*reduce)(void* backend, void* stream, Launcher&,
                         const Reduction&, absl::Span<Operand>,
                         absl::Span<Operand>);
#define TFPLUG_INTERNAL_PRIMITIVE(name, function, ...) \
  absl::Status (*name)(void* backend, void* stream, Launcher&, __VA_ARGS__);
#include "tfplug/primitives/primitives.def"
  absl::Status (*enqueue)(void* backend, void* stream, Launcher&,
                          const OwnWork&, Operands);
  // Backend::Capture; null if the backend has no graphs.
  NewLaunchGraph (*capture)(void* backend, void* stream,
                            const std::function<absl::Status(void*)>& work);
};

[[gnu::cold, gnu::noinline]] inline absl::Status WrongOperands() {
  return absl::InternalError(
      "the operands of a primitive differ in number or type from the inputs "
      "and outputs of its expression");
}

// Fails if a view has no space for all of its dimensions.
template <class... Views>
absl::Status CheckDims(const Views&... views) {
  if (ABSL_PREDICT_TRUE(!(views.lacks_dims || ...))) return absl::OkStatus();
  return absl::UnimplementedError(
      "a kernel needs a view of more than " + std::to_string(kMaxViewRank) +
      " dimensions; reshape its tensors to fewer ones");
}

inline DataType TypeOf(DataType type) { return type; }
inline DataType TypeOf(const Expression::Output& output) { return output.type; }

// Fails unless the operands have the types of an expression's inputs or
// outputs, and all of their dimensions.
template <class Types>
absl::Status CheckOperands(Operands operands, const Types& types) {
  if (ABSL_PREDICT_FALSE(operands.size() != types.size())) {
    return WrongOperands();
  }
  size_t i = 0;
  for (const auto& type : types) {
    const Operand& operand = operands[i++];
    if (ABSL_PREDICT_FALSE(operand.lacks_dims)) return CheckDims(operand);
    if (ABSL_PREDICT_FALSE(operand.type != TypeOf(type))) {
      return WrongOperands();
    }
  }
  return absl::OkStatus();
}

// Returns the types of the inputs after the first one, which a primitive
// computes.
inline absl::Span<const DataType> OtherInputs(const Expression& expression) {
  const absl::Span<const DataType> all = expression.inputs();
  return all.subspan(all.empty() ? 0 : 1);
}

inline bool CountsMatch(const FlatOperands& operands,
                        const Expression& expression) {
  return operands.addresses.size() ==
         expression.inputs().size() + expression.outputs().size();
}

}  // namespace primitives

// Runs the primitives of a backend on one stream, for one op. Kernels use it,
// and primitives that are composed of others.
class Launcher {
 public:
  Launcher(const primitives::PrimitiveTable* table, void* backend, void* stream,
           Scratch* scratch)
      : table_(table), backend_(backend), stream_(stream), scratch_(scratch) {}

  // Run Backend::Map and Reduce (a CompiledBackend's MapLoops and ReduceLoops) for
  // any rank; may simplify operands in place. Without output elements, do nothing.
  absl::Status Map(const Expression& expression, absl::Span<Operand> inputs,
                   absl::Span<Operand> outputs) {
    TFPLUG_RETURN_IF_ERROR(
        primitives::CheckOperands(inputs, expression.inputs()));
    TFPLUG_RETURN_IF_ERROR(
        primitives::CheckOperands(outputs, expression.outputs()));
    return table_->map(backend_, stream_, *this, expression, inputs, outputs);
  }
  // Runs Map for arrays of the types of the expression. Takes less than half of
  // Map's time on the host if the backend compiles its kernels (compiled.h).
  absl::Status MapFlat(const Expression& expression,
                       const FlatOperands& operands) {
    return table_->map_flat(backend_, stream_, expression, operands);
  }
  absl::Status Reduce(const Reduction& reduction, absl::Span<Operand> inputs,
                      absl::Span<Operand> outputs) {
    const auto& map_types = reduction.map.inputs();
    const auto finish_types = primitives::OtherInputs(reduction.finish);
    if (ABSL_PREDICT_FALSE(inputs.size() <
                           map_types.size() + finish_types.size())) {
      return primitives::WrongOperands();
    }
    TFPLUG_RETURN_IF_ERROR(
        primitives::CheckOperands(inputs.first(map_types.size()), map_types));
    TFPLUG_RETURN_IF_ERROR(primitives::CheckOperands(
        inputs.subspan(map_types.size()), finish_types));
    TFPLUG_RETURN_IF_ERROR(
        primitives::CheckOperands(outputs, reduction.finish.outputs()));
    return table_->reduce(backend_, stream_, *this, reduction, inputs, outputs);
  }
  // Do the same with copies of the operands.
  absl::Status Map(const Expression& expression,
                   std::initializer_list<Operand> inputs,
                   std::initializer_list<Operand> outputs) {
    absl::InlinedVector<Operand, 4> in(inputs), out(outputs);
    return Map(expression, absl::MakeSpan(in), absl::MakeSpan(out));
  }
  absl::Status Reduce(const Reduction& reduction,
                      std::initializer_list<Operand> inputs,
                      std::initializer_list<Operand> outputs) {
    absl::InlinedVector<Operand, 4> in(inputs), out(outputs);
    return Reduce(reduction, absl::MakeSpan(in), absl::MakeSpan(out));
  }

  // Run the primitives of the same name.
  absl::Status MatMul(const Operand& a, const Operand& b, const Operand& c) {
    TFPLUG_RETURN_IF_ERROR(primitives::CheckDims(a, b, c));
    return table_->mat_mul(backend_, stream_, *this, a, b, c);
  }
  absl::Status Scatter(ScatterKind kind, const Operand& indices,
                       const Operand& updates, const Operand& output) {
    TFPLUG_RETURN_IF_ERROR(primitives::CheckDims(indices, updates, output));
    return table_->scatter(backend_, stream_, *this, kind, indices, updates,
                           output);
  }
  absl::Status Scan(ReduceKind kind, const Operand& input,
                    const Operand& output) {
    TFPLUG_RETURN_IF_ERROR(primitives::CheckDims(input, output));
    return table_->scan(backend_, stream_, *this, kind, input, output);
  }
  absl::Status Sort(const Operand& input, const Operand& values,
                    const Operand& indices) {
    TFPLUG_RETURN_IF_ERROR(primitives::CheckDims(input, values, indices));
    return table_->sort(backend_, stream_, *this, input, values, indices);
  }
  absl::Status Fourier(bool is_inverse, const Operand& x, const Operand& y) {
    return table_->fourier(backend_, stream_, *this, is_inverse, x, y);
  }
  absl::Status Conv(const Convolution& conv, const Operand& image,
                    const Operand& filter, const Operand& output) {
    return table_->conv(backend_, stream_, *this, conv, image, filter, output);
  }
  absl::Status ConvInputGradient(const Convolution& conv, const Operand& filter,
                                 const Operand& output_gradient,
                                 const Operand& image_gradient) {
    return table_->conv_input_gradient(backend_, stream_, *this, conv, filter,
                                       output_gradient, image_gradient);
  }
  absl::Status ConvFilterGradient(const Convolution& conv, const Operand& image,
                                  const Operand& output_gradient,
                                  const Operand& filter_gradient) {
    return table_->conv_filter_gradient(backend_, stream_, *this, conv, image,
                                        output_gradient, filter_gradient);
  }
  absl::Status MatMulMap(const Operand& a, const Operand& b,
                         const Expression& expression, Operands inputs,
                         Operands outputs) {
    TFPLUG_RETURN_IF_ERROR(primitives::CheckDims(a, b));
    TFPLUG_RETURN_IF_ERROR(
        primitives::CheckOperands(inputs, primitives::OtherInputs(expression)));
    TFPLUG_RETURN_IF_ERROR(
        primitives::CheckOperands(outputs, expression.outputs()));
    return table_->mat_mul_map(backend_, stream_, *this, a, b, expression,
                               inputs, outputs);
  }
  absl::Status ConvMap(const Convolution& conv, const Operand& image,
                       const Operand& filter, const Expression& expression,
                       Operands inputs, Operands outputs) {
    TFPLUG_RETURN_IF_ERROR(
        primitives::CheckOperands(inputs, primitives::OtherInputs(expression)));
    TFPLUG_RETURN_IF_ERROR(
        primitives::CheckOperands(outputs, expression.outputs()));
    return table_->conv_map(backend_, stream_, *this, conv, image, filter,
                            expression, inputs, outputs);
  }
  absl::Status Recur(const Operand& a, const Operand& b, const Operand& c,
                     const Expression& expression, Operands inputs,
                     Operands outputs) {
    TFPLUG_RETURN_IF_ERROR(primitives::CheckDims(a, b, c));
    TFPLUG_RETURN_IF_ERROR(
        primitives::CheckOperands(inputs, expression.inputs()));
    TFPLUG_RETURN_IF_ERROR(
        primitives::CheckOperands(outputs, expression.outputs()));
    return table_->recur(backend_, stream_, *this, a, b, c, expression, inputs,
                         outputs);
  }
  absl::Status Pool(const Pooling& pooling, const Operand& image,
                    const Operand& output) {
    return table_->pool(backend_, stream_, *this, pooling, image, output);
  }
  absl::Status PoolGradient(const Pooling& pooling, const Operand& image,
                            const Operand& output,
                            const Operand& output_gradient,
                            const Operand& image_gradient) {
    return table_->pool_gradient(backend_, stream_, *this, pooling, image,
                                 output, output_gradient, image_gradient);
  }
  absl::Status BatchNormTraining(const BatchNormalization& norm,
                                 const BatchNormTrainingOperands& operands) {
    return table_->batch_norm_training(backend_, stream_, *this, norm,
                                       operands);
  }
  absl::Status BatchNormInference(const BatchNormalization& norm,
                                  const BatchNormInferenceOperands& operands) {
    return table_->batch_norm_inference(backend_, stream_, *this, norm,
                                        operands);
  }
  absl::Status BatchNormGradient(const BatchNormalization& norm,
                                 const BatchNormGradientOperands& operands) {
    return table_->batch_norm_gradient(backend_, stream_, *this, norm,
                                       operands);
  }
  absl::Status Softmax(SoftmaxKind kind, const Operand& logits,
                       const Operand& output) {
    TFPLUG_RETURN_IF_ERROR(primitives::CheckDims(logits, output));
    return table_->softmax(backend_, stream_, *this, kind, logits, output);
  }
  absl::Status CrossEntropy(const Operand& logits, const Operand& labels,
                            const Operand& loss, const Operand& gradient) {
    return table_->cross_entropy(backend_, stream_, *this, logits, labels, loss,
                                 gradient);
  }

  // Calls work(stream, operands), an absl::Status(Stream&, Operands), with the
  // backend's stream, on which it may enqueue anything: a kernel that is no
  // primitive. It must access no memory but that of its operands, by the
  // addresses in its arguments, and keep what else it needs by value: a region
  // (passes/compile_regions.h) calls it again, on any thread, with operands of
  // the same types, shapes and order in other memory. It must enqueue the same
  // work each time: a graph (Backend::Capture) repeats what it has enqueued.
  template <class Stream, class Work>
  absl::Status Enqueue(Operands operands, Work work) {
    return table_->enqueue(
        backend_, stream_, *this,
        [work = std::move(work)](void* stream, Operands at) -> absl::Status {
          return work(*static_cast<Stream*>(stream), at);
        },
        operands);
  }

  // Returns a dense temporary array.
  absl::StatusOr<Operand> Allocate(DataType type,
                                   absl::Span<const int64_t> dims) {
    Operand view = Operand::Dense(nullptr, type, dims);
    TFPLUG_RETURN_IF_ERROR(primitives::CheckDims(view));
    auto memory = scratch_->Allocate(view.num_elements() *
                                     static_cast<int64_t>(DataTypeSize(type)));
    if (!memory.ok()) return memory.status();
    view.data = *memory;
    return view;
  }

 private:
  const primitives::PrimitiveTable* table_;
  void* backend_;
  void* stream_;
  Scratch* scratch_;
};

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_PRIMITIVES_LAUNCHER_H_
