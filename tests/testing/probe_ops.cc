// Long because it is a registry of small made-up ops, one of each trait an op can have.
#include "tests/testing/probe_ops.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/device/memcpy.h"
#include "kernels/util/copy.h"
#include "tests/testing/probe.h"

namespace interp::testing {
namespace {

struct TagAttrs {
  int32_t tag = 0;
  std::vector<int64_t> shape;
};

TagAttrs ReadTag(AttrReader& reader) {
  return {.tag = reader.Int("tag", 0), .shape = reader.Ints("shape")};
}

template <typename Context>
const TagAttrs& Attrs(const Context& ctx) {
  return ctx.template attrs<TagAttrs>();
}

uint64_t Mix(uint64_t h, uint64_t x) {
  return std::rotl((h ^ x) * 0x9E3779B97F4A7C15u, 29) + 0x165667B19E3779F9u;
}

// Row-major position of the element that lies at `at` in a channels-last tensor.
int64_t PlainPosition(const Shape& shape, int64_t at) {
  const int64_t channels = shape[1];
  const int64_t spatial = shape.numel(2, shape.rank());
  const int64_t c = at % channels;
  const int64_t s = at / channels % spatial;
  return (at / channels / spatial * channels + c) * spatial + s;
}

int64_t Position(const Tensor& tensor, int64_t at) {
  return tensor.layout == Layout::kPlain ? at : PlainPosition(tensor.shape, at);
}

// Elements beyond an input's end start over; empty inputs count as zeros. Images that share the
// output's layout are met element by element, whatever that layout is.
template <typename T>
absl::Status MixInto(KernelContext& ctx, absl::Span<const Tensor* const> inputs, Tensor& out) {
  const int32_t tag = Attrs(ctx).tag;
  T* to = out.mutable_data<T>();
  const int64_t count = out.numel();
  for (const Tensor* in : inputs) {
    if (in->layout != out.layout && in->shape.rank() >= 4) {
      return absl::InternalError("an image arrived in the wrong layout");
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    uint64_t h = static_cast<uint64_t>(tag) + 1;
    for (const Tensor* in : inputs) {
      const int64_t n = in->numel();
      h = Mix(h, n == 0 ? 0 : static_cast<uint64_t>(in->data<T>()[n == count ? i : i % n]));
    }
    to[i] = static_cast<T>(Mix(h, static_cast<uint64_t>(Position(out, i))));
  }
  return absl::OkStatus();
}

// What a kernel was prepared for, until it runs.
struct Foreseen : KernelState {
  std::vector<Shape> shapes;
};

std::vector<Shape> ShapesOf(const KernelContext& ctx) {
  std::vector<Shape> shapes = {ctx.output(0).shape};
  for (const Tensor* in : ctx.inputs(0)) shapes.push_back(in->shape);
  return shapes;
}

absl::Status PrepareMix(KernelContext& ctx) {
  ctx.state<Foreseen>().shapes = ShapesOf(ctx);
  return absl::OkStatus();
}

// The first run is to find the shapes that were foreseen.
absl::Status CheckForeseen(const KernelContext& ctx) {
  std::unique_ptr<KernelState>* const state = ctx.services().state;
  if (state == nullptr || *state == nullptr) return absl::OkStatus();
  const std::vector<Shape> shapes = std::move(ctx.state<Foreseen>().shapes);
  state->reset();
  return shapes == ShapesOf(ctx) ? absl::OkStatus()
                                 : absl::InternalError("prepared for other shapes");
}

template <typename T>
absl::Status MixKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  INTERP_RETURN_IF_ERROR(CheckForeseen(ctx));
  return MixInto<T>(ctx, ctx.inputs(0), ctx.output(0));
}

absl::Status InferLikeFirst(InferContext& ctx) {
  Probe::OnInfer();
  ctx.ShareShape(0, 0);
  return absl::OkStatus();
}

OpDef WithMixKernels(OpDef def) {
  def.parse = ParseAttrs<TagAttrs, ReadTag>;
  if (def.infer == nullptr) def.infer = InferLikeFirst;
  def.kernels = {
      {.dtype = DType::kInt64, .run = MixKernel<int64_t>, .prepare = PrepareMix},
      {.dtype = DType::kInt32, .run = MixKernel<int32_t>, .prepare = PrepareMix},
  };
  return def;
}

absl::Status InferFromAttr(InferContext& ctx) {
  Probe::OnInfer();
  ctx.SetShape(0, Shape(absl::MakeConstSpan(Attrs(ctx).shape)));
  return absl::OkStatus();
}

template <typename T>
absl::Status SourceKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  return MixInto<T>(ctx, {}, ctx.output(0));
}

template <typename T>
absl::Status RandomKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  Tensor& out = ctx.output(0);
  const RandomStream stream = ctx.random();
  for (int64_t i = 0; i < out.numel(); ++i) {
    out.mutable_data<T>()[i] = static_cast<T>(stream.Word(i));
  }
  return absl::OkStatus();
}

// The same by way of a workspace, which another op must not write to at the same time.
template <typename T>
absl::Status ScratchKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  Tensor& out = ctx.output(0);
  const RandomStream stream = ctx.random();
  INTERP_ASSIGN_OR_RETURN(const Workspace work, ctx.workspace(out.size_bytes()));
  T* const drawn = work.data<T>();
  for (int64_t i = 0; i < out.numel(); ++i) drawn[i] = static_cast<T>(stream.Word(i));
  std::copy_n(drawn, out.numel(), out.mutable_data<T>());
  return absl::OkStatus();
}

OpDef Source(absl::string_view type, KernelFn of_int64, KernelFn of_int32) {
  return {.type = type,
          .inputs = {},
          .outputs = {{"Out"}},
          .parse = ParseAttrs<TagAttrs, ReadTag>,
          .infer = InferFromAttr,
          .kernels = {{DType::kInt64, of_int64}, {DType::kInt32, of_int32}}};
}

absl::Status InferView(InferContext& ctx) {
  Probe::OnInfer();
  Shape shape(absl::MakeConstSpan(Attrs(ctx).shape));
  int64_t known = 1;
  for (const int64_t dim : shape) known *= dim < 0 ? 1 : dim;
  const int64_t count = ctx.input(0).numel();
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] < 0) shape[i] = known == 0 ? 0 : count / known;
  }
  if (shape.numel() != count) {
    return InvalidArgument("input 'X' has ", count, " elements, expected shape ", ToString(shape));
  }
  ctx.SetShape(0, shape);
  return absl::OkStatus();
}

absl::Status CopyKernel(KernelContext& ctx) {
  CopyUnlessShared(ctx.input(0), ctx.output(0));
  return absl::OkStatus();
}

absl::Status ViewKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  return CopyKernel(ctx);
}

// N, C, H, W as N, H, W, C, and back.
template <bool kToLast>
absl::Status InferTurn(InferContext& ctx) {
  Probe::OnInfer();
  const Shape& x = ctx.input(0).shape;
  ctx.SetShape(0, kToLast ? Shape({x[0], x[2], x[3], x[1]}) : Shape({x[0], x[3], x[1], x[2]}));
  return absl::OkStatus();
}

template <bool kToLast>
absl::Status TurnKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  const Tensor& in = ctx.input(0);
  Tensor& out = ctx.output(0);
  if (in.raw_data() == out.raw_data()) return absl::OkStatus();
  const Tensor& image = kToLast ? in : out;
  const int64_t size = static_cast<int64_t>(SizeOf(in.dtype));
  const auto* const from = static_cast<const char*>(in.raw_data());
  auto* const to = static_cast<char*>(out.mutable_raw_data());
  for (int64_t at = 0; at < image.numel(); ++at) {
    const int64_t of_image = image.layout == Layout::kPlain ? PlainPosition(image.shape, at) : at;
    const auto [source, target] = kToLast ? std::pair(of_image, at) : std::pair(at, of_image);
    std::memcpy(to + target * size, from + source * size, static_cast<size_t>(size));
  }
  return absl::OkStatus();
}

OpDef Turn(absl::string_view type, bool to_last) {
  return {.type = type,
          .inputs = {{"X", to_last ? kAnyLayout : 0}},
          .outputs = {{"Out"}},
          .parse = ParseAttrs<TagAttrs, ReadTag>,
          .infer = to_last ? InferTurn<true> : InferTurn<false>,
          .kernels = {{DType::kUndefined, to_last ? TurnKernel<true> : TurnKernel<false>}},
          .layout = to_last ? LayoutRule::kPlain : LayoutRule::kForReaders,
          .view = {{0, 0}},
          .view_turns = true};
}

absl::Status UpdateKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  const Tensor* inputs[] = {&ctx.input(0), &ctx.input(1)};
  return MixInto<int64_t>(ctx, inputs, ctx.output(0));
}

absl::Status InferSplit(InferContext& ctx) {
  Probe::OnInfer();
  ctx.ShareShape(0, 0);
  ctx.ShareShape(0, 1);
  return absl::OkStatus();
}

absl::Status SplitKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  INTERP_RETURN_IF_ERROR(MixInto<int64_t>(ctx, ctx.inputs(0), ctx.output(0)));
  const Tensor* inputs[] = {&ctx.input(0), &ctx.input(0)};
  return MixInto<int64_t>(ctx, inputs, ctx.output(1));
}

absl::Status ShapeOfKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  const Shape& shape = ctx.input(0).shape;
  std::copy(shape.begin(), shape.end(), ctx.output(0).mutable_data<int64_t>());
  return absl::OkStatus();
}

absl::Status InferResize(InferContext& ctx) {
  Probe::OnInfer();
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> values, InferContext::Integers(ctx.input(1)));
  ctx.SetShape(0, {values.empty() ? 1 : 1 + (values[0] & 7)});
  return absl::OkStatus();
}

absl::Status ResizeKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  return MixInto<int64_t>(ctx, ctx.inputs(0), ctx.output(0));
}

absl::Status InferGrow(InferContext& ctx) {
  Probe::OnInfer();
  constexpr int64_t kMost = 24;
  ctx.SetShape(0, {std::min(kMost, ctx.input(0).numel() + ctx.input(1).numel())});
  return absl::OkStatus();
}

absl::Status GrowKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  const Tensor* inputs[] = {&ctx.input(0), &ctx.input(1)};
  return MixInto<int64_t>(ctx, inputs, ctx.output(0));
}

constexpr int64_t kRowWidth = 2;
constexpr int64_t kHeight = 5;

// Gives `out` those rows, and memory for their values.
absl::Status SetRows(const KernelContext& ctx, std::vector<int64_t> rows, Variable& out) {
  if (!out.selected_rows.has_value()) return InvalidArgument("'Out' is no variable for rows");
  out.tensor.shape = {static_cast<int64_t>(rows.size()), kRowWidth};
  out.tensor.dtype = DType::kInt64;
  out.tensor.DropMemory();
  *out.selected_rows = {.rows = std::move(rows), .height = kHeight};
  return ctx.Allocate(out.tensor);
}

absl::Status ToRowsKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  const Tensor& x = ctx.input(0);
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < std::min<int64_t>(3, x.numel()); ++i) {
    const auto drawn = static_cast<int64_t>(Mix(1, static_cast<uint64_t>(x.data<int64_t>()[i])) %
                                            static_cast<uint64_t>(kHeight + 2));
    if (drawn < kHeight) rows.push_back(drawn);
  }
  INTERP_RETURN_IF_ERROR(SetRows(ctx, std::move(rows), ctx.output_variable(0)));
  return MixInto<int64_t>(ctx, ctx.inputs(0), ctx.output_variable(0).tensor);
}

absl::Status JoinRowsKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  constexpr size_t kMost = 12;
  std::vector<int64_t> rows;
  std::vector<int64_t> values;
  for (const int input : {0, 1}) {
    const Variable& part = ctx.input_variable(input);
    const std::vector<int64_t>& more = part.selected_rows->rows;
    rows.insert(rows.end(), more.begin(), more.end());
    if (part.tensor.numel() == 0) continue;
    const int64_t* const data = part.tensor.data<int64_t>();
    values.insert(values.end(), data, data + part.tensor.numel());
  }
  if (rows.size() > kMost) rows.resize(kMost);
  INTERP_RETURN_IF_ERROR(SetRows(ctx, std::move(rows), ctx.output_variable(0)));
  Tensor& out = ctx.output_variable(0).tensor;
  std::copy_n(values.begin(), out.numel(), out.mutable_data<int64_t>());
  return absl::OkStatus();
}

absl::Status FromRowsKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  const Variable& x = ctx.input_variable(0);
  uint64_t h = static_cast<uint64_t>(Attrs(ctx).tag);
  for (const int64_t row : x.selected_rows->rows) h = Mix(h, static_cast<uint64_t>(row));
  for (int64_t i = 0; i < x.tensor.numel(); ++i) {
    h = Mix(h, static_cast<uint64_t>(x.tensor.data<int64_t>()[i]));
  }
  for (const uint64_t i : {0, 1}) {
    ctx.output(0).mutable_data<int64_t>()[i] = static_cast<int64_t>(Mix(h, i));
  }
  return absl::OkStatus();
}

absl::Status DynamicKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  const Tensor& x = ctx.input(0);
  Tensor& out = ctx.output(0);
  uint64_t h = 0;
  for (int64_t i = 0; i < x.numel(); ++i) h = Mix(h, static_cast<uint64_t>(x.data<int64_t>()[i]));
  out.shape = {static_cast<int64_t>(1 + h % 7)};
  out.dtype = DType::kInt64;
  out.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  return MixInto<int64_t>(ctx, ctx.inputs(0), out);
}

template <typename T>
absl::Status HalfKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  const Tensor& x = ctx.input(0);
  T* out = ctx.output(0).mutable_data<T>();
  for (int64_t i = 0; i < x.numel(); ++i) out[i] = x.data<T>()[i] / 2;
  return absl::OkStatus();
}

absl::Status PushKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  // Memory is shared: the element stays as it is when X is written in place later.
  ctx.output_array(0).push_back(ctx.input(0));
  return absl::OkStatus();
}

absl::Status LastKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  if (ctx.input_array(0).empty()) return NotFound("the array is empty");
  ctx.output(0) = ctx.input_array(0).back();
  return absl::OkStatus();
}

// Loops that gather what they have gathered would grow without end.
constexpr int64_t kMostElements = 1000;

// The elements of `parts` one after the other, as many as there may be.
absl::Status Concatenate(const KernelContext& ctx, const std::vector<Tensor>& parts, DType dtype,
                         Tensor& out) {
  out.shape = {0};
  for (const Tensor& part : parts) out.shape[0] += part.numel();
  out.shape[0] = std::min(out.shape[0], kMostElements);
  out.dtype = dtype;
  out.lod.clear();
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  char* to = static_cast<char*>(out.mutable_raw_data());
  size_t left = out.size_bytes();
  for (const Tensor& part : parts) {
    const size_t size = std::min(left, part.size_bytes());
    if (size > 0) std::memcpy(to, part.raw_data(), size);
    to += size;
    left -= size;
  }
  return absl::OkStatus();
}

absl::Status GatherKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  return Concatenate(ctx, ctx.input_array(0), DType::kInt64, ctx.output(0));
}

struct ColumnAttrs {
  int32_t col = 0;
};
ColumnAttrs ReadColumn(AttrReader& reader) { return {.col = reader.Int("col", 0)}; }

absl::Status FeedKernel(KernelContext& ctx) {
  ctx.output(0) = ctx.input_array(0)[ctx.attrs<ColumnAttrs>().col];
  return absl::OkStatus();
}

absl::Status FetchKernel(KernelContext& ctx) {
  std::vector<Tensor>& list = ctx.output_array(0);
  const size_t col = static_cast<size_t>(ctx.attrs<ColumnAttrs>().col);
  if (list.size() <= col) list.resize(col + 1);
  list[col] = ctx.input(0);
  return absl::OkStatus();
}

void KeepInputDType(DTypeContext& ctx) { ctx.Set(0, ctx.input(0)); }

struct CastAttrs {
  DType to = DType::kUndefined;
};
CastAttrs ReadCast(AttrReader& reader) {
  return {.to = reader.Type("out_dtype", DType::kUndefined)};
}

template <typename From, typename To>
void CastElements(const Tensor& in, Tensor& out) {
  const From* from = in.data<From>();
  std::transform(from, from + in.numel(), out.mutable_data<To>(),
                 [](From v) { return static_cast<To>(v); });
}

template <typename From>
absl::Status CastFrom(KernelContext& ctx) {
  Tensor& out = ctx.output(0);
  switch (out.dtype) {
    case DType::kInt32:
      CastElements<From, int32_t>(ctx.input(0), out);
      return absl::OkStatus();
    case DType::kInt64:
      CastElements<From, int64_t>(ctx.input(0), out);
      return absl::OkStatus();
    case DType::kFloat32:
      CastElements<From, float>(ctx.input(0), out);
      return absl::OkStatus();
    case DType::kFloat64:
      CastElements<From, double>(ctx.input(0), out);
      return absl::OkStatus();
    default:
      return Unimplemented("cannot cast to ", Name(out.dtype));
  }
}

absl::Status TransferLayoutKernel(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  Tensor& out = ctx.output(0);
  const size_t bytes = SizeOf(in.dtype);
  const bool to_last = out.layout == Layout::kChannelsLast;
  for (int64_t i = 0; i < in.numel(); ++i) {
    const int64_t other = PlainPosition(in.shape, i);
    std::memcpy(static_cast<char*>(out.mutable_raw_data()) + (to_last ? i : other) * bytes,
                static_cast<const char*>(in.raw_data()) + (to_last ? other : i) * bytes, bytes);
  }
  return absl::OkStatus();
}

DType AlwaysInt64(const DTypeContext&) { return DType::kInt64; }

absl::Status NoOp(KernelContext& ctx) { return Probe::OnKernel(Attrs(ctx).tag); }

OpDef Implicit(absl::string_view type, std::vector<SlotDef> inputs, std::vector<SlotDef> outputs) {
  return {.type = type,
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .parse = ParseAttrs<TagAttrs, ReadTag>,
          .infer = [](InferContext&) { return absl::OkStatus(); },
          .kernels = {{DType::kUndefined, NoOp}}};
}

void AddComputing(OpRegistry& ops) {
  constexpr int kMany = kVariadic;
  ops.Add(WithMixKernels(
      {.type = "mix", .inputs = {{"X", kMany}}, .outputs = {{"Out"}}, .inplace = {{0, 0}}}));
  ops.Add(WithMixKernels({.type = "image",
                          .inputs = {{"X"}},
                          .outputs = {{"Out"}},
                          .layout = LayoutRule::kPrefersChannelsLast}));
  ops.Add(WithMixKernels({.type = "follow",
                          .inputs = {{"X", kMany}},
                          .outputs = {{"Out"}},
                          .layout = LayoutRule::kFollows,
                          .inplace = {{0, 0}}}));
  ops.Add(Source("source", SourceKernel<int64_t>, SourceKernel<int32_t>));
  OpDef random = Source("random", RandomKernel<int64_t>, RandomKernel<int32_t>);
  random.random = true;
  ops.Add(std::move(random));
  OpDef scratch = Source("scratch", ScratchKernel<int64_t>, ScratchKernel<int32_t>);
  scratch.random = true;
  ops.Add(std::move(scratch));
  ops.Add({.type = "view",
           .inputs = {{"X"}},
           .outputs = {{"Out"}},
           .parse = ParseAttrs<TagAttrs, ReadTag>,
           .infer = InferView,
           .kernels = {{DType::kUndefined, ViewKernel}},
           .view = {{0, 0}}});
  ops.Add(Turn("turn_last", /*to_last=*/true));
  ops.Add(Turn("turn_first", /*to_last=*/false));
  ops.Add({.type = "update",
           .inputs = {{"Param"}, {"X"}},
           .outputs = {{"ParamOut"}},
           .parse = ParseAttrs<TagAttrs, ReadTag>,
           .kernel_dtype = AlwaysInt64,
           .infer = InferLikeFirst,
           .kernels = {{DType::kInt64, UpdateKernel}},
           .inplace = {{0, 0}}});
  ops.Add({.type = "split2",
           .inputs = {{"X"}},
           .outputs = {{"A"}, {"B"}},
           .parse = ParseAttrs<TagAttrs, ReadTag>,
           .kernel_dtype = AlwaysInt64,
           .infer = InferSplit,
           .kernels = {{DType::kInt64, SplitKernel}}});
  ops.Add({.type = "half",
           .inputs = {{"X"}},
           .outputs = {{"Out"}},
           .parse = ParseAttrs<TagAttrs, ReadTag>,
           .infer = InferLikeFirst,
           .kernels = {{DType::kFloat32, HalfKernel<float>}, {DType::kFloat64, HalfKernel<double>}},
           .inplace = {{0, 0}}});
}

void AddDynamic(OpRegistry& ops) {
  ops.Add({.type = "shape_of",
           .inputs = {{"X", kNoNeedBuffer | kAnyDType}},
           .outputs = {{"Out"}},
           .parse = ParseAttrs<TagAttrs, ReadTag>,
           .kernel_dtype = AlwaysInt64,
           .infer =
               [](InferContext& ctx) {
                 ctx.SetShape(0, {ctx.input(0).shape.rank()});
                 return absl::OkStatus();
               },
           .kernels = {{DType::kInt64, ShapeOfKernel}}});
  ops.Add({.type = "resize_to",
           .inputs = {{"X"}, {"Shape", kValueInInfer | kAnyDType}},
           .outputs = {{"Out"}},
           .parse = ParseAttrs<TagAttrs, ReadTag>,
           .kernel_dtype = AlwaysInt64,
           .infer = InferResize,
           .kernels = {{DType::kInt64, ResizeKernel}}});
  ops.Add({.type = "grow",
           .inputs = {{"X"}, {"Y"}},
           .outputs = {{"Out"}},
           .parse = ParseAttrs<TagAttrs, ReadTag>,
           .kernel_dtype = AlwaysInt64,
           .infer = InferGrow,
           .kernels = {{DType::kInt64, GrowKernel}}});
  ops.Add({.type = "dynamic",
           .inputs = {{"X"}},
           .outputs = {{"Out"}},
           .parse = ParseAttrs<TagAttrs, ReadTag>,
           .kernel_dtype = AlwaysInt64,
           .kernels = {{DType::kInt64, DynamicKernel}},
           .dynamic_outputs = true});
  ops.Add({.type = "push",
           .inputs = {{"X"}, {"Array", kTensorArray | kOptional}},
           .outputs = {{"ArrayOut", kTensorArray}},
           .parse = ParseAttrs<TagAttrs, ReadTag>,
           .kernel_dtype = AlwaysInt64,
           .kernels = {{DType::kInt64, PushKernel}},
           .dynamic_outputs = true});
  ops.Add({.type = "gather",
           .inputs = {{"Array", kTensorArray}},
           .outputs = {{"Out"}},
           .parse = ParseAttrs<TagAttrs, ReadTag>,
           .kernel_dtype = AlwaysInt64,
           .kernels = {{DType::kInt64, GatherKernel}},
           .dynamic_outputs = true});
  ops.Add({.type = "last",
           .inputs = {{"Array", kTensorArray}},
           .outputs = {{"Out"}},
           .parse = ParseAttrs<TagAttrs, ReadTag>,
           .kernel_dtype = AlwaysInt64,
           .kernels = {{DType::kInt64, LastKernel}},
           .dynamic_outputs = true});
}

void AddRows(OpRegistry& ops) {
  const auto add = [&](absl::string_view type, std::vector<SlotDef> inputs, KernelFn kernel) {
    ops.Add({.type = type,
             .inputs = std::move(inputs),
             .outputs = {{"Out", kMayBeRows}},
             .parse = ParseAttrs<TagAttrs, ReadTag>,
             .kernel_dtype = AlwaysInt64,
             .kernels = {{DType::kInt64, kernel}},
             .dynamic_outputs = true});
  };
  add("to_rows", {{"X"}}, ToRowsKernel);
  add("join_rows", {{"A", kMayBeRows}, {"B", kMayBeRows}}, JoinRowsKernel);
  ops.Add({.type = "from_rows",
           .inputs = {{"X", kMayBeRows}},
           .outputs = {{"Out"}},
           .parse = ParseAttrs<TagAttrs, ReadTag>,
           .kernel_dtype = AlwaysInt64,
           .infer =
               [](InferContext& ctx) {
                 ctx.SetShape(0, {2});
                 return absl::OkStatus();
               },
           .kernels = {{DType::kInt64, FromRowsKernel}}});
}

void AddPlumbing(OpRegistry& ops) {
  ops.Add({.type = "feed",
           .inputs = {{"X", kTensorArray}},
           .outputs = {{"Out"}},
           .parse = ParseAttrs<ColumnAttrs, ReadColumn>,
           .kernels = {{DType::kUndefined, FeedKernel}},
           .dynamic_outputs = true});
  ops.Add({.type = "fetch",
           .inputs = {{"X", kAnyDType}},
           .outputs = {{"Out", kTensorArray}},
           .parse = ParseAttrs<ColumnAttrs, ReadColumn>,
           .infer = [](InferContext&) { return absl::OkStatus(); },
           .kernels = {{DType::kUndefined, FetchKernel}},
           .side_effect = true});
  ops.Add({.type = "assign",
           .inputs = {{"X", kAnyDType | kAnyLayout}},
           .outputs = {{"Out"}},
           .infer_dtype = KeepInputDType,
           .infer = InferLikeFirst,
           .kernels = {{DType::kUndefined, CopyKernel}},
           .view = {{0, 0}}});
  ops.Add({.type = "cast",
           .inputs = {{"X", kAnyLayout}},
           .outputs = {{"Out"}},
           .parse = ParseAttrs<CastAttrs, ReadCast>,
           .infer_dtype = [](DTypeContext& ctx) { ctx.Set(0, ctx.attrs<CastAttrs>().to); },
           .infer = InferLikeFirst,
           .kernels = {{DType::kInt32, CastFrom<int32_t>},
                       {DType::kInt64, CastFrom<int64_t>},
                       {DType::kFloat32, CastFrom<float>},
                       {DType::kFloat64, CastFrom<double>}}});
  ops.Add({.type = "transfer_layout",
           .inputs = {{"X", kAnyLayout}},
           .outputs = {{"Out"}},
           .infer_dtype = KeepInputDType,
           .infer = InferLikeFirst,
           .kernels = {{DType::kUndefined, TransferLayoutKernel}}});
  ops.Add(MemcpyHostToDevice());
  ops.Add(MemcpyDeviceToHost());
  ops.Add(MemcpyPeerToPeer());
}

int64_t FirstElement(const Tensor& tensor) {
  if (!tensor.has_memory() || tensor.numel() == 0) return 0;  // shrinking takes writers away
  return tensor.dtype == DType::kInt32 ? *tensor.data<int32_t>() : *tensor.data<int64_t>();
}

void DropSteps(KernelContext& ctx) {
  if (ctx.has_output(0)) ctx.output_variable(0).steps.clear();
}

absl::Status RunBlock(KernelContext& ctx) {
  if (!ctx.has_output(0) || !ctx.block().saves()) return ctx.block().Run();
  return ctx.block().RunAndSave(ctx.output_variable(0).steps.emplace_back());
}

// As long as fewer trips were made than the condition says, which the block may change.
absl::Status RepeatKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  DropSteps(ctx);
  for (int64_t trip = 0; trip < (FirstElement(ctx.input(0)) & 3); ++trip) {
    INTERP_RETURN_IF_ERROR(RunBlock(ctx));
  }
  return absl::OkStatus();
}

absl::Status WhenKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  DropSteps(ctx);
  return (FirstElement(ctx.input(0)) & 1) == 0 ? absl::OkStatus() : RunBlock(ctx);
}

// From the last step to the first.
absl::Status BackKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(Attrs(ctx).tag));
  std::vector<StepRecord>& steps = ctx.output_variable(0).steps;
  while (!steps.empty()) {
    INTERP_RETURN_IF_ERROR(ctx.block().RunOn(steps.back()));
    steps.pop_back();
  }
  return absl::OkStatus();
}

struct ScanAttrs {
  int32_t tag = 0;
  DType dtype = DType::kInt64;  // of what is collected
};
ScanAttrs ReadScan(AttrReader& reader) {
  return {.tag = reader.Int("tag", 0), .dtype = reader.Type("dtype", DType::kInt64)};
}

// Attribute `names`: the block's variables for a row, the state before and after, and what is
// collected.
absl::Status ScanBlock(const Program&, const Op& op, SubBlock& block) {
  AttrReader reader(op);
  const std::vector<std::string> names = reader.Strings("names");
  if (names.size() != 4) return InvalidArgument("attribute 'names' is no list of four");
  block.entries = {{.name = names[0], .slot = 0}, {.name = names[1], .slot = 1}};
  block.results = {names[2], names[3]};
  return absl::OkStatus();
}

// A tensor that shares the memory: the block may write another value to the variable.
Tensor AsItIs(const Tensor& tensor) { return tensor; }

// At most three rows.
absl::Status ScanKernel(KernelContext& ctx) {
  INTERP_RETURN_IF_ERROR(Probe::OnKernel(ctx.attrs<ScanAttrs>().tag));
  const Tensor rows = AsItIs(ctx.input(0));
  Tensor state = ctx.input(1);
  std::vector<Tensor> collected;
  for (int64_t i = 0; i < std::min<int64_t>(3, rows.shape[0]); ++i) {
    Tensor row = rows;
    row.lod.clear();
    row.shape = Shape(rows.shape.dims().subspan(1));
    row.SetMemory(rows.buffer(), static_cast<char*>(row.mutable_raw_data()) + i * row.size_bytes());
    ctx.block().entry(0).tensor = std::move(row);
    ctx.block().entry(1).tensor = std::move(state);
    INTERP_RETURN_IF_ERROR(ctx.block().Run());
    for (const size_t result : {0, 1}) {
      const Tensor& made = ctx.block().result(result).tensor;
      if (!made.has_memory() && made.numel() != 0) return NotFound("a result has no value");
    }
    state = ctx.block().result(0).tensor;
    collected.push_back(ctx.block().result(1).tensor);
  }
  return Concatenate(ctx, collected, ctx.attrs<ScanAttrs>().dtype, ctx.output(0));
}

DType NoDType(const DTypeContext&) { return DType::kUndefined; }

void AddNested(OpRegistry& ops) {
  const auto plain = [](const Program&, const Op&, SubBlock&) { return absl::OkStatus(); };
  const auto loop = [](const Program&, const Op&, SubBlock& block) {
    block.saves_captures = true;
    return absl::OkStatus();
  };
  const auto add = [&](absl::string_view type, SlotDef input, SlotDef output, KernelFn kernel,
                       auto sub_block) {
    ops.Add({.type = type,
             .inputs = {input},
             .outputs = {output},
             .parse = ParseAttrs<TagAttrs, ReadTag>,
             .kernel_dtype = NoDType,
             .infer = [](InferContext&) { return absl::OkStatus(); },
             .kernels = {{DType::kUndefined, kernel}},
             .side_effect = true,
             .sub_block = sub_block});
  };
  const SlotDef condition = {"Condition", kAnyDType | kHostInput};
  const SlotDef steps = {"Steps", kTensorArray | kOptional};
  add("repeat", condition, steps, RepeatKernel, loop);
  add("when", condition, steps, WhenKernel, plain);
  add("back", steps, {"StepsOut", kTensorArray}, BackKernel, plain);
  ops.Add({.type = "scan",
           .inputs = {{"Rows", kAnyDType}, {"State", kAnyDType}},
           .outputs = {{"Out"}},
           .parse = ParseAttrs<ScanAttrs, ReadScan>,
           .kernel_dtype = NoDType,
           .kernels = {{DType::kUndefined, ScanKernel}},
           .dynamic_outputs = true,
           .sub_block = ScanBlock});
}

void AddImplicitlyOrdered(OpRegistry& ops) {
  ops.Add(Implicit("read", {}, {{"Out", kVariadic | kOptional}}));
  for (const absl::string_view type : {"c_allreduce", "c_sync_comm_stream", "send_v2"}) {
    OpDef def = Implicit(type, {{"X", kVariadic | kOptional | kAnyDType}},
                         {{"Out", kVariadic | kOptional}});
    def.inplace = {{0, 0}};
    ops.Add(std::move(def));
  }
  ops.Add(Implicit("coalesce_tensor", {{"Input", kVariadic}},
                   {{"Output", kVariadic}, {"FusedOutput", 0}}));
}

OpRegistry MakeProbeOps() {
  OpRegistry ops;
  AddComputing(ops);
  AddDynamic(ops);
  AddRows(ops);
  AddPlumbing(ops);
  AddNested(ops);
  AddImplicitlyOrdered(ops);
  return ops;
}

}  // namespace

const OpRegistry& ProbeOps() {
  static const auto& ops = *new OpRegistry(MakeProbeOps());
  return ops;
}

}  // namespace interp::testing
