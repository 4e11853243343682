#include <algorithm>
#include <cstdlib>

#include "kernels/tensor/pad.h"
#include "kernels/util/read_choice.h"

namespace interp {
namespace {

constexpr IntSlots kMargins = {.name = "Paddings", .tensor = kPadPaddings};

PadMode ReadMode(AttrReader& reader) {
  return ReadChoice<PadMode>(reader, "mode",
                             {{"constant", PadMode::kConstant},
                              {"reflect", PadMode::kReflect},
                              {"replicate", PadMode::kReplicate},
                              {"edge", PadMode::kReplicate},
                              {"circular", PadMode::kCircular}});
}

}  // namespace

int64_t SourceIndex(PadMode mode, int64_t i, int64_t before, int64_t length) {
  int64_t source = i - before;
  switch (mode) {
    case PadMode::kConstant:
      return source >= 0 && source < length ? source : -1;
    case PadMode::kReflect:
      source = std::max(source, -source);
      return std::min(source, 2 * length - source - 2);
    case PadMode::kReplicate:
      return std::clamp<int64_t>(source, 0, length - 1);
    default:
      return (source % length + length) % length;
  }
}

PadAttrs ReadPad(AttrReader& reader) {
  PadAttrs attrs;
  attrs.paddings = ReadIntListAttr(reader, "paddings");
  attrs.value = reader.Float("pad_value", 0.0f);
  return attrs;
}

absl::StatusOr<Margins> PadMargins(const OpContext& ctx) {
  const IntList& paddings = ctx.attrs<PadAttrs>().paddings;
  const int rank = ctx.input(kPadX).shape.rank();
  if (paddings.size() != 2 * static_cast<size_t>(rank)) {
    return InvalidArgument("'paddings' has ", paddings.size(), " entries for rank ", rank);
  }
  Margins margins;
  for (int d = 0; d < rank; ++d) {
    if (paddings[2 * d] < 0 || paddings[2 * d + 1] < 0) {
      return InvalidArgument("'paddings' has a negative entry for dimension ", d);
    }
    margins.before.push_back(paddings[2 * d]);
    margins.after.push_back(paddings[2 * d + 1]);
  }
  return margins;
}

PadAttrs ReadSpatialPad(AttrReader& reader, int spatial_dims) {
  PadAttrs attrs;
  attrs.paddings = ReadIntListAttr(reader, "paddings");
  attrs.value = reader.Float(spatial_dims == 2 ? "pad_value" : "value", 0.0f);
  attrs.mode = ReadMode(reader);
  const std::string format = reader.String("data_format", spatial_dims == 2 ? "NCHW" : "NCDHW");
  attrs.channels_last = !format.empty() && format.back() == 'C';
  return attrs;
}
absl::StatusOr<Margins> SpatialPadMargins(const OpContext& ctx, int spatial_dims) {
  const PadAttrs& attrs = ctx.attrs<PadAttrs>();
  const int rank = ctx.input(kPadX).shape.rank();
  if (rank != spatial_dims + 2) {
    return InvalidArgument("'X' has shape ", ToString(ctx.input(kPadX).shape), ", expected rank ",
                           spatial_dims + 2);
  }
  INTERP_ASSIGN_OR_RETURN(const IntList paddings, ReadIntList(ctx, kMargins, attrs.paddings));
  if (paddings.size() != 2 * static_cast<size_t>(spatial_dims)) {
    return InvalidArgument("'paddings' has ", paddings.size(), " entries, expected ",
                           2 * spatial_dims);
  }
  Margins margins;
  margins.before.resize(rank, 0);
  margins.after.resize(rank, 0);
  const int first = attrs.channels_last ? 1 : 2;
  for (int i = 0; i < spatial_dims; ++i) {
    // pad2d lists the dimensions from the first, pad3d from the last.
    const int d = first + (spatial_dims == 2 ? i : spatial_dims - 1 - i);
    margins.before[d] = paddings[2 * i];
    margins.after[d] = paddings[2 * i + 1];
  }
  return margins;
}

absl::StatusOr<Shape> PaddedShape(const Shape& x, PadMode mode, const Margins& margins) {
  Shape shape;
  for (int d = 0; d < x.rank(); ++d) {
    const int64_t length = x[d];
    const int64_t before = margins.before[d];
    const int64_t after = margins.after[d];
    INTERP_ASSIGN_OR_RETURN(int64_t padded, CheckedSum(length, before));
    INTERP_ASSIGN_OR_RETURN(padded, CheckedSum(padded, after));
    const bool too_far = mode == PadMode::kReflect && std::max(before, after) >= length;
    const bool no_source = mode != PadMode::kConstant && length == 0;
    if (padded < 0 || ((before != 0 || after != 0) && (too_far || no_source))) {
      return InvalidArgument("dimension ", d, " of 'X' ", ToString(x), " cannot take the margins ",
                             before, " and ", after);
    }
    shape.push_back(padded);
  }
  return shape;
}

}  // namespace interp
