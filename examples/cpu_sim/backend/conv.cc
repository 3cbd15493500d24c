// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "backend/backend.h"
#include "backend/device_views.h"
#include "backend/epilogue.h"
#include "backend/floats.h"
#include "kernels/simd.h"

// Convolutions of two dimensions, in float; tfplug composes the others.
namespace cpu_sim {
namespace {

using tfplug::Convolution;
using tfplug::Launcher;
using tfplug::Operand;
using Base = tfplug::Backend<Stream>;

constexpr int64_t kTileFloats = 1 << 17;
constexpr int64_t kMinTile = 256;

bool IsFast(const Convolution& conv, const Operand& operand) {
  return conv.windows.size() == 2 && IsComputedInFloat(operand.type);
}
bool IsDepthwise(const Convolution& conv, const Operand& filter) {
  return conv.groups > 1 && filter.dim(2) == 1;
}

Window WindowOf(const tfplug::Window& window) {
  return {window.input,  window.output,   window.size,
          window.stride, window.dilation, window.before};
}

// Returns the number of input elements per output pixel of one group.
int64_t PatchSize(const Conv2D& conv) {
  return conv.rows.size * conv.cols.size * (conv.in_depth / conv.groups);
}

Conv2D Describe(const Convolution& conv, const Operand& image,
                const Operand& output) {
  Conv2D result{image.dim(0),
                WindowOf(conv.windows[0]),
                WindowOf(conv.windows[1]),
                image.dim(3),
                output.dim(3),
                conv.groups,
                0};
  // A tile has as many patches as fit into a cache, and enough to amortize
  // loading the filter.
  const int64_t pixels = result.batch * result.rows.out * result.cols.out;
  result.tile =
      std::min(pixels, std::max(kMinTile, kTileFloats / PatchSize(result)));
  return result;
}

// Enqueues full(conv, x, y, z, workspace) or depthwise(conv, x, y, z).
template <class Full, class Depthwise>
absl::Status Enqueue(Stream& stream, Launcher& launcher, const Conv2D& conv,
                     bool is_depthwise, const Operand& x, const Operand& y,
                     const Operand& z, Full full, Depthwise depthwise) {
  if (is_depthwise) {
    TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views,
                            ForDevice(stream, {x, y, z}));
    return stream.LaunchTask([=] {
      depthwise(conv, Floats(views[0]), Floats(views[1]), Floats(views[2]));
    });
  }
  TFPLUG_ASSIGN_OR_RETURN(const Operand workspace,
                          launcher.Allocate(tfplug::DataType::kFloat,
                                            {conv.tile * PatchSize(conv)}));
  TFPLUG_ASSIGN_OR_RETURN(const DeviceViews views,
                          ForDevice(stream, {x, y, z, workspace}));
  return stream.LaunchTask([=] {
    full(conv, Floats(views[0]), Floats(views[1]), Floats(views[2]),
         Floats(views[3]));
  });
}

absl::Status Forward(Stream& stream, Launcher& launcher,
                     const Convolution& conv, const Operand& image,
                     const Operand& filter, const tfplug::Epilogue& epilogue,
                     const Operand& output) {
  FloatOutputs outputs(launcher);
  TFPLUG_ASSIGN_OR_RETURN(const Operand x, ToFloats(launcher, image));
  TFPLUG_ASSIGN_OR_RETURN(const Operand f, ToFloats(launcher, filter));
  TFPLUG_ASSIGN_OR_RETURN(const Operand y, outputs.Add(output));
  TFPLUG_ASSIGN_OR_RETURN(const Epilogue on_device,
                          EpilogueForDevice(stream, launcher, epilogue));
  TFPLUG_RETURN_IF_ERROR(Enqueue(
      stream, launcher, Describe(conv, image, output),
      IsDepthwise(conv, filter), x, f, y,
      [on_device](const Conv2D& c, auto*... operands) {
        Simd().conv2d.forward(c, on_device, operands...);
      },
      [on_device](const Conv2D& c, auto*... operands) {
        Simd().depthwise.forward(c, on_device, operands...);
      }));
  return outputs.Finish();
}

}  // namespace

absl::Status Backend::Conv(Stream& stream, Launcher& launcher,
                           const Convolution& conv, const Operand& image,
                           const Operand& filter, const Operand& output) {
  if (!IsFast(conv, image)) {
    return Base::Conv(stream, launcher, conv, image, filter, output);
  }
  return Forward(stream, launcher, conv, image, filter, {}, output);
}

absl::Status Backend::ConvMap(Stream& stream, Launcher& launcher,
                              const Convolution& conv, const Operand& image,
                              const Operand& filter,
                              const tfplug::Expression& expression,
                              tfplug::Operands inputs,
                              tfplug::Operands outputs) {
  const auto epilogue = FindFastEpilogue(expression, inputs);
  if (!IsFast(conv, image) || !epilogue.has_value()) {
    return Base::ConvMap(stream, launcher, conv, image, filter, expression,
                         inputs, outputs);
  }
  return Forward(stream, launcher, conv, image, filter, *epilogue, outputs[0]);
}

absl::Status Backend::ConvInputGradient(Stream& stream, Launcher& launcher,
                                        const Convolution& conv,
                                        const Operand& filter,
                                        const Operand& output_gradient,
                                        const Operand& image_gradient) {
  if (!IsFast(conv, filter)) {
    return Base::ConvInputGradient(stream, launcher, conv, filter,
                                   output_gradient, image_gradient);
  }
  FloatOutputs outputs(launcher);
  TFPLUG_ASSIGN_OR_RETURN(const Operand f, ToFloats(launcher, filter));
  TFPLUG_ASSIGN_OR_RETURN(const Operand dy,
                          ToFloats(launcher, output_gradient));
  TFPLUG_ASSIGN_OR_RETURN(const Operand dx, outputs.Add(image_gradient));
  TFPLUG_RETURN_IF_ERROR(
      Enqueue(stream, launcher, Describe(conv, image_gradient, output_gradient),
              IsDepthwise(conv, filter), f, dy, dx,
              Simd().conv2d.input_gradient, Simd().depthwise.input_gradient));
  return outputs.Finish();
}

absl::Status Backend::ConvFilterGradient(Stream& stream, Launcher& launcher,
                                         const Convolution& conv,
                                         const Operand& image,
                                         const Operand& output_gradient,
                                         const Operand& filter_gradient) {
  if (!IsFast(conv, image)) {
    return Base::ConvFilterGradient(stream, launcher, conv, image,
                                    output_gradient, filter_gradient);
  }
  FloatOutputs outputs(launcher);
  TFPLUG_ASSIGN_OR_RETURN(const Operand x, ToFloats(launcher, image));
  TFPLUG_ASSIGN_OR_RETURN(const Operand dy,
                          ToFloats(launcher, output_gradient));
  TFPLUG_ASSIGN_OR_RETURN(const Operand df, outputs.Add(filter_gradient));
  TFPLUG_RETURN_IF_ERROR(
      Enqueue(stream, launcher, Describe(conv, image, output_gradient),
              IsDepthwise(conv, filter_gradient), x, dy, df,
              Simd().conv2d.filter_gradient, Simd().depthwise.filter_gradient));
  return outputs.Finish();
}

}  // namespace cpu_sim
