// diagonal: Out = the diagonals of dimensions axis1 and axis2 of Input, as its last dimension.
// trace: Out = their sums. diag_embed: Out = zeros, with the last dimension of Input as diagonals
// of two new dimensions dim1 and dim2. With the gradients of the first two.
#include "kernels/tensor/diagonal.h"

#include <type_traits>

#include "kernels/util/arithmetic.h"
#include "kernels/util/fill_zero.h"

namespace interp {
namespace {

constexpr int kInput = 0;
constexpr int kOut = 0;

absl::Status InferDiagonal(InferContext& ctx) {
  const Shape& input = ctx.input(kInput).shape;
  INTERP_ASSIGN_OR_RETURN(const Diagonal diagonal, FindDiagonal(ctx.attrs<DiagonalAttrs>(), input));
  ctx.SetShape(kOut, DiagonalShape(diagonal, input));
  return absl::OkStatus();
}

absl::Status DiagonalOf(KernelContext& ctx) {
  const Tensor& input = ctx.input(kInput);
  const Diagonal diagonal = *FindDiagonal(ctx.attrs<DiagonalAttrs>(), input.shape);
  ReadDiagonals(ctx.num_threads(), diagonal, input, ctx.output(kOut).mutable_raw_data());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "diagonal",
    .inputs = {{"Input"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<DiagonalAttrs, ReadDiagonalAttrs>,
    .infer = InferDiagonal,
    .kernels = {{DType::kUndefined, DiagonalOf}},
    .gradient = {.inputs = {"Input", "Out@GRAD"}, .outputs = {"Input@GRAD"}},
});

// Like Paddle's, the offset of a trace goes along the later dimension, in whatever order the axes
// are given.
absl::StatusOr<Diagonal> FindTraced(DiagonalAttrs attrs, const Shape& shape) {
  INTERP_ASSIGN_OR_RETURN(const int axis1, ResolveAxis(attrs.axis1, shape.rank(), "axis1"));
  INTERP_ASSIGN_OR_RETURN(const int axis2, ResolveAxis(attrs.axis2, shape.rank(), "axis2"));
  attrs.axis1 = std::min(axis1, axis2);
  attrs.axis2 = std::max(axis1, axis2);
  return FindDiagonal(attrs, shape);
}

absl::Status InferTrace(InferContext& ctx) {
  const Shape& input = ctx.input(kInput).shape;
  INTERP_ASSIGN_OR_RETURN(const Diagonal diagonal, FindTraced(ctx.attrs<DiagonalAttrs>(), input));
  Shape out = DiagonalShape(diagonal, input);
  out.resize(out.rank() - 1);
  ctx.SetShape(kOut, out);
  return absl::OkStatus();
}

template <typename T>
absl::Status Trace(KernelContext& ctx) {
  using Sum = std::conditional_t<std::is_integral_v<T>, T, double>;
  const Tensor& input = ctx.input(kInput);
  const Diagonal diagonal = *FindTraced(ctx.attrs<DiagonalAttrs>(), input.shape);
  const int64_t count = ctx.output(kOut).numel();
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(static_cast<size_t>(count * diagonal.length * sizeof(T))));
  const T* const values = work.data<T>();
  ReadDiagonals(ctx.num_threads(), diagonal, input, work.data<T>());
  T* const out = ctx.output(kOut).mutable_data<T>();
  for (int64_t n = 0; n < count; ++n) {
    Sum sum = 0;
    for (int64_t i = 0; i < diagonal.length; ++i) {
      sum = WrapAdd(sum, static_cast<Sum>(values[n * diagonal.length + i]));
    }
    out[n] = static_cast<T>(sum);
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "trace",
    .inputs = {{"Input"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<DiagonalAttrs, ReadDiagonalAttrs>,
    .infer = InferTrace,
    .kernels = {{DType::kFloat32, Trace<float>},
                {DType::kFloat64, Trace<double>},
                {DType::kFloat16, Trace<float16>},
                {DType::kInt32, Trace<int32_t>},
                {DType::kInt64, Trace<int64_t>}},
    .gradient = {.inputs = {"Input", "Out@GRAD"}, .outputs = {"Input@GRAD"}},
});

constexpr int kOutGrad = 1;
constexpr int kInputGrad = 0;

// `kTraced`: Out@GRAD has an element for each diagonal.
template <bool kTraced>
absl::StatusOr<Diagonal> FindOf(const DiagonalAttrs& attrs, const Shape& shape) {
  return kTraced ? FindTraced(attrs, shape) : FindDiagonal(attrs, shape);
}

template <bool kTraced>
absl::Status InferDiagonalGrad(InferContext& ctx) {
  const Shape& input = ctx.input(kInput).shape;
  INTERP_ASSIGN_OR_RETURN(const Diagonal diagonal,
                          FindOf<kTraced>(ctx.attrs<DiagonalAttrs>(), input));
  Shape expected = DiagonalShape(diagonal, input);
  if (kTraced) expected.resize(expected.rank() - 1);
  const Shape& grad = ctx.input(kOutGrad).shape;
  if (grad.numel() != expected.numel()) {
    return InvalidArgument("input 'Out@GRAD' has shape ", ToString(grad), ", expected ",
                           ToString(expected));
  }
  ctx.ShareShape(kInput, kInputGrad);
  return absl::OkStatus();
}

template <bool kTraced>
absl::Status DiagonalGrad(KernelContext& ctx) {
  Tensor& input_grad = ctx.output(kInputGrad);
  FillZero(ctx.num_threads(), input_grad);
  const Diagonal diagonal = *FindOf<kTraced>(ctx.attrs<DiagonalAttrs>(), input_grad.shape);
  const auto source = kTraced ? DiagonalSource::kOneEach : DiagonalSource::kFull;
  WriteDiagonals(ctx.num_threads(), diagonal, source, ctx.input(kOutGrad).raw_data(), input_grad);
  return absl::OkStatus();
}

template <bool kTraced>
OpDef DiagonalGradDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"Input", kNoNeedBuffer}, {"Out@GRAD"}},
      .outputs = {{"Input@GRAD"}},
      .parse = ParseAttrs<DiagonalAttrs, ReadDiagonalAttrs>,
      .infer = InferDiagonalGrad<kTraced>,
      .kernels = {{DType::kFloat32, DiagonalGrad<kTraced>},
                  {DType::kFloat64, DiagonalGrad<kTraced>}},
  };
}

INTERP_REGISTER_OP(DiagonalGradDef<false>("diagonal_grad"));
INTERP_REGISTER_OP(DiagonalGradDef<true>("trace_grad"));

// Of the output, whose dimensions the axes are.
DiagonalAttrs ReadEmbedAttrs(AttrReader& reader) {
  return {reader.Int("offset", 0), reader.Int("dim1", -2), reader.Int("dim2", -1)};
}

absl::Status InferDiagEmbed(InferContext& ctx) {
  const DiagonalAttrs& attrs = ctx.attrs<DiagonalAttrs>();
  const Shape& input = ctx.input(kInput).shape;
  if (input.rank() == 0 || input.rank() == kMaxRank) {
    return InvalidArgument("input 'Input' has shape ", ToString(input), ", expected rank 1 to ",
                           kMaxRank - 1);
  }
  const int rank = input.rank() + 1;
  INTERP_ASSIGN_OR_RETURN(const int row, ResolveAxis(attrs.axis1, rank, "dim1"));
  INTERP_ASSIGN_OR_RETURN(const int column, ResolveAxis(attrs.axis2, rank, "dim2"));
  if (row == column) return InvalidArgument("'dim1' and 'dim2' are both ", row);
  INTERP_ASSIGN_OR_RETURN(const int64_t size, CheckedSum(input.back(), std::abs(attrs.offset)));
  Shape out;
  int at = 0;
  for (int d = 0; d < rank; ++d) out.push_back(d == row || d == column ? size : input[at++]);
  ctx.SetShape(kOut, out);
  return absl::OkStatus();
}

absl::Status DiagEmbed(KernelContext& ctx) {
  Tensor& out = ctx.output(kOut);
  FillZero(ctx.num_threads(), out);
  const Diagonal diagonal = *FindDiagonal(ctx.attrs<DiagonalAttrs>(), out.shape);
  WriteDiagonals(ctx.num_threads(), diagonal, DiagonalSource::kFull, ctx.input(kInput).raw_data(),
                 out);
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "diag_embed",
    .inputs = {{"Input"}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<DiagonalAttrs, ReadEmbedAttrs>,
    .infer = InferDiagEmbed,
    .kernels = {{DType::kUndefined, DiagEmbed}},
});

}  // namespace
}  // namespace interp
