// Layers of ProgramBuilder over images and rows.
#include <cmath>

#include "core/layers/layer_helper.h"

namespace interp {
namespace {

// Of both dims of an image.
absl::StatusOr<Dims> WindowCounts(const Dims& x, const Size2d& size, const Size2d& stride,
                                  const Size2d& padding, const Size2d& dilation, bool ceil,
                                  absl::string_view algorithm) {
  INTERP_ASSIGN_OR_RETURN(
      const int64_t height,
      WindowCount(x[2], {size.height, stride.height, padding.height, dilation.height, ceil},
                  algorithm));
  INTERP_ASSIGN_OR_RETURN(
      const int64_t width,
      WindowCount(x[3], {size.width, stride.width, padding.width, dilation.width, ceil},
                  algorithm));
  return Dims{height, width};
}

// Of a pooling whose result has a given size.
absl::StatusOr<Dims> WholeCounts(const Size2d& size) {
  INTERP_RETURN_IF_ERROR(WindowCount(-1, {.size = size.height}, "VALID").status());
  INTERP_RETURN_IF_ERROR(WindowCount(-1, {.size = size.width}, "VALID").status());
  return Dims{size.height, size.width};
}

std::vector<int32_t> AsInts(const Size2d& size) {
  return {static_cast<int32_t>(size.height), static_cast<int32_t>(size.width)};
}

std::string ShapeIs(const Var& var) { return absl::StrCat("the input is ", DimsText(var.dims)); }

bool CheckImage(LayerHelper& layer, const Var& x) {
  return layer.Check(x.dims.size() == 4 && x.dims[1] > 0,
                     absl::StrCat(ShapeIs(x), ", expected [batch, channels, height, width]"));
}

bool CheckFloats(LayerHelper& layer, const Var& x) {
  return layer.Check(IsFloating(x.dtype),
                     absl::StrCat("the input is of ", Name(x.dtype), ", expected floats"));
}

// Of the parameters and statistics of a normalization, as paddle.static.nn.batch_norm has them.
DType StatisticsOf(DType x) {
  return x == DType::kFloat16 || x == DType::kBFloat16 ? DType::kFloat32 : x;
}

// A parameter of batch norm that the op itself updates.
Value MovingStatistic(LayerHelper& layer, const Var& x, const std::string& name, float start) {
  const ParamOptions fixed{.name = name, .trainable = false};
  return layer.Parameter("w", {x.dims[1]}, StatisticsOf(x.dtype), fixed,
                         Initializer::Constant(start));
}

}  // namespace

Value ProgramBuilder::Fc(Value x, int64_t size, const FcOptions& options) {
  LayerHelper layer(*this, "fc", {x});
  const Var in = Get(x);
  const int rank = static_cast<int>(in.dims.size());
  const int keep = options.num_flatten_dims;
  if (!layer.ok() || !CheckFloats(layer, in)) return {};
  if (!layer.Check(size > 0, absl::StrCat("size is ", size)) ||
      !layer.Check(keep > 0 && keep < rank,
                   absl::StrCat("num_flatten_dims is ", keep, " for an input of rank ", rank))) {
    return {};
  }
  const int64_t width = ProductOf(in.dims, keep, rank);
  if (!layer.Check(width > 0, absl::StrCat(ShapeIs(in), ", whose width is not known"))) return {};
  const Value w =
      layer.Parameter("w", {width, size}, in.dtype, options.weight, Initializer::XavierUniform());
  Dims dims(in.dims.begin(), in.dims.begin() + keep);
  dims.push_back(size);
  const Value product = layer.Temporary(std::move(dims), in.dtype);
  AddOp("mul", {{"X", {x}}, {"Y", {w}}}, {{"Out", {product}}},
        {{"x_num_col_dims", keep}, {"y_num_col_dims", 1}});
  return layer.Activate(layer.AddBias(product, keep, options.bias), options.act);
}

Value ProgramBuilder::Conv2d(Value x, const Conv2dOptions& options) {
  LayerHelper layer(*this, "conv2d", {x});
  const Var in = Get(x);
  if (!layer.ok() || !CheckFloats(layer, in) || !CheckImage(layer, in)) return {};
  const int64_t channels = in.dims[1];
  const int64_t groups = options.groups;
  if (!layer.Check(options.filters > 0, absl::StrCat("filters is ", options.filters)) ||
      !layer.Check(groups > 0 && channels % groups == 0 && options.filters % groups == 0,
                   absl::StrCat("groups is ", groups, " for ", channels, " channels and ",
                                options.filters, " filters"))) {
    return {};
  }
  const absl::StatusOr<Dims> counts =
      WindowCounts(in.dims, options.size, options.stride, options.padding, options.dilation,
                   /*ceil=*/false, options.padding_algorithm);
  if (!layer.Check(counts.status())) return {};
  const double fan_in = static_cast<double>(channels) * static_cast<double>(options.size.height) *
                        static_cast<double>(options.size.width);
  const Value filter = layer.Parameter(
      "w", {options.filters, channels / groups, options.size.height, options.size.width}, in.dtype,
      options.weight, Initializer::Normal(0, static_cast<float>(std::sqrt(2.0 / fan_in))));
  const Value out =
      layer.Temporary({in.dims[0], options.filters, (*counts)[0], (*counts)[1]}, in.dtype);
  AddOp("conv2d", {{"Input", {x}}, {"Filter", {filter}}}, {{"Output", {out}}},
        {{"strides", AsInts(options.stride)},
         {"paddings", AsInts(options.padding)},
         {"dilations", AsInts(options.dilation)},
         {"groups", static_cast<int32_t>(groups)},
         {"padding_algorithm", std::string(options.padding_algorithm)},
         {"data_format", std::string("NCHW")}});
  return layer.Activate(layer.AddBias(out, 1, options.bias), options.act);
}

Value ProgramBuilder::Pool2d(Value x, const Pool2dOptions& options) {
  LayerHelper layer(*this, "pool2d", {x});
  const Var in = Get(x);
  if (!layer.ok() || !CheckFloats(layer, in) || !CheckImage(layer, in)) return {};
  const bool whole = options.global || options.adaptive;  // strides and padding mean nothing
  const Size2d size = options.global ? Size2d(1) : options.size;
  const Size2d own_stride = options.stride.height == 0 ? size : options.stride;
  const Size2d stride = whole ? Size2d(1) : own_stride;
  const Size2d padding = whole ? Size2d(0) : options.padding;
  const absl::StatusOr<Dims> counts =
      whole ? WholeCounts(size)
            : WindowCounts(in.dims, size, stride, padding, 1, options.ceil_mode,
                           options.padding_algorithm);
  if (!layer.Check(options.type == "max" || options.type == "avg",
                   absl::StrCat("type is '", options.type, "', expected max or avg")) ||
      !layer.Check(counts.status())) {
    return {};
  }
  const Value out = layer.Temporary({in.dims[0], in.dims[1], (*counts)[0], (*counts)[1]}, in.dtype);
  AddOp("pool2d", {{"X", {x}}}, {{"Out", {out}}},
        {{"pooling_type", std::string(options.type)},
         {"ksize", AsInts(size)},
         {"adaptive", options.adaptive},
         {"global_pooling", options.global},
         {"strides", AsInts(stride)},
         {"paddings", AsInts(padding)},
         {"padding_algorithm", std::string(options.padding_algorithm)},
         {"ceil_mode", options.ceil_mode},
         {"exclusive", options.exclusive},
         {"data_format", std::string("NCHW")}});
  return out;
}

Value ProgramBuilder::BatchNorm(Value x, const BatchNormOptions& options) {
  LayerHelper layer(*this, "batch_norm", {x});
  const Var in = Get(x);
  if (!layer.ok() || !CheckFloats(layer, in)) return {};
  if (!layer.Check(in.dims.size() >= 2 && in.dims[1] > 0,
                   absl::StrCat(ShapeIs(in), ", expected [batch, channels, ...]"))) {
    return {};
  }
  const Dims channels = {in.dims[1]};
  const DType dtype = StatisticsOf(in.dtype);
  const Value scale =
      layer.Parameter("w", channels, dtype, options.scale, Initializer::Constant(1));
  const Value bias = layer.Parameter("b", channels, dtype, options.bias, Initializer::Constant(0));
  const Value mean = MovingStatistic(layer, in, options.moving_mean_name, 0);
  const Value variance = MovingStatistic(layer, in, options.moving_variance_name, 1);
  const Value saved_mean = layer.Constant(channels, dtype);
  const Value saved_variance = layer.Constant(channels, dtype);
  std::vector<Value> reserve;
  if (!is_test()) reserve.push_back(layer.Constant({-1}, in.dtype));
  const Value out = layer.Temporary(in.dims, in.dtype);
  AddOp("batch_norm",
        {{"X", {x}},
         {"Scale", {scale}},
         {"Bias", {bias}},
         {"Mean", {mean}},
         {"Variance", {variance}}},
        {{"Y", {out}},
         {"MeanOut", {mean}},
         {"VarianceOut", {variance}},
         {"SavedMean", {saved_mean}},
         {"SavedVariance", {saved_variance}},
         {"ReserveSpace", reserve}},
        {{"momentum", options.momentum},
         {"epsilon", options.epsilon},
         {"is_test", is_test()},
         {"data_layout", std::string("NCHW")},
         {"use_global_stats", options.use_global_stats},
         {"trainable_statistics", false}});
  return layer.Activate(out, options.act);
}

Value ProgramBuilder::LayerNorm(Value x, const LayerNormOptions& options) {
  LayerHelper layer(*this, "layer_norm", {x});
  const Var in = Get(x);
  const int rank = static_cast<int>(in.dims.size());
  const int axis = options.begin_norm_axis;
  if (!layer.ok() || !CheckFloats(layer, in)) return {};
  if (!layer.Check(axis > 0 && axis < rank,
                   absl::StrCat("begin_norm_axis is ", axis, " for an input of rank ", rank))) {
    return {};
  }
  const int64_t width = ProductOf(in.dims, axis, rank);
  if (!layer.Check(width > 0, absl::StrCat(ShapeIs(in), ", whose width is not known"))) return {};
  const DType dtype = StatisticsOf(in.dtype);
  const Value scale = layer.Parameter("w", {width}, dtype, options.scale, Initializer::Constant(1));
  const Value bias = layer.Parameter("b", {width}, dtype, options.bias, Initializer::Constant(0));
  const Dims rows(in.dims.begin(), in.dims.begin() + axis);
  const Value mean = layer.Constant(rows, dtype);
  const Value variance = layer.Constant(rows, dtype);
  const Value out = layer.Temporary(in.dims, in.dtype);
  AddOp("layer_norm", {{"X", {x}}, {"Scale", {scale}}, {"Bias", {bias}}},
        {{"Y", {out}}, {"Mean", {mean}}, {"Variance", {variance}}},
        {{"epsilon", options.epsilon}, {"begin_norm_axis", axis}});
  return layer.Activate(out, options.act);
}

Value ProgramBuilder::Dropout(Value x, float probability) {
  LayerHelper layer(*this, "dropout", {x});
  const Var in = Get(x);
  if (!layer.ok() || !CheckFloats(layer, in)) return {};
  if (!layer.Check(probability >= 0 && probability <= 1,
                   absl::StrCat("the probability is ", probability, ", expected 0 to 1"))) {
    return {};
  }
  const Value out = layer.Temporary(in.dims, in.dtype);
  const Value mask = layer.Constant(in.dims, DType::kUInt8);
  AddOp("dropout", {{"X", {x}}}, {{"Out", {out}}, {"Mask", {mask}}},
        {{"dropout_prob", probability},
         {"is_test", is_test()},
         {"fix_seed", false},
         {"seed", 0},
         {"dropout_implementation", std::string("upscale_in_train")}});
  return out;
}

}  // namespace interp
