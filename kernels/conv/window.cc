#include "kernels/conv/window.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_join.h"
#include "kernels/util/read_choice.h"

namespace interp::nn {
namespace {

constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();

// Checks a list: `count` values of at least `least`, all fit into 32 bits, so that the
// arithmetic on them cannot overflow 64.
absl::Status CheckList(absl::string_view name, absl::Span<const int64_t> list, size_t count,
                       int64_t least) {
  if (list.size() != count) {
    return InvalidArgument(name, " [", absl::StrJoin(list, ","), "], expected ", count, " values");
  }
  for (const int64_t v : list) {
    if (v < least || v > kLimit) {
      return InvalidArgument(name, " [", absl::StrJoin(list, ","), "], expected values from ",
                             least, " to ", kLimit);
    }
  }
  return absl::OkStatus();
}

void PadSame(WindowAxis& axis) {
  axis.dilation = 1;
  const int64_t out = (axis.in + axis.stride - 1) / axis.stride;
  const int64_t pad = std::max<int64_t>((out - 1) * axis.stride + axis.kernel - axis.in, 0);
  axis.pad_begin = pad / 2;
  axis.pad_end = pad - pad / 2;
}

}  // namespace

WindowAttrs ReadWindow(AttrReader& reader, int spatial_rank, bool dilations) {
  WindowAttrs attrs;
  attrs.strides = reader.Ints("strides", std::vector<int64_t>(spatial_rank, 1));
  attrs.paddings = reader.Ints("paddings", std::vector<int64_t>(spatial_rank, 0));
  if (dilations) attrs.dilations = reader.Ints("dilations", std::vector<int64_t>(spatial_rank, 1));
  attrs.padding = ReadChoice<PaddingAlgorithm>(reader, "padding_algorithm",
                                               {{"EXPLICIT", PaddingAlgorithm::kExplicit},
                                                {"SAME", PaddingAlgorithm::kSame},
                                                {"VALID", PaddingAlgorithm::kValid}});
  return attrs;
}

OutputRange ValidOutputs(const WindowAxis& axis, int64_t k) {
  const int64_t offset = k * axis.dilation - axis.pad_begin;  // input = out * stride + offset
  const int64_t begin = offset >= 0 ? 0 : (-offset + axis.stride - 1) / axis.stride;
  const int64_t end =
      axis.in - offset <= 0 ? 0 : (axis.in - offset + axis.stride - 1) / axis.stride;
  return {std::min(begin, axis.out), std::min(end, axis.out)};
}

Taps TapsOf(const WindowAxis& axis) {
  const auto meets = [&](int64_t k) {
    const OutputRange range = ValidOutputs(axis, k);
    return range.begin < range.end;
  };
  Taps taps = {.first = 0, .count = axis.kernel};
  while (taps.count > 1 && !meets(taps.first)) ++taps.first, --taps.count;
  while (taps.count > 1 && !meets(taps.first + taps.count - 1)) --taps.count;
  taps.all = taps.count == axis.kernel;
  return taps;
}

absl::StatusOr<Window> ResolveWindow(const WindowAttrs& attrs, absl::Span<const int64_t> in,
                                     absl::Span<const int64_t> kernel) {
  const size_t rank = in.size();
  if (rank < 1 || rank > kMaxSpatialRank) {
    return InvalidArgument("a window over ", rank, " spatial dims, expected 1 to 3");
  }
  const bool both_ends = attrs.paddings.size() == 2 * rank;
  INTERP_RETURN_IF_ERROR(CheckList("strides", attrs.strides, rank, 1));
  INTERP_RETURN_IF_ERROR(CheckList("paddings", attrs.paddings, both_ends ? 2 * rank : rank, 0));
  if (!attrs.dilations.empty()) {
    INTERP_RETURN_IF_ERROR(CheckList("dilations", attrs.dilations, rank, 1));
  }
  INTERP_RETURN_IF_ERROR(CheckList("kernel size", kernel, rank, 1));
  INTERP_RETURN_IF_ERROR(CheckList("spatial dims", in, rank, 0));
  Window window;
  window.rank = static_cast<int>(rank);
  for (size_t i = 0; i < rank; ++i) {
    WindowAxis& axis = window.axes[i];
    axis.in = in[i];
    axis.kernel = kernel[i];
    axis.stride = attrs.strides[i];
    axis.dilation = attrs.dilations.empty() ? 1 : attrs.dilations[i];
    if (attrs.padding == PaddingAlgorithm::kSame) {
      PadSame(axis);
    } else if (attrs.padding == PaddingAlgorithm::kExplicit) {
      axis.pad_begin = attrs.paddings[both_ends ? 2 * i : i];
      axis.pad_end = attrs.paddings[both_ends ? 2 * i + 1 : i];
    }
  }
  return window;
}

absl::Status FitWindow(Window& window, bool ceil_mode) {
  for (int i = 0; i < window.rank; ++i) {
    WindowAxis& axis = window[i];
    const int64_t room = axis.in + axis.pad_begin + axis.pad_end - axis.extent();
    // Rounds towards zero as Paddle does: a window that sticks out by less than a stride fits once.
    axis.out = (room + (ceil_mode ? axis.stride - 1 : 0)) / axis.stride + 1;
    if (axis.out < 1) {
      return InvalidArgument("spatial dim ", i, " is ", axis.in, " with padding ", axis.pad_begin,
                             "+", axis.pad_end, ", smaller than the window of ", axis.extent());
    }
  }
  return absl::OkStatus();
}

}  // namespace interp::nn
