#include "kernels/product/int8_weights.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"

namespace interp::nn {
namespace {

QuantGrid ReadGrid(AttrReader& reader, absl::string_view bits_name, absl::string_view round_name) {
  const int32_t bits = reader.Int(bits_name, 8);
  if (bits < 2 || bits > 8) {
    reader.Fail(absl::StrCat("attribute '", bits_name, "' is ", bits, ", expected 2 to 8"));
    return {};
  }
  return {.bins = BinsOf(bits), .round_half_even = reader.Int(round_name, 0) == 0};
}

// The scale of each channel; of one channel where it is the same for all.
absl::StatusOr<std::vector<float>> ScalesOf(const Int8Attrs& attrs, const ChannelView& view,
                                            const std::vector<float>& weights,
                                            const Tensor* scale) {
  if (scale != nullptr) {
    if (scale->numel() != 1 && scale->numel() != view.channels) {
      return InvalidArgument("input 'FilterScale' is ", DescribeType(*scale),
                             ", expected one element or ", view.channels);
    }
    return std::vector<float>(scale->data<float>(), scale->data<float>() + scale->numel());
  }
  if (!attrs.quantize_weights) return std::vector<float>{1};
  const int64_t count = static_cast<int64_t>(weights.size());
  const ChannelView scaled = attrs.per_channel ? view : ChannelView{.inner = count};
  std::vector<float> scales(static_cast<size_t>(scaled.channels));
  AbsMax(/*num_threads=*/1, scaled, weights.data(), scales.data());
  return scales;
}

bool FitsInt8(float value) { return value >= -128 && value <= 127 && value == std::trunc(value); }

// `grid` channel by channel.
template <typename T>
std::vector<T> ByChannel(const ChannelView& view, const std::vector<float>& grid) {
  std::vector<T> values(grid.size());
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t c = 0; c < view.channels; ++c) {
      for (int64_t i = 0; i < view.inner; ++i) {
        values[(c * view.outer + o) * view.inner + i] =
            static_cast<T>(grid[(o * view.channels + c) * view.inner + i]);
      }
    }
  }
  return values;
}

template <typename T>
void ClearChannel(size_t channel, size_t channels, std::vector<T>& values) {
  const size_t count = values.size() / channels;
  std::fill_n(values.begin() + static_cast<int64_t>(channel * count), count, T{0});
}

}  // namespace

Int8Attrs ReadInt8Attrs(AttrReader& reader) {
  Int8Attrs attrs;
  attrs.range = reader.Float("range", 1);
  if (!(attrs.range > 0) || !std::isfinite(attrs.range)) {
    reader.Fail(absl::StrCat("attribute 'range' is ", attrs.range, ", expected more than 0"));
  }
  attrs.quantize_weights = reader.Bool("quantize_weights", false);
  attrs.per_channel = reader.Bool("weights_per_channel", true);
  attrs.weight_grid = ReadGrid(reader, "weight_bits", "weight_round_type");
  attrs.out_grid = ReadGrid(reader, "out_bits", "out_round_type");
  return attrs;
}

absl::StatusOr<Int8Weights> QuantizeWeights(const Int8Attrs& attrs, const ChannelView& view,
                                            const std::vector<float>& weights,
                                            const Tensor* scale) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<float> scales, ScalesOf(attrs, view, weights, scale));
  std::vector<float> grid = weights;
  if (attrs.quantize_weights) {
    const bool by_channel = std::ssize(scales) == view.channels;
    const int64_t count = static_cast<int64_t>(weights.size());
    const ChannelView scaled = by_channel ? view : ChannelView{.inner = count};
    Quantize(/*num_threads=*/1, scaled, attrs.weight_grid, weights.data(), scales.data(),
             grid.data());
  }
  Int8Weights result;
  if (absl::c_all_of(grid, FitsInt8)) {
    result.values = ByChannel<int8_t>(view, grid);
  } else {
    result.real_values = ByChannel<float>(view, grid);
  }
  result.factors.resize(static_cast<size_t>(view.channels));
  for (int64_t c = 0; c < view.channels; ++c) {
    result.factors[c] = scales[scales.size() == 1 ? 0 : c] / attrs.range;
  }
  return result;
}

void NeutralizeZeroFactors(Int8Weights& weights) {
  const size_t channels = weights.factors.size();
  for (size_t c = 0; c < channels; ++c) {
    if (weights.factors[c] != 0) continue;
    weights.factors[c] = 1;
    ClearChannel(c, channels, weights.values);
    ClearChannel(c, channels, weights.real_values);
  }
}

absl::Status CheckInt8Scale(const Tensor* scale, absl::string_view name) {
  const bool good = scale == nullptr || (scale->dtype == DType::kFloat32 && scale->numel() == 1);
  if (good) return absl::OkStatus();
  return InvalidArgument("input '", name, "' is ", DescribeType(*scale),
                         ", expected one element of float32");
}

}  // namespace interp::nn
