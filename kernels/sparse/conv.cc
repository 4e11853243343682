// sparse_conv3d: a convolution of two or three dimensions of space over the points of a sparse
// tensor of shape [N, D, H, W, C] or [N, H, W, C], with a kernel [KD, KH, KW, C, M] or [KH, KW, C,
// M]. The result has a point wherever a point of X lies in the window of one, in the order of their
// places; with `subm` only where X has points, and then strides are 1 and windows centred.
// coo_conv: the same of the parts; coo_conv_shape: the shape of the whole.
// (Paddle: phi/kernels/sparse/cpu/conv.h, funcs/sparse/convolution.h.)
#include <algorithm>
#include <array>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "kernels/product/product.h"
#include "kernels/sparse/parts.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/parallel_for.h"

namespace interp::sparse {
namespace {

absl::Status ExpandConv(Expansion& ops) {
  const Parts x = InputParts(ops, "x");
  const VarId kernel = ops.Input("kernel");
  const VarId shape = ops.Add("coo_conv_shape", {{"Shape", x.shape}, {"Kernel", kernel}});
  const VarId values = ops.Add(
      "coo_conv",
      {{"Values", x.values}, {"Indices", x.indices}, {"Shape", x.shape}, {"Kernel", kernel}});
  if (values == Expansion::kAbsent) return absl::OkStatus();
  SetParts(ops, "out", {.values = values, .indices = ops.AlsoGives("OutIndices"), .shape = shape});
  ops.LeaveOut("rulebook");
  ops.LeaveOut("counter");
  return absl::OkStatus();
}
INTERP_REGISTER_EXPANSION(ExpansionDef{
    .type = "sparse_conv3d",
    .inputs = {{"x"}, {"kernel"}},
    .outputs = {{"out"}, {"rulebook", kOptional}, {"counter", kOptional}},
    .expand = ExpandConv});

struct ConvAttrs {
  std::vector<int64_t> strides;
  std::vector<int64_t> paddings;
  std::vector<int64_t> dilations;
  bool subm = false;
};

bool AllAtLeast(int64_t least, const std::vector<int64_t>& values) {
  return std::all_of(values.begin(), values.end(), [least](int64_t v) { return v >= least; });
}

bool AllAtMost(int64_t most, const std::vector<int64_t>& values) {
  return std::all_of(values.begin(), values.end(), [most](int64_t v) { return v <= most; });
}

ConvAttrs ReadConvAttrs(AttrReader& reader) {
  ConvAttrs attrs = {reader.Ints("strides"), reader.Ints("paddings"), reader.Ints("dilations"),
                     reader.Bool("subm", false)};
  if (!AllAtLeast(1, attrs.strides) || !AllAtLeast(1, attrs.dilations) ||
      !AllAtLeast(0, attrs.paddings)) {
    reader.Fail("a stride or dilation is below 1, or a padding below 0");
  }
  constexpr int64_t kMost = int64_t{1} << 24;
  if (!AllAtMost(kMost, attrs.dilations) || !AllAtMost(kMost, attrs.paddings)) {
    reader.Fail(absl::StrCat("a dilation or padding is above ", kMost));
  }
  if (reader.Int("groups", 1) != 1) reader.Fail("attribute 'groups' is not 1");
  return attrs;
}

// One dimension of space.
struct Axis {
  int64_t in = 0;
  int64_t out = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;

  // The place of the result in whose window place `at` is element `k`; -1: none.
  int64_t OutOf(int64_t at, int64_t k) const {
    const int64_t first = at + padding - k * dilation;
    return first < 0 || first % stride != 0 || first / stride >= out ? -1 : first / stride;
  }
};

struct Geometry {
  std::vector<Axis> axes;
  int64_t offsets = 1;  // elements of a window
  Shape out;            // the shape of the whole result
};

absl::StatusOr<Geometry> FindGeometry(const ConvAttrs& attrs, const Shape& x, const Shape& kernel) {
  const int space = kernel.rank() - 2;
  const auto fits = [space](const std::vector<int64_t>& list) { return std::ssize(list) == space; };
  if ((space != 2 && space != 3) || x.rank() != space + 2 || x.back() != kernel.back(2)) {
    return InvalidArgument("input 'Kernel' has shape ", ToString(kernel),
                           ", which does not fit a sparse tensor of shape ", ToString(x));
  }
  if (!fits(attrs.strides) || !fits(attrs.paddings) || !fits(attrs.dilations)) {
    return InvalidArgument("expected ", space, " strides, paddings and dilations");
  }
  Geometry geometry;
  geometry.out = x;
  geometry.out[x.rank() - 1] = kernel.back();
  for (int d = 0; d < space; ++d) {
    Axis axis = {.in = x[d + 1], .kernel = kernel[d], .dilation = attrs.dilations[d]};
    axis.stride = attrs.subm ? 1 : attrs.strides[d];
    axis.padding = attrs.subm ? axis.kernel / 2 * axis.dilation : attrs.paddings[d];
    const int64_t window = (axis.kernel - 1) * axis.dilation + 1;
    const int64_t room = axis.in + 2 * axis.padding - window;
    axis.out = attrs.subm ? axis.in : room < 0 ? 0 : room / axis.stride + 1;
    geometry.out[d + 1] = axis.out;
    geometry.offsets *= axis.kernel;
    geometry.axes.push_back(axis);
  }
  if (!geometry.out.CheckedNumel().has_value()) {
    return InvalidArgument("a result of shape ", ToString(geometry.out), " has too many elements");
  }
  return geometry;
}

constexpr int kShapeOfX = 0;
constexpr int kShapeKernel = 1;

absl::Status InferConvShape(InferContext& ctx) {
  ctx.ShareShape(kShapeOfX, 0);
  return absl::OkStatus();
}

absl::Status ConvShape(KernelContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape x, ReadShape(ctx.input(kShapeOfX)));
  INTERP_ASSIGN_OR_RETURN(const Geometry geometry,
                          FindGeometry(ctx.attrs<ConvAttrs>(), x, ctx.input(kShapeKernel).shape));
  std::copy(geometry.out.begin(), geometry.out.end(), ctx.output(0).mutable_data<int64_t>());
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "coo_conv_shape",
    .inputs = {{"Shape"}, {"Kernel", kNoNeedBuffer | kAnyDType}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<ConvAttrs, ReadConvAttrs>,
    .infer = InferConvShape,
    .kernels = {{DType::kInt64, ConvShape}},
});

// A point of X in the window of a place of the result.
struct Pair {
  int64_t in;
  int64_t out;
};

// The pairs of each element of the window; `out` is a place.
class PairFinder {
 public:
  PairFinder(const Geometry& geometry, const Points& x) : geometry_(geometry), x_(x) {}

  std::vector<std::vector<Pair>> Find(bool subm) const {
    absl::flat_hash_set<int64_t> places;
    if (subm) places.insert(x_.keys.begin(), x_.keys.end());
    std::vector<std::vector<Pair>> pairs(static_cast<size_t>(geometry_.offsets));
    for (int64_t offset = 0; offset < geometry_.offsets; ++offset) {
      for (int64_t i = 0; i < std::ssize(x_.keys); ++i) {
        const int64_t out = OutOf(x_.keys[i], offset);
        if (out >= 0 && (!subm || places.contains(out))) pairs[offset].push_back({i, out});
      }
    }
    return pairs;
  }

 private:
  int64_t OutOf(int64_t key, int64_t offset) const {
    int64_t out = 0;
    int64_t step = 1;
    for (auto axis = geometry_.axes.rbegin(); axis != geometry_.axes.rend(); ++axis) {
      const int64_t at = axis->OutOf(key % axis->in, offset % axis->kernel);
      if (at < 0) return -1;
      out += at * step;
      step *= axis->out;
      key /= axis->in;
      offset /= axis->kernel;
    }
    return out + key * step;  // what is left of the key is the image
  }

  const Geometry& geometry_;
  const Points& x_;
};

// The places of the result in order; pairs then have indices into these.
std::vector<int64_t> NumberPlaces(std::vector<std::vector<Pair>>& pairs) {
  absl::flat_hash_map<int64_t, int64_t> numbers;
  std::vector<int64_t> places;
  for (const std::vector<Pair>& list : pairs) {
    for (const Pair& pair : list) {
      if (numbers.try_emplace(pair.out, 0).second) places.push_back(pair.out);
    }
  }
  std::sort(places.begin(), places.end());
  for (int64_t i = 0; i < std::ssize(places); ++i) numbers[places[i]] = i;
  for (std::vector<Pair>& list : pairs) {
    for (Pair& pair : list) pair.out = numbers.find(pair.out)->second;
  }
  return places;
}

// out += the rows of x that the pairs name, times the matrix of their element of the window.
template <typename T>
absl::Status AddProducts(KernelContext& ctx, const std::vector<Pair>& pairs, nn::Product product,
                         const T* x, const T* matrix, T* out) {
  product.m = std::ssize(pairs);
  const int64_t k = product.k;
  const int64_t n = product.n;
  INTERP_ASSIGN_OR_RETURN(
      const Workspace work,
      ctx.workspace(static_cast<size_t>(product.m) * static_cast<size_t>(k + n) * sizeof(T)));
  T* const rows = work.data<T>();
  T* const products = rows + product.m * k;
  ParallelFor(ctx.num_threads(), product.m, GrainFor(k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(x + pairs[i].in * k, k, rows + i * k);
    }
  });
  INTERP_RETURN_IF_ERROR(nn::RunProduct<T>(ctx, product, rows, matrix, /*y_constant=*/false,
                                           /*bias=*/nullptr, products));
  // Points that lie at one place add to one row, so this stays in one thread.
  for (int64_t i = 0; i < product.m; ++i) {
    for (int64_t j = 0; j < n; ++j) out[pairs[i].out * n + j] += products[i * n + j];
  }
  return absl::OkStatus();
}

constexpr int kValues = 0;
constexpr int kIndices = 1;
constexpr int kShape = 2;
constexpr int kKernel = 3;
constexpr int kOut = 0;
constexpr int kOutIndices = 1;

absl::Status AllocateResult(KernelContext& ctx, const Geometry& geometry,
                            const std::vector<int64_t>& places) {
  Tensor& out = ctx.output(kOut);
  Tensor& indices = ctx.output(kOutIndices);
  out.shape = {std::ssize(places), geometry.out.back()};
  indices.shape = {ctx.input(kIndices).shape[0], std::ssize(places)};
  INTERP_RETURN_IF_ERROR(ctx.Allocate(out));
  INTERP_RETURN_IF_ERROR(ctx.Allocate(indices));
  WriteIndices(places, geometry.out, indices);
  FillZero(ctx.num_threads(), out);
  return absl::OkStatus();
}

template <typename T>
absl::Status Conv(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<ConvAttrs>();
  const Tensor& values = ctx.input(kValues);
  const Tensor& kernel = ctx.input(kKernel);
  INTERP_ASSIGN_OR_RETURN(const Points x,
                          ReadPoints(values, ctx.input(kIndices), ctx.input(kShape)));
  INTERP_ASSIGN_OR_RETURN(const Geometry geometry, FindGeometry(attrs, x.shape, kernel.shape));
  if (x.sparse_dims != x.shape.rank() - 1) {
    return InvalidArgument("the sparse tensor has ", x.sparse_dims,
                           " dimensions of indices, expected all but the channels");
  }
  std::vector<std::vector<Pair>> pairs = PairFinder(geometry, x).Find(attrs.subm);
  const std::vector<int64_t> places = NumberPlaces(pairs);
  INTERP_RETURN_IF_ERROR(AllocateResult(ctx, geometry, places));
  nn::Product product;
  product.k = kernel.shape.back(2);
  product.n = kernel.shape.back();
  const std::array<int64_t, 1> one = {1};
  INTERP_RETURN_IF_ERROR(nn::BroadcastBatch(one, one, product));
  const T* matrix = kernel.data<T>();
  for (const std::vector<Pair>& list : pairs) {
    if (!list.empty()) {
      INTERP_RETURN_IF_ERROR(AddProducts(ctx, list, product, values.data<T>(), matrix,
                                         ctx.output(kOut).mutable_data<T>()));
    }
    matrix += product.k * product.n;
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "coo_conv",
    .inputs = {{"Values"}, {"Indices", kAnyDType}, {"Shape", kAnyDType}, {"Kernel"}},
    .outputs = {{"Out"}, {"OutIndices"}},
    .parse = ParseAttrs<ConvAttrs, ReadConvAttrs>,
    .infer_dtype = [](DTypeContext& ctx) { ctx.Set(kOutIndices, ctx.input(kIndices)); },
    .kernels = {{DType::kFloat32, Conv<float>}, {DType::kFloat64, Conv<double>}},
    .precision = PrecisionRule::kFull,
    .dynamic_outputs = true,
});

}  // namespace
}  // namespace interp::sparse
