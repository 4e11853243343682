// slice: Out = the part of Input between `starts` and `ends` (exclusive) along `axes`; dimensions
// in `decrease_axis` have length 1 then and are dropped. Bounds are clipped to the tensor.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "core/op_def.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kInput = 0;
constexpr int kOut = 0;
constexpr IntSlots kStarts = {.name = "starts", .tensor = 1, .list = 3};
constexpr IntSlots kEnds = {.name = "ends", .tensor = 2, .list = 4};

struct SliceAttrs {
  IntList axes;
  IntList starts;
  IntList ends;
  IntList decrease_axis;
};

SliceAttrs ReadSliceAttrs(AttrReader& reader) {
  return {ReadIntListAttr(reader, "axes"), ReadIntListAttr(reader, "starts"),
          ReadIntListAttr(reader, "ends"), ReadIntListAttr(reader, "decrease_axis")};
}

// The slice with everything resolved, before dimensions are dropped.
struct Window {
  Shape start;  // first index per dimension of Input
  Shape size;
};

absl::Status ClipBounds(int64_t length, int64_t& start, int64_t& end) {
  const auto clip = [length](int64_t bound) {
    return std::clamp<int64_t>(bound < 0 ? bound + length : bound, 0, length);
  };
  start = clip(start);
  end = clip(end);
  if (end >= start) return absl::OkStatus();
  return InvalidArgument("slice ends at ", end, ", before its start ", start);
}

absl::StatusOr<Window> FindWindow(const OpContext& ctx) {
  const SliceAttrs& attrs = ctx.attrs<SliceAttrs>();
  const Shape& shape = ctx.input(kInput).shape;
  INTERP_ASSIGN_OR_RETURN(const IntList starts, ReadIntList(ctx, kStarts, attrs.starts));
  INTERP_ASSIGN_OR_RETURN(const IntList ends, ReadIntList(ctx, kEnds, attrs.ends));
  if (starts.size() != attrs.axes.size() || ends.size() != attrs.axes.size()) {
    return InvalidArgument("slice has ", attrs.axes.size(), " axes, ", starts.size(),
                           " starts and ", ends.size(), " ends");
  }
  Window window = {.start = {}, .size = shape};
  window.start.resize(shape.rank(), 0);
  for (size_t i = 0; i < attrs.axes.size(); ++i) {
    INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(attrs.axes[i], shape.rank(), "axes"));
    int64_t start = starts[i];
    int64_t end = ends[i];
    // x[-1] arrives as the bounds -1 and 0 of a dropped dimension.
    if (start == -1 && end == 0 && absl::c_linear_search(attrs.decrease_axis, attrs.axes[i])) {
      end = shape[axis];
    }
    INTERP_RETURN_IF_ERROR(ClipBounds(shape[axis], start, end));
    window.start[axis] = start;
    window.size[axis] = end - start;
  }
  return window;
}

absl::Status InferSlice(InferContext& ctx) {
  const SliceAttrs& attrs = ctx.attrs<SliceAttrs>();
  if (ctx.input(kInput).dtype == DType::kUndefined) {
    return Unimplemented("'Input' is no tensor (slices of tensor arrays are not supported)");
  }
  INTERP_ASSIGN_OR_RETURN(const Window window, FindWindow(ctx));
  INTERP_ASSIGN_OR_RETURN(const Shape shape, DropUnitDims(window.size, attrs.decrease_axis));
  ctx.SetShape(kOut, shape);
  const bool cuts_rows = absl::c_linear_search(attrs.axes, 0);
  if (!cuts_rows) ShareLod(ctx.input(kInput), ctx.output(kOut));
  return absl::OkStatus();
}

absl::Status Slice(KernelContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  Tensor& out = ctx.output(kOut);
  INTERP_ASSIGN_OR_RETURN(const Window window, FindWindow(ctx));
  const size_t element_bytes = SizeOf(input.dtype);
  const Strides from = StridesOf(input);
  const Strides to = StridesOf(window.size, out.layout);
  int64_t offset = 0;
  CopyDims dims;
  for (int i = 0; i < window.size.rank(); ++i) {
    offset += window.start[i] * from[i];
    dims.push_back({window.size[i], from[i], to[i]});
  }
  CopyStrided(ctx.num_threads(), element_bytes, dims, At(input.raw_data(), offset, element_bytes),
              out.mutable_raw_data());
  return absl::OkStatus();
}

constexpr int kBound = kOptional | kAnyDType | kValueInInfer;

INTERP_REGISTER_OP(OpDef{
    .type = "slice",
    .inputs = {{"Input"},
               {"StartsTensor", kBound},
               {"EndsTensor", kBound},
               {"StartsTensorList", kBound | kVariadic},
               {"EndsTensorList", kBound | kVariadic}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SliceAttrs, ReadSliceAttrs>,
    .infer = InferSlice,
    .kernels = {{DType::kUndefined, Slice}},
    .layout = LayoutRule::kFollows,
});

}  // namespace
}  // namespace interp
