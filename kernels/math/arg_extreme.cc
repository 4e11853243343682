// arg_max, arg_min: Out = position of the first largest or smallest element along `axis`, or in the
// whole tensor (`flatten`). NaN is never chosen unless there is nothing else.
#include "kernels/math/arg_extreme.h"

#include <algorithm>
#include <limits>

#include "kernels/util/arithmetic.h"
#include "kernels/util/transpose_plane.h"

namespace interp {
namespace {

constexpr int kX = kArgX;
constexpr int kOut = kArgOut;
constexpr int64_t kTile = 128;          // neighbouring lines searched together
constexpr int64_t kLanes = 32;          // elements of one line compared side by side
constexpr int64_t kShort = 2 * kLanes;  // shorter lines are searched side by side
constexpr int64_t kShortTile = 64;      // so many of them
static_assert(kShortTile <= kTile);     // what SearchTile has room for

absl::Status InferArg(InferContext& ctx) {
  const ArgAttrs& attrs = ctx.attrs<ArgAttrs>();
  const Shape& x = ctx.input(kX).shape;
  INTERP_ASSIGN_OR_RETURN(const int axis, ArgAxis(ctx));
  const int64_t length = ArgLines(attrs, x, axis).length;
  if (length == 0) return InvalidArgument("input 'X' ", ToString(x), " has no element to choose");
  if (attrs.dtype == DType::kInt32 && length > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("positions up to ", length, " do not fit into int32");
  }
  Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    const bool reduced = attrs.flatten || i == axis;
    if (!reduced || attrs.keep_dims) out.push_back(reduced ? 1 : x[i]);
  }
  // A scalar counts as one line, which keeps its dimension.
  if (x.rank() == 0 && attrs.keep_dims && !attrs.flatten) out.push_back(1);
  ctx.SetShape(kOut, out);
  return absl::OkStatus();
}

struct Larger {
  template <typename T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};
struct Smaller {
  template <typename T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};

// Positions for lines [first, first + n) of one outer index: x points at their first elements.
template <typename T, typename I, typename Better>
void SearchTile(const T* x, int64_t length, int64_t stride, int64_t n, I* out) {
  using C = ComputeType<T>;
  C best[kTile];
  I at[kTile];
  std::fill(at, at + n, I{0});
  for (int64_t j = 0; j < n; ++j) best[j] = static_cast<C>(x[j]);
  for (int64_t i = 1; i < length; ++i) {
    const T* row = x + i * stride;
    for (int64_t j = 0; j < n; ++j) {
      const C value = static_cast<C>(row[j]);
      const bool better = Better()(value, best[j]) || (best[j] != best[j] && value == value);
      best[j] = better ? value : best[j];
      at[j] = better ? static_cast<I>(i) : at[j];
    }
  }
  std::copy(at, at + n, out);
}

// The position for one contiguous line: columns of kLanes elements side by side, then the best of
// those and of what is left.
template <typename T, typename I, typename Better>
I SearchLine(const T* x, int64_t length) {
  using C = ComputeType<T>;
  I best = 0;
  const auto consider = [&](I at) {
    const C value = static_cast<C>(x[at]);
    const C champion = static_cast<C>(x[best]);
    const bool first_number = champion != champion && value == value;
    const bool earlier = value == champion && at < best;
    if (Better()(value, champion) || first_number || earlier) best = at;
  };
  const int64_t rows = length / kLanes;
  if (rows > 1) {
    I at[kLanes];
    SearchTile<T, I, Better>(x, rows, kLanes, kLanes, at);
    for (int64_t lane = 0; lane < kLanes; ++lane) consider(at[lane] * I{kLanes} + I(lane));
  }
  for (int64_t i = rows > 1 ? rows * kLanes : 0; i < length; ++i) consider(static_cast<I>(i));
  return best;
}

// The same for n lines of fewer than kShort elements, one after the other in memory.
template <typename T, typename I, typename Better>
void SearchShortLines(const T* x, int64_t length, int64_t n, I* out) {
  T tile[kShort * kShortTile];
  TransposeMatrix(x, length, tile, kShortTile, n, length);
  SearchTile<T, I, Better>(tile, length, kShortTile, n, out);
}

template <typename T, typename I, typename Better>
void SearchAllShortLines(int num_threads, const T* x, const Lines& lines, I* out) {
  const int64_t tiles = (lines.outer + kShortTile - 1) / kShortTile;
  const int64_t grain = GrainFor(lines.length * kShortTile);
  ParallelFor(num_threads, tiles, grain, [=](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first = tile * kShortTile;
      SearchShortLines<T, I, Better>(x + first * lines.length, lines.length,
                                     std::min(kShortTile, lines.outer - first), out + first);
    }
  });
}

template <typename T, typename I, typename Better>
void SearchLines(int num_threads, const T* x, const Lines& lines, I* out) {
  if (lines.inner == 1 && lines.length < kShort) {
    return SearchAllShortLines<T, I, Better>(num_threads, x, lines, out);
  }
  const int64_t tiles = (lines.inner + kTile - 1) / kTile;
  const int64_t grain = GrainFor(lines.length * std::min(lines.inner, kTile));
  ParallelFor(num_threads, lines.outer * tiles, grain, [=](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % tiles * kTile;
      const int64_t line = task / tiles * lines.inner + first;
      if (lines.inner == 1) {
        out[line] = SearchLine<T, I, Better>(x + lines.Start(line), lines.length);
        continue;
      }
      SearchTile<T, I, Better>(x + lines.Start(line), lines.length, lines.inner,
                               std::min(kTile, lines.inner - first), out + line);
    }
  });
}

template <typename T, typename I, typename Better>
absl::Status Search(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const int axis, ArgAxis(ctx));
  const Tensor& x = ctx.input(kX);
  SearchLines<T, I, Better>(ctx.num_threads(), x.data<T>(),
                            ArgLines(ctx.attrs<ArgAttrs>(), x.shape, axis),
                            ctx.output(kOut).mutable_data<I>());
  return absl::OkStatus();
}

template <typename T, typename Better>
absl::Status Arg(KernelContext& ctx) {
  const bool narrow = ctx.attrs<ArgAttrs>().dtype == DType::kInt32;
  return narrow ? Search<T, int32_t, Better>(ctx) : Search<T, int64_t, Better>(ctx);
}

template <typename Better, typename... Ts>
std::vector<KernelDef> ArgKernels() {
  return {{DTypeOf<Ts>, Arg<Ts, Better>}...};
}

template <typename Better>
OpDef ArgDef(absl::string_view type) {
  return OpDef{
      .type = type,
      .inputs = {{"X"}, {"AxisTensor", kOptional | kAnyDType | kValueInInfer, "axis"}},
      .outputs = {{"Out"}},
      .parse = ParseAttrs<ArgAttrs, ArgAttrs::Read>,
      .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOut, ctx.attrs<ArgAttrs>().dtype); },
      .infer = InferArg,
      .kernels = ArgKernels<Better, float, double, float16, int32_t, int64_t, int16_t, uint8_t>(),
      .gradient = {.none = true},
  };
}

INTERP_REGISTER_OP(ArgDef<Larger>("arg_max"));
INTERP_REGISTER_OP(ArgDef<Smaller>("arg_min"));

}  // namespace
}  // namespace interp
