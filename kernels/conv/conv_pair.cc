#include "kernels/conv/conv_pair.h"

#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace interp::nn {
namespace {

// Inputs from Filter to PostShift, of the pointwise convolution and then of the depthwise one.
constexpr absl::string_view kFolded[] = {"Filter",    "Bias",       "BnScale",  "BnBias",
                                         "BnMean",    "BnVariance", "PreScale", "PreShift",
                                         "PostScale", "PostShift"};
constexpr int kFoldedCount = std::size(kFolded);
constexpr int kInput = 0;

ConvSlots SlotsFrom(int first) {
  return {.filter = first,
          .bias = first + 1,
          .batch_norm = first + 2,
          .pre_affine = first + 6,
          .post_affine = first + 8};
}

// The inputs and attributes of one of the two, under the names of fused_conv2d.
Op PartOf(const Op& op, bool depthwise) {
  Op part;
  const auto take = [depthwise](absl::string_view prefix, std::string& name) {
    if (absl::StartsWith(name, prefix) != depthwise) return false;
    if (depthwise) name.erase(0, prefix.size());
    return true;
  };
  for (Slot slot : op.inputs) {
    if (take("Depthwise", slot.name)) part.inputs.push_back(std::move(slot));
  }
  for (Attr attr : op.attrs) {
    if (take("depthwise_", attr.name)) part.attrs.push_back(std::move(attr));
  }
  return part;
}

ConvAttrs ReadPart(AttrReader& reader, bool depthwise) {
  const Op part = PartOf(reader.op(), depthwise);
  AttrReader own(part);
  ConvAttrs attrs = ReadConv2dAttrs(own);
  attrs.slots = SlotsFrom(depthwise ? 1 + kFoldedCount : 1);
  if (attrs.fuse_residual) own.Fail("a residual, which is not supported here");
  if (!own.status().ok()) {
    reader.Fail(absl::StrCat(depthwise ? "depthwise: " : "pointwise: ", own.status().message()));
  }
  return attrs;
}

}  // namespace

PairAttrs ReadPairAttrs(AttrReader& reader) {
  PairAttrs attrs = {ReadPart(reader, /*depthwise=*/false), ReadPart(reader, /*depthwise=*/true)};
  if (attrs.pointwise.channels_last_dims != attrs.depthwise.channels_last_dims) {
    reader.Fail("the two convolutions differ in 'data_format'");
  }
  return attrs;
}

namespace {

bool IsPointwise(const ConvProblem& p) {
  const auto is_one = [](const WindowAxis& axis) {
    return axis.kernel == 1 && axis.stride == 1 && axis.pad_begin == 0 && axis.pad_end == 0;
  };
  return p.window.rank == 2 && p.groups == 1 && is_one(p.window[0]) && is_one(p.window[1]);
}

}  // namespace

absl::StatusOr<PairProblem> ResolvePair(const OpContext& ctx, const PairAttrs& attrs) {
  const Shape& input = ctx.input(kInput).shape;
  PairProblem pair;
  INTERP_ASSIGN_OR_RETURN(
      pair.pointwise,
      ResolveConv(attrs.pointwise, input, ctx.input(attrs.pointwise.slots.filter).shape));
  if (!IsPointwise(pair.pointwise)) {
    return InvalidArgument("input 'Filter' is ", DescribeType(ctx.input(1)),
                           ", expected a convolution of 1 x 1 with stride 1 and no padding");
  }
  const Shape between = ConvOutputShape(pair.pointwise, attrs.pointwise.channels_last_dims);
  INTERP_ASSIGN_OR_RETURN(
      pair.depthwise,
      ResolveConv(attrs.depthwise, between, ctx.input(attrs.depthwise.slots.filter).shape));
  const ConvProblem& depthwise = pair.depthwise;
  if (!depthwise.depthwise() || depthwise.out_channels != depthwise.in_channels) {
    return InvalidArgument("input 'DepthwiseFilter' is ",
                           DescribeType(ctx.input(attrs.depthwise.slots.filter)),
                           ", expected one of each of ", depthwise.in_channels, " channels");
  }
  return pair;
}

std::vector<SlotDef> PairInputs() {
  static const auto& names = *new std::vector<std::string>([] {
    std::vector<std::string> all;
    for (const absl::string_view prefix : {"", "Depthwise"}) {
      for (const absl::string_view name : kFolded) all.push_back(absl::StrCat(prefix, name));
    }
    return all;
  }());
  std::vector<SlotDef> inputs = {{"Input"}};
  for (const std::string& name : names) {
    const bool filter = absl::EndsWith(name, "Filter");
    inputs.push_back({name, filter ? kAnyLayout | kMayBeUnaligned : kOptional});
  }
  return inputs;
}

}  // namespace interp::nn
