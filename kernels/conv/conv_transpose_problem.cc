#include "kernels/conv/conv_transpose_problem.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace interp::nn {
namespace {

TransposeAttrs ReadAttrs(AttrReader& reader, ConvAttrs conv) {
  TransposeAttrs attrs;
  attrs.conv = std::move(conv);
  attrs.conv.slots.batch_norm = 5;  // of fused_conv2d_transpose
  attrs.output_size = reader.Ints("output_size");
  attrs.output_padding = reader.Ints("output_padding");
  return attrs;
}
// Sets axis.in, the size of the transposed convolution's output. axis.out is its input.
absl::Status FitOutput(const TransposeAttrs& attrs, absl::Span<const int64_t> wanted, int i,
                       WindowAxis& axis) {
  const int64_t least =
      (axis.out - 1) * axis.stride + axis.extent() - axis.pad_begin - axis.pad_end;
  axis.in = least;
  if (!wanted.empty()) {
    axis.in = wanted[i];
    if (axis.in < least || axis.in >= least + axis.stride) {
      return InvalidArgument("output size ", axis.in, " of spatial dim ", i, " is not in [", least,
                             ",", least + axis.stride, ")");
    }
  } else if (!attrs.output_padding.empty()) {
    const int64_t extra = attrs.output_padding[i];
    if (extra < 0 || extra >= std::max(axis.stride, axis.dilation)) {
      return InvalidArgument("attribute 'output_padding' is ", extra, " for spatial dim ", i,
                             ", expected less than stride or dilation");
    }
    axis.in += extra;
  }
  if (axis.in < 1) return InvalidArgument("spatial dim ", i, " of the output would be ", axis.in);
  return absl::OkStatus();
}

}  // namespace

TransposeAttrs ReadTranspose2d(AttrReader& reader) {
  return ReadAttrs(reader, ReadConv2dAttrs(reader));
}
TransposeAttrs ReadTranspose3d(AttrReader& reader) {
  return ReadAttrs(reader, ReadConv3dAttrs(reader));
}

absl::StatusOr<ConvProblem> ResolveTranspose(const TransposeAttrs& attrs, const Shape& input,
                                             const Shape& filter,
                                             absl::Span<const int64_t> wanted) {
  if ((input.rank() != 4 && input.rank() != 5) || filter.rank() != input.rank()) {
    return InvalidArgument("input 'Filter' has shape ", ToString(filter), " and 'Input' ",
                           ToString(input), ", expected 4 or 5 dims each");
  }
  const ImageView in = ViewImage(input, Layout::kPlain, attrs.conv.channels_last_dims);
  ConvProblem problem;
  problem.batch = in.batch();
  problem.in_channels = in.channels();
  problem.groups = attrs.conv.groups;
  if (filter[0] != in.channels() || filter[0] % problem.groups != 0 || filter.numel() == 0) {
    return InvalidArgument("input 'Filter' has shape ", ToString(filter), ", expected ",
                           in.channels(), " first for 'Input' ", ToString(input),
                           ", a multiple of groups ", problem.groups);
  }
  if (__builtin_mul_overflow(filter[1], problem.groups, &problem.out_channels)) {
    return InvalidArgument("attribute 'groups' is ", problem.groups, ", too large");
  }
  INTERP_ASSIGN_OR_RETURN(
      problem.window,
      ResolveWindow(attrs.conv.window, in.dims_span().subspan(2), filter.dims().subspan(2)));
  const size_t rank = static_cast<size_t>(problem.window.rank);
  if ((!wanted.empty() && wanted.size() != rank) ||
      (!attrs.output_padding.empty() && attrs.output_padding.size() != rank)) {
    return InvalidArgument("output size or output_padding is no list of ", rank, " values");
  }
  for (int i = 0; i < problem.window.rank; ++i) {
    problem.window[i].out = problem.window[i].in;
    INTERP_RETURN_IF_ERROR(FitOutput(attrs, wanted, i, problem.window[i]));
  }
  return problem;
}

Shape TransposeOutputShape(const ConvProblem& problem, bool channels_last_dims) {
  Shape out;
  out.push_back(problem.batch);
  if (!channels_last_dims) out.push_back(problem.out_channels);
  for (int i = 0; i < problem.window.rank; ++i) out.push_back(problem.window[i].in);
  if (channels_last_dims) out.push_back(problem.out_channels);
  return out;
}

}  // namespace interp::nn
