// SPDX-License-Identifier: Apache-2.0
#ifndef TFPLUG_OP_KERNELS_CROP_H_
#define TFPLUG_OP_KERNELS_CROP_H_

#include <array>
#include <cstdint>
#include <string>

#include "tfplug/op_kernels/helpers.h"
#include "tfplug/op_kernels/registrar.h"

#pragma GCC visibility push(hidden)

// CropAndResize and its gradients: boxes of images, resized to one size. A box
// whose image does not exist is outside; TensorFlow's CPU reports an error.
namespace tfplug {
namespace op_kernels_internal {

// The images, the crops and the boxes of a run.
struct Crops {
  int64_t batch, height, width, depth;
  int64_t boxes, crop_height, crop_width;
};

// The inputs that locate the pixels under an element of the crops: see
// LocationOperands.
class Location {
 public:
  explicit Location(ExpressionBuilder& builder) : builder_(builder) {}

  // A coordinate in the image, and whether it is inside.
  struct Position {
    Value at, is_inside;
  };
  Position y() const { return At(row_, y1_, y2_, height_, last_crop_row_); }
  Position x() const {
    return At(column_, x1_, x2_, width_, last_crop_column_);
  }
  Value is_inside() const {
    const Value image = Cast(image_, kInt64);
    return y().is_inside & x().is_inside & (image >= 0) & (image < batch_);
  }
  // Return the indices of a row and column as floats.
  Value row() const { return Cast(row_, kFloat); }
  Value column() const { return Cast(column_, kFloat); }
  Value last_row() const { return Cast(height_ - 1, kFloat); }
  Value last_column() const { return Cast(width_ - 1, kFloat); }
  Value last_crop_row() const { return last_crop_row_; }
  Value last_crop_column() const { return last_crop_column_; }

  // Returns the index of a pixel of the box's image: -1 if the element is
  // outside. Counts pixels, or elements.
  Value Pixel(Value row, Value column) const {
    const Value index =
        (Cast(image_, kInt64) * height_ + Cast(row, kInt64)) * width_ +
        Cast(column, kInt64);
    return Select(is_inside(), index, -1);
  }
  Value Element(int image, Value row, Value column) const {
    const Value pixel = Pixel(row, column);
    const Value at = Select(pixel < 0, pixel, pixel * depth_ + channel_);
    return Cast(builder_.Element(image, at), kFloat);
  }
  static Value Round(Value at) {
    const Value down = Floor(at);
    return down + Cast(at - down >= .5, kFloat);
  }

  static constexpr DataType kInt64 = DataType::kInt64,
                            kFloat = DataType::kFloat;

 private:
  static Position At(Value i, Value first, Value second, Value size,
                     Value last_of_crop) {
    const Value last = Cast(size - 1, kFloat);
    const Value step = (second - first) * last / last_of_crop;
    const Value at =
        Select(last_of_crop > 0, first * last + Cast(i, kFloat) * step,
               (first + second) * .5 * last);
    return {at, (at >= 0) & (at <= last)};
  }

  ExpressionBuilder& builder_;
  // The inputs, in the order of LocationOperands.
  const Value row_ = builder_.Input(kInt64), column_ = builder_.Input(kInt64),
              channel_ = builder_.Input(kInt64);
  const Value image_ = builder_.Input(DataType::kInt32);  // of the box
  const Value y1_ = builder_.Input(kFloat), x1_ = builder_.Input(kFloat),
              y2_ = builder_.Input(kFloat), x2_ = builder_.Input(kFloat);
  const Value batch_ = builder_.Input(kInt64), height_ = builder_.Input(kInt64),
              width_ = builder_.Input(kInt64), depth_ = builder_.Input(kInt64);
  const Value last_crop_row_ = builder_.Input(kFloat),
              last_crop_column_ = builder_.Input(kFloat);
};

// Returns the operands of the inputs of Location, for [box, row, column,
// channel].
inline absl::InlinedVector<Operand, 4> LocationOperands(
    const Crops& crops, const Operand& boxes, const Operand& box_index) {
  const Operand like = Operand::Dense(
      nullptr, DataType::kFloat,
      {crops.boxes, crops.crop_height, crops.crop_width, crops.depth});
  const auto repeat = [&](Operand view, int64_t stride) {
    return ir::AlongDim(view, like, 0, stride);
  };
  absl::InlinedVector<Operand, 4> operands = {
      ir::IndexOf(like, 1), ir::IndexOf(like, 2), ir::IndexOf(like, 3),
      repeat(box_index, 1)};
  for (int64_t i = 0; i < 4; ++i) {
    operands.push_back(repeat(Operand(boxes).Advance(i), 4));
  }
  for (int64_t size : {crops.batch, crops.height, crops.width, crops.depth}) {
    operands.push_back(
        ir::ScalarOf(DataType::kInt64, static_cast<double>(size), like));
  }
  for (int64_t size : {crops.crop_height, crops.crop_width}) {
    operands.push_back(
        ir::ScalarOf(DataType::kFloat, static_cast<double>(size - 1), like));
  }
  return operands;
}

class CropKernel : public BackendKernel {
 protected:
  absl::Status InitMethod(KernelConstruction& construction) {
    TFPLUG_ASSIGN_OR_RETURN(const auto method,
                            construction.GetAttr<std::string>("method"));
    is_nearest_ = method == "nearest";
    return absl::OkStatus();
  }
  // Checks inputs 1 and 2, and sets the number of boxes.
  static absl::Status CheckBoxes(const Operand& boxes, const Operand& index,
                                 Crops* crops) {
    if (boxes.rank != 2 || index.rank != 1 ||
        (boxes.num_elements() > 0 && boxes.dim(1) != 4) ||
        boxes.dim(0) != index.dim(0)) {
      return absl::InvalidArgumentError(
          "boxes must have shape [boxes, 4], and box_index [boxes], not " +
          ShapeOf(boxes).ToString() + " and " + ShapeOf(index).ToString());
    }
    crops->boxes = index.dim(0);
    return absl::OkStatus();
  }
  static absl::Status CheckGradient(const Operand& gradient, Crops* crops) {
    if (gradient.rank != 4 || gradient.dim(1) <= 0 || gradient.dim(2) <= 0) {
      return absl::InvalidArgumentError(
          "grads must be 4-D and its dimensions positive, not " +
          ShapeOf(gradient).ToString());
    }
    crops->crop_height = gradient.dim(1);
    crops->crop_width = gradient.dim(2);
    return absl::OkStatus();
  }
  static absl::Status CheckImage(absl::Span<const int64_t> image,
                                 Crops* crops) {
    if (image.size() != 4 || image[1] <= 0 || image[2] <= 0) {
      return absl::InvalidArgumentError(
          "the image must be 4-D and its dimensions positive, not " +
          Shape(image).ToString());
    }
    crops->batch = image[0];
    crops->height = image[1];
    crops->width = image[2];
    crops->depth = image[3];
    return absl::OkStatus();
  }
  static absl::Status CheckMatch(const Operand& gradient, const Crops& crops) {
    if (gradient.dim(0) == crops.boxes && gradient.dim(3) == crops.depth) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "the shape of grads " + ShapeOf(gradient).ToString() +
        " is incompatible with the boxes or the image");
  }
  // Returns all elements of an image as an axis.
  static Operand AsAxis(const Operand& image, const Crops& crops) {
    Operand view = ir::WithoutDims(image);
    view.axis_size = image.num_elements();
    view.axis_stride = 1;
    return view.AddDim(crops.boxes, 0)
        .AddDim(crops.crop_height, 0)
        .AddDim(crops.crop_width, 0)
        .AddDim(crops.depth, 0);
  }

  bool is_nearest_ = false;
};

class CropAndResizeKernel final : public CropKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_RETURN_IF_ERROR(InitMethod(construction));
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    TFPLUG_ASSIGN_OR_RETURN(outside_,
                            construction.GetAttr<float>("extrapolation_value"));
    ExpressionBuilder builder;
    const Location location(builder);
    const int image = builder.AxisInput(type);
    const Value y = location.y().at, x = location.x().at;
    const auto pixel = [&](Value row, Value column) {
      return location.Element(image, row, column);
    };
    const Value result = [&] {
      if (is_nearest_) return pixel(Location::Round(y), Location::Round(x));
      const Value up = Floor(y), left = Floor(x), down = Ceil(y),
                  right = Ceil(x);
      const Value top =
          pixel(up, left) + (pixel(up, right) - pixel(up, left)) * (x - left);
      const Value bottom =
          pixel(down, left) +
          (pixel(down, right) - pixel(down, left)) * (x - left);
      return top + (bottom - top) * (y - up);
    }();
    builder.Output(
        Select(location.is_inside(), result, static_cast<double>(outside_)),
        DataType::kFloat);
    TFPLUG_ASSIGN_OR_RETURN(crop_, std::move(builder).Build());
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand image, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand boxes, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand index, GetView(run, 2));
    TFPLUG_ASSIGN_OR_RETURN(const Ints size, run.GetVector(3));
    Crops crops = {};
    TFPLUG_RETURN_IF_ERROR(CheckImage(ir::DimsOf(image), &crops));
    TFPLUG_RETURN_IF_ERROR(CheckBoxes(boxes, index, &crops));
    if (size.size() != 2 || size[0] <= 0 || size[1] <= 0) {
      return absl::InvalidArgumentError(
          "crop_size must have two elements, both positive");
    }
    crops.crop_height = size[0];
    crops.crop_width = size[1];
    TFPLUG_ASSIGN_OR_RETURN(
        Operand y, run.AllocateOutput(0, {crops.boxes, crops.crop_height,
                                          crops.crop_width, crops.depth}));
    if (image.num_elements() == 0) {
      return Fill(run, y, static_cast<double>(outside_));
    }
    auto inputs = LocationOperands(crops, boxes, index);
    inputs.push_back(AsAxis(image, crops));
    return run.launcher().Map(crop_, absl::MakeSpan(inputs),
                              absl::MakeSpan(&y, 1));
  }

 private:
  Expression crop_;
  float outside_ = 0;
};

// CropAndResizeGradImage: adds each gradient to the pixels of which the element
// was made, one of the four corners after the other.
class CropGradImageKernel final : public CropKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_RETURN_IF_ERROR(InitMethod(construction));
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    for (const bool is_index : {true, false}) {
      ExpressionBuilder builder;
      const Location location(builder);
      const Value is_bottom = builder.Input(DataType::kBool);
      const Value is_right = builder.Input(DataType::kBool);
      const Value y = location.y().at, x = location.x().at;
      const Value part_y = y - Floor(y), part_x = x - Floor(x);
      if (is_index) {
        builder.Output(
            is_nearest_ ? location.Pixel(Location::Round(y), Location::Round(x))
                        : location.Pixel(Select(is_bottom, Ceil(y), Floor(y)),
                                         Select(is_right, Ceil(x), Floor(x))),
            DataType::kInt64);
        TFPLUG_ASSIGN_OR_RETURN(index_, std::move(builder).Build());
      } else {
        const Value gradient = builder.Input(DataType::kFloat);
        const Value share_y = Select(is_bottom, part_y, 1 - part_y);
        const Value share_x = Select(is_right, part_x, 1 - part_x);
        builder.Output(is_nearest_ ? gradient : gradient * share_y * share_x,
                       ComputeType(type));
        TFPLUG_ASSIGN_OR_RETURN(share_, std::move(builder).Build());
      }
    }
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand gradient, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand boxes, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand index, GetView(run, 2));
    TFPLUG_ASSIGN_OR_RETURN(const Ints size, run.GetVector(3));
    Crops crops = {};
    TFPLUG_RETURN_IF_ERROR(CheckGradient(gradient, &crops));
    TFPLUG_RETURN_IF_ERROR(CheckImage(size, &crops));
    TFPLUG_RETURN_IF_ERROR(CheckBoxes(boxes, index, &crops));
    TFPLUG_RETURN_IF_ERROR(CheckMatch(gradient, crops));
    TFPLUG_ASSIGN_OR_RETURN(const Shape shape, ToShape(size));
    TFPLUG_ASSIGN_OR_RETURN(const Operand result, run.AllocateOutput(0, shape));
    if (gradient.num_elements() == 0 || result.num_elements() == 0) {
      return Fill(run, result, 0);
    }
    TFPLUG_ASSIGN_OR_RETURN(const Operand image, AllocateSums(run, result));
    TFPLUG_RETURN_IF_ERROR(Fill(run, image, 0));
    Crops pixels = crops;
    pixels.depth = 1;
    const int64_t n = crops.boxes * crops.crop_height * crops.crop_width;
    TFPLUG_ASSIGN_OR_RETURN(
        const Operand at, run.launcher().Allocate(
                              DataType::kInt64, {crops.boxes, crops.crop_height,
                                                 crops.crop_width, 1}));
    TFPLUG_ASSIGN_OR_RETURN(
        Operand share,
        run.launcher().Allocate(image.type, ir::DimsOf(gradient)));
    for (int corner = 0; corner < (is_nearest_ ? 1 : 4); ++corner) {
      const auto launch = [&](const Expression& expression, const Crops& over,
                              const Operand* input, Operand to) {
        auto inputs = LocationOperands(over, boxes, index);
        inputs.push_back(ir::ScalarOf(DataType::kBool, corner / 2, to));
        inputs.push_back(ir::ScalarOf(DataType::kBool, corner % 2, to));
        if (input != nullptr) inputs.push_back(*input);
        return run.launcher().Map(expression, absl::MakeSpan(inputs),
                                  absl::MakeSpan(&to, 1));
      };
      TFPLUG_RETURN_IF_ERROR(launch(index_, pixels, nullptr, at));
      TFPLUG_RETURN_IF_ERROR(launch(share_, crops, &gradient, share));
      TFPLUG_RETURN_IF_ERROR(run.launcher().Scatter(
          ScatterKind::kAdd, ir::Flat(at),
          Operand::Dense(share.data, share.type, {n, crops.depth}),
          Operand::Dense(
              image.data, image.type,
              {crops.batch * crops.height * crops.width, crops.depth})));
    }
    return Convert(run, image, result);
  }

 private:
  Expression index_, share_;
};

// CropAndResizeGradBoxes: for each of y1, x1, y2, x2 a sum over the box of
// gradient times slope of the image times motion of the pixel.
class CropGradBoxesKernel final : public CropKernel {
 public:
  absl::Status Init(KernelConstruction& construction) override {
    TFPLUG_ASSIGN_OR_RETURN(const DataType type, GetType(construction));
    for (size_t k = 0; k < 4; ++k) {
      ExpressionBuilder builder;
      const Location location(builder);
      const Value gradient = builder.Input(DataType::kFloat);
      const int image = builder.AxisInput(type);
      const Value y = location.y().at, x = location.x().at;
      const Value up = Floor(y), left = Floor(x), down = Ceil(y),
                  right = Ceil(x);
      const Value part_y = y - up, part_x = x - left;
      const auto pixel = [&](Value row, Value column) {
        return location.Element(image, row, column);
      };
      const bool is_y = k % 2 == 0;
      const Value slope =
          is_y ? (pixel(down, left) - pixel(up, left)) * (1 - part_x) +
                     (pixel(down, right) - pixel(up, right)) * part_x
               : (pixel(up, right) - pixel(up, left)) * (1 - part_y) +
                     (pixel(down, right) - pixel(down, left)) * part_y;
      const Value last = is_y ? location.last_row() : location.last_column();
      const Value last_of_crop =
          is_y ? location.last_crop_row() : location.last_crop_column();
      const Value moved =
          (is_y ? location.row() : location.column()) * (last / last_of_crop);
      const Value motion =
          Select(last_of_crop > 0, k < 2 ? last - moved : moved, last * .5);
      builder.Output(Select(location.is_inside(), slope * gradient * motion, 0),
                     DataType::kFloat);
      TFPLUG_ASSIGN_OR_RETURN(sums_[k].map, std::move(builder).Build());
    }
    return absl::OkStatus();
  }

  absl::Status Run(OpRun& run) override {
    TFPLUG_ASSIGN_OR_RETURN(const Operand gradient, GetView(run, 0));
    TFPLUG_ASSIGN_OR_RETURN(const Operand image, GetView(run, 1));
    TFPLUG_ASSIGN_OR_RETURN(const Operand boxes, GetView(run, 2));
    TFPLUG_ASSIGN_OR_RETURN(const Operand index, GetView(run, 3));
    Crops crops = {};
    TFPLUG_RETURN_IF_ERROR(CheckGradient(gradient, &crops));
    TFPLUG_RETURN_IF_ERROR(CheckImage(ir::DimsOf(image), &crops));
    TFPLUG_RETURN_IF_ERROR(CheckBoxes(boxes, index, &crops));
    TFPLUG_RETURN_IF_ERROR(CheckMatch(gradient, crops));
    TFPLUG_ASSIGN_OR_RETURN(const Operand y,
                            run.AllocateOutput(0, {crops.boxes, 4}));
    if (y.num_elements() == 0) return absl::OkStatus();
    if (image.num_elements() == 0) return Fill(run, y, 0);
    for (int64_t k = 0; k < 4; ++k) {
      auto inputs = LocationOperands(crops, boxes, index);
      inputs.push_back(gradient);
      inputs.push_back(AsAxis(image, crops));
      Operand column =
          ir::WithoutDims(ir::Range(y, 1, k, k + 1)).AddDim(crops.boxes, 4);
      TFPLUG_RETURN_IF_ERROR(run.launcher().Reduce(
          sums_[static_cast<size_t>(k)], absl::MakeSpan(inputs),
          absl::MakeSpan(&column, 1)));
    }
    return absl::OkStatus();
  }

 private:
  std::array<Reduction, 4> sums_;
};

}  // namespace op_kernels_internal

inline void CropOps(const Registrar& registrar) {
  using namespace op_kernels_internal;  // NOLINT
  registrar.Add<CropAndResizeKernel>(
      KernelDef("CropAndResize").HostMemory("crop_size"), "T", kNumberTypes);
  registrar.Add<CropGradImageKernel>(
      KernelDef("CropAndResizeGradImage").HostMemory("image_size"), "T",
      kFloatTypes);
  registrar.Add<CropGradBoxesKernel>(KernelDef("CropAndResizeGradBoxes"), "T",
                                     kNumberTypes);
}

}  // namespace tfplug

#pragma GCC visibility pop

#endif  // TFPLUG_OP_KERNELS_CROP_H_
