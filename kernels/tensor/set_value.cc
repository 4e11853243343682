// set_value: Out = Input with Input[starts:ends:steps along `axes`] replaced by a value, which is
// broadcast to that part. Dimensions in `decrease_axes` are indexed, and `none_axes` are new
// dimensions of length 1, as in x[2, :, None] = value. The value is ValueTensor, or attributes.
#include <algorithm>
#include <cstring>

#include "absl/algorithm/container.h"
#include "core/op_def.h"
#include "kernels/util/copy.h"
#include "kernels/util/scalar_bytes.h"
#include "kernels/util/shape_args.h"
#include "kernels/util/strided_copy.h"

namespace interp {
namespace {

constexpr int kInput = 0;
constexpr int kValueTensor = 1;
constexpr int kOut = 0;
constexpr IntSlots kStarts = {.name = "starts", .tensor = -1, .list = 2};
constexpr IntSlots kEnds = {.name = "ends", .tensor = -1, .list = 3};
constexpr IntSlots kSteps = {.name = "steps", .tensor = -1, .list = 4};

struct SetValueAttrs {
  IntList axes;
  IntList starts;
  IntList ends;
  IntList steps;
  IntList decrease_axes;
  IntList none_axes;
  // The value where there is no ValueTensor; one of the lists, the other is empty.
  Shape shape;
  std::vector<double> floats;
  std::vector<int64_t> integers;
};

// Newer programs write `values`; before, every dtype had a list of its own.
void ReadValues(AttrReader& reader, SetValueAttrs& attrs) {
  const bool floating = IsFloating(reader.Type("dtype", DType::kFloat32));
  for (const char* name : {"fp32_values", "fp64_values", "fp16_values"}) {
    if (attrs.floats.empty()) attrs.floats = reader.Doubles(name);
  }
  for (const char* name : {"int32_values", "int64_values", "bool_values"}) {
    if (attrs.floats.empty() && attrs.integers.empty()) attrs.integers = reader.Ints(name);
  }
  if (!attrs.floats.empty() || !attrs.integers.empty()) return;
  if (floating) {
    attrs.floats = reader.Doubles("values");
  } else {
    attrs.integers = reader.Ints("values");
  }
}

SetValueAttrs ReadSetValueAttrs(AttrReader& reader) {
  SetValueAttrs attrs;
  attrs.axes = ReadIntListAttr(reader, "axes");
  attrs.starts = ReadIntListAttr(reader, "starts");
  attrs.ends = ReadIntListAttr(reader, "ends");
  attrs.steps = ReadIntListAttr(reader, "steps");
  attrs.decrease_axes = ReadIntListAttr(reader, "decrease_axes");
  attrs.none_axes = ReadIntListAttr(reader, "none_axes");
  ReadValues(reader, attrs);
  const std::vector<int64_t> shape = reader.Ints("shape");
  if (shape.size() > kMaxRank) {
    reader.Fail(absl::StrCat("attribute 'shape' has ", shape.size(), " dims, at most ", kMaxRank));
    return attrs;
  }
  attrs.shape = Shape(shape);
  const std::optional<int64_t> wanted = attrs.shape.CheckedNumel();
  const size_t count = attrs.floats.size() + attrs.integers.size();
  if (count != 0 && (!wanted.has_value() || static_cast<size_t>(*wanted) != count)) {
    reader.Fail(
        absl::StrCat("attributes list ", count, " values for shape ", ToString(attrs.shape)));
  }
  return attrs;
}

absl::Status InferSetValue(InferContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  const SetValueAttrs& attrs = ctx.attrs<SetValueAttrs>();
  if (input.shape.rank() == 0) return InvalidArgument("input 'Input' has rank 0");
  if (!ctx.has_input(kValueTensor) && attrs.floats.empty() && attrs.integers.empty()) {
    return InvalidArgument("there is no 'ValueTensor' and no attribute with values");
  }
  ctx.ShareShape(kInput, kOut);
  return absl::OkStatus();
}

// The part of a dimension that is written: `count` indices, `step` apart, ascending.
struct Range {
  int64_t first = 0;
  int64_t step = 1;
  int64_t count = 0;
  bool reversed = false;  // the value runs from the last index to the first
};

absl::StatusOr<Range> ResolveRange(int64_t start, int64_t end, int64_t step, int64_t length) {
  if (step == 0) return InvalidArgument("attribute 'steps' has a 0");
  if (length == 0) return Range{};
  const bool forward = step > 0;
  start = std::clamp<int64_t>(start < 0 ? start + length : start, 0, forward ? length : length - 1);
  // Backwards -1 stands before the first index; from -2 on the end counts from the back.
  if (forward) {
    end = std::clamp<int64_t>(end < 0 ? end + length : end, 0, length);
  } else {
    end = std::clamp<int64_t>(end < -1 ? end + length : end, -1, length);
  }
  if (forward ? end < start : start < end) {
    return InvalidArgument("a part from ", start, " to ", end, " with step ", step, " is no part");
  }
  const int64_t distance = forward ? end - start : start - end;
  if (distance == 0) return Range{};
  const int64_t last = distance - 1;
  // A step beyond the part takes one index; so does the smallest integer, which has no negative.
  const int64_t size = step < -last ? last + 1 : std::min(forward ? step : -step, last + 1);
  const int64_t count = last / size + 1;
  return Range{forward ? start : start - (count - 1) * size, size, count, !forward};
}

// What is written: by dimension of Input.
absl::StatusOr<absl::InlinedVector<Range, kMaxRank>> ResolveRanges(const OpContext& ctx) {
  const SetValueAttrs& attrs = ctx.attrs<SetValueAttrs>();
  const Shape& shape = ctx.input(kInput).shape;
  INTERP_ASSIGN_OR_RETURN(const IntList starts, ReadIntList(ctx, kStarts, attrs.starts));
  INTERP_ASSIGN_OR_RETURN(const IntList ends, ReadIntList(ctx, kEnds, attrs.ends));
  INTERP_ASSIGN_OR_RETURN(const IntList steps, ReadIntList(ctx, kSteps, attrs.steps));
  const size_t count = attrs.axes.size();
  if (starts.size() != count || ends.size() != count || steps.size() != count) {
    return InvalidArgument("set_value has ", count, " axes, ", starts.size(), " starts, ",
                           ends.size(), " ends and ", steps.size(), " steps");
  }
  absl::InlinedVector<Range, kMaxRank> ranges;
  for (const int64_t length : shape) ranges.push_back({.count = length});
  uint32_t seen = 0;
  for (size_t i = 0; i < count; ++i) {
    INTERP_ASSIGN_OR_RETURN(const int axis, ResolveAxis(attrs.axes[i], shape.rank(), "axes"));
    if ((seen & (1u << axis)) != 0)
      return InvalidArgument("attribute 'axes' lists ", axis, " twice");
    seen |= 1u << axis;
    INTERP_ASSIGN_OR_RETURN(ranges[axis], ResolveRange(starts[i], ends[i], steps[i], shape[axis]));
  }
  return ranges;
}

// The box in Out as the value sees it: without indexed dimensions, with new ones. Source strides
// are 0.
absl::StatusOr<CopyDims> BoxDims(const SetValueAttrs& attrs, absl::Span<const Range> ranges,
                                 const Strides& strides) {
  CopyDims dims;
  size_t next_new = 0;
  for (int i = 0; i <= static_cast<int>(ranges.size()); ++i) {
    const bool last = i == static_cast<int>(ranges.size());
    for (; next_new < attrs.none_axes.size() && (last || attrs.none_axes[next_new] <= i);
         ++next_new) {
      dims.push_back({});
    }
    if (last) break;
    if (!absl::c_linear_search(attrs.decrease_axes, int64_t{i})) {
      dims.push_back({ranges[i].count, 0, strides[i] * ranges[i].step});
    } else if (ranges[i].count != 1) {
      return InvalidArgument("'decrease_axes' drops dimension ", i, " of length ", ranges[i].count,
                             ", expected 1");
    }
  }
  if (dims.size() > kMaxRank) return InvalidArgument("the part has rank ", dims.size());
  return dims;
}

// Sets the source strides for a value of this shape. Leading dimensions of length 1 do not count.
absl::Status Broadcast(const Shape& value, CopyDims& dims) {
  int leading = 0;
  while (leading < value.rank() && value[leading] == 1) ++leading;
  const int rank = value.rank() - leading;
  bool fits = rank <= static_cast<int>(dims.size());
  int64_t stride = 1;
  for (int back = 1; fits && back <= rank; ++back) {
    CopyDim& dim = dims[dims.size() - static_cast<size_t>(back)];
    const int64_t length = value.back(back);
    fits = length == 1 || length == dim.size;
    dim.src_stride = length == 1 ? 0 : stride;
    stride *= length;
  }
  if (fits) return absl::OkStatus();
  std::vector<int64_t> part;
  for (size_t i = 0; i < dims.size() && i < kMaxRank; ++i) part.push_back(dims[i].size);
  return InvalidArgument("the value has shape ", ToString(value), ", which does not fit the part ",
                         ToString(Shape(part)));
}

// Turns the dimensions that are written from the back: where the value starts.
int64_t Reverse(const SetValueAttrs& attrs, absl::Span<const Range> ranges, CopyDims& dims) {
  int64_t start = 0;
  size_t at = 0;
  size_t next_new = 0;
  for (int i = 0; i < static_cast<int>(ranges.size()); ++i) {
    for (; next_new < attrs.none_axes.size() && attrs.none_axes[next_new] <= i; ++next_new) ++at;
    if (absl::c_linear_search(attrs.decrease_axes, int64_t{i})) continue;
    CopyDim& dim = dims[at++];
    if (!ranges[i].reversed) continue;
    start += (dim.size - 1) * dim.src_stride;
    dim.src_stride = -dim.src_stride;
  }
  return start;
}

// The attributes' values as elements of `dtype`.
std::vector<std::byte> ValuesAs(DType dtype, const SetValueAttrs& attrs) {
  std::vector<std::byte> bytes;
  const auto append = [&](const ScalarBytes& scalar) {
    bytes.insert(bytes.end(), scalar.bytes.begin(), scalar.bytes.begin() + SizeOf(dtype));
  };
  for (const double value : attrs.floats) append(ToScalarBytes(dtype, value));
  for (const int64_t value : attrs.integers) append(ToScalarBytes(dtype, value));
  return bytes;
}

absl::Status SetValue(KernelContext& ctx) {
  const SetValueAttrs& attrs = ctx.attrs<SetValueAttrs>();
  Tensor& out = ctx.output(kOut);
  const Tensor* tensor = ctx.optional_input(kValueTensor);
  Tensor copy;  // of a value that Out overwrites
  if (tensor != nullptr && tensor->raw_data() == out.raw_data()) {
    INTERP_ASSIGN_OR_RETURN(copy, tensor->Clone(ctx.allocator()));
    tensor = &copy;
  }
  CopyUnlessShared(ctx.input(kInput), out);
  INTERP_ASSIGN_OR_RETURN(const auto ranges, ResolveRanges(ctx));
  if (absl::c_any_of(ranges, [](const Range& range) { return range.count == 0; })) {
    return absl::OkStatus();  // whatever the value
  }
  const Strides strides = StridesOf(out);
  INTERP_ASSIGN_OR_RETURN(CopyDims dims, BoxDims(attrs, ranges, strides));
  INTERP_RETURN_IF_ERROR(Broadcast(tensor != nullptr ? tensor->shape : attrs.shape, dims));
  const int64_t source = Reverse(attrs, ranges, dims);
  int64_t offset = 0;
  for (size_t i = 0; i < ranges.size(); ++i) offset += ranges[i].first * strides[i];
  const size_t bytes = SizeOf(out.dtype);
  std::vector<std::byte> listed;
  if (tensor == nullptr) listed = ValuesAs(out.dtype, attrs);
  const void* const from = tensor != nullptr ? tensor->raw_data() : listed.data();
  CopyStrided(ctx.num_threads(), bytes, dims, At(from, source, bytes),
              At(out.mutable_raw_data(), offset, bytes));
  return absl::OkStatus();
}

constexpr int kBounds = kOptional | kVariadic | kAnyDType | kHostInput;

INTERP_REGISTER_OP(OpDef{
    .type = "set_value",
    .inputs = {{"Input"},
               {"ValueTensor", kOptional},
               {"StartsTensorList", kBounds},
               {"EndsTensorList", kBounds},
               {"StepsTensorList", kBounds}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<SetValueAttrs, ReadSetValueAttrs>,
    .infer = InferSetValue,
    .kernels = {{DType::kUndefined, SetValue}},
    .inplace = {{kInput, kOut}},
});

}  // namespace
}  // namespace interp
