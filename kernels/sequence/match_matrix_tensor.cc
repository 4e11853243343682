// match_matrix_tensor: for each pair of sequences x of X and y of Y, the matrices x W_t y^T, one
// for each of the `dim_t` slices W_t = W[:, t, :], one after the other as rows of one element. Tmp
// = X times all W_t, in rows of one element, too. match_matrix_tensor_grad: its derivatives.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/op_def.h"
#include "kernels/product/product.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/data_or_null.h"
#include "kernels/util/fill_zero.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/shape_args.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kY = 1;
constexpr int kW = 2;
constexpr int kOut = 0;
constexpr int kTmp = 1;

struct Attrs {
  int64_t slices = 1;
};

Attrs ReadAttrs(AttrReader& reader) {
  const Attrs attrs = {reader.Int("dim_t", 1)};
  if (attrs.slices < 1) {
    reader.Fail(absl::StrCat("attribute 'dim_t' is ", attrs.slices, ", expected 1 or more"));
  }
  return attrs;
}

// Where the matrices of each pair of sequences start in Out. InvalidArgument unless X, Y and W fit
// each other.
absl::StatusOr<std::vector<int64_t>> Places(const OpContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& y = ctx.input(kY);
  const Shape& w = ctx.input(kW).shape;
  const int64_t slices = ctx.attrs<Attrs>().slices;
  if (x.shape.rank() != 2 || y.shape.rank() != 2 || !(w == Shape{x.shape[1], slices, y.shape[1]}) ||
      x.shape[1] != y.shape[1]) {
    return InvalidArgument("inputs 'X', 'Y' and 'W' have shapes ", ToString(x.shape), ", ",
                           ToString(y.shape), " and ", ToString(w), ", expected [m,D], [n,D] and ",
                           "[D,", slices, ",D]");
  }
  INTERP_ASSIGN_OR_RETURN(const Offsets of_x, OnlyLevelOffsets(x, "X"));
  INTERP_ASSIGN_OR_RETURN(const Offsets of_y, OnlyLevelOffsets(y, "Y"));
  if (of_x.size() != of_y.size()) {
    return InvalidArgument("inputs 'X' and 'Y' have ", SequenceCount(of_x), " and ",
                           SequenceCount(of_y), " sequences, expected as many");
  }
  std::vector<int64_t> places = {0};
  for (size_t n = 1; n < of_x.size(); ++n) {
    INTERP_ASSIGN_OR_RETURN(const int64_t pairs,
                            CheckedProduct(of_x[n] - of_x[n - 1], of_y[n] - of_y[n - 1]));
    INTERP_ASSIGN_OR_RETURN(const int64_t size, CheckedProduct(pairs, slices));
    INTERP_ASSIGN_OR_RETURN(const int64_t place, CheckedSum(places.back(), size));
    places.push_back(place);
  }
  return places;
}

// Elements of Tmp.
absl::StatusOr<int64_t> TmpSize(const OpContext& ctx) {
  return CheckedProduct(ctx.input(kX).shape[0], ctx.input(kW).shape.numel(1, 3));
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(std::vector<int64_t> places, Places(ctx));
  INTERP_ASSIGN_OR_RETURN(const int64_t tmp, TmpSize(ctx));
  ctx.SetShape(kTmp, {tmp, 1});
  ctx.SetShape(kOut, {places.back(), 1});
  ctx.output(kOut).lod = {std::move(places)};
  return absl::OkStatus();
}

// Calls body(row of X, row of Y, slice, element of Out) for all pairs of rows.
template <typename Body>
void ForEachElement(Offsets of_x, Offsets of_y, int64_t slices, const Body& body) {
  int64_t element = 0;
  for (int64_t n = 0; n < SequenceCount(of_x); ++n) {
    for (int64_t t = 0; t < slices; ++t) {
      for (int64_t i = of_x[n]; i < of_x[n + 1]; ++i) {
        for (int64_t j = of_y[n]; j < of_y[n + 1]; ++j) body(i, j, t, element++);
      }
    }
  }
}

template <typename T>
absl::Status MatchMatrix(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const int64_t slices = ctx.attrs<Attrs>().slices;
  const int64_t width = x.shape[1];
  T* const tmp = ctx.output(kTmp).mutable_data<T>();
  INTERP_RETURN_IF_ERROR(nn::RunProduct<T>(ctx, nn::ProductOf(x.shape[0], slices * width, width),
                                           x.data<T>(), ctx.input(kW).data<T>(),
                                           ctx.input_is_constant(kW), /*bias=*/nullptr, tmp));
  const T* const y = ctx.input(kY).data<T>();
  T* const out = ctx.output(kOut).mutable_data<T>();
  ForEachElement(x.lod.back(), ctx.input(kY).lod.back(), slices,
                 [=](int64_t i, int64_t j, int64_t t, int64_t at) {
                   const T* const left = tmp + (i * slices + t) * width;
                   T sum = 0;
                   for (int64_t k = 0; k < width; ++k) sum += left[k] * y[j * width + k];
                   out[at] = sum;
                 });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "match_matrix_tensor",
    .inputs = {{"X"}, {"Y"}, {"W"}},
    .outputs = {{"Out"}, {"Tmp"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, MatchMatrix<float>}, {DType::kFloat64, MatchMatrix<double>}},
    .gradient = {.inputs = {"X", "Y", "W", "Tmp", "Out@GRAD"},
                 .outputs = {"X@GRAD", "Y@GRAD", "W@GRAD"}},
});

constexpr int kGivenTmp = 3;
constexpr int kOutGrad = 4;

absl::Status InferGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> places, Places(ctx));
  INTERP_ASSIGN_OR_RETURN(const int64_t tmp, TmpSize(ctx));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kGivenTmp, "Tmp", {tmp, 1}));
  INTERP_RETURN_IF_ERROR(CheckGradientShape(ctx, kOutGrad, "Out@GRAD", {places.back(), 1}));
  for (const int slot : {kX, kY, kW}) ctx.ShareShape(slot, slot);
  return absl::OkStatus();
}

template <typename T>
absl::Status MatchMatrixGrad(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& y = ctx.input(kY);
  const int64_t slices = ctx.attrs<Attrs>().slices;
  const int64_t width = x.shape[1];
  INTERP_ASSIGN_OR_RETURN(const int64_t tmp_size, TmpSize(ctx));
  INTERP_ASSIGN_OR_RETURN(const Workspace memory,
                          ctx.workspace(static_cast<size_t>(tmp_size) * sizeof(T)));
  T* const tmp_grad = memory.data<T>();
  std::fill_n(tmp_grad, tmp_size, T{0});
  Tensor* const y_grad_tensor = ctx.optional_output(kY);
  if (y_grad_tensor != nullptr) FillZero(ctx.num_threads(), *y_grad_tensor);
  T* const y_grad = DataOrNull<T>(y_grad_tensor);
  const T* const tmp = ctx.input(kGivenTmp).data<T>();
  const T* const grad = ctx.input(kOutGrad).data<T>();
  ForEachElement(x.lod.back(), y.lod.back(), slices,
                 [&](int64_t i, int64_t j, int64_t t, int64_t at) {
                   const int64_t left = (i * slices + t) * width;
                   const T* const right = y.data<T>() + j * width;
                   for (int64_t k = 0; k < width; ++k) tmp_grad[left + k] += grad[at] * right[k];
                   if (y_grad == nullptr) return;
                   for (int64_t k = 0; k < width; ++k) {
                     y_grad[j * width + k] += grad[at] * tmp[left + k];
                   }
                 });
  if (Tensor* const x_grad = ctx.optional_output(kX)) {
    nn::Product product = nn::ProductOf(x.shape[0], width, slices * width);
    product.trans_y = true;
    INTERP_RETURN_IF_ERROR(nn::RunProduct<T>(ctx, product, tmp_grad, ctx.input(kW).data<T>(),
                                             /*y_constant=*/false, /*bias=*/nullptr,
                                             x_grad->mutable_data<T>()));
  }
  if (Tensor* const w_grad = ctx.optional_output(kW)) {
    nn::Product product = nn::ProductOf(width, slices * width, x.shape[0]);
    product.trans_x = true;
    return nn::RunProduct<T>(ctx, product, x.data<T>(), tmp_grad, /*y_constant=*/false,
                             /*bias=*/nullptr, w_grad->mutable_data<T>());
  }
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "match_matrix_tensor_grad",
    .inputs = {{"X"}, {"Y"}, {"W"}, {"Tmp"}, {"Out@GRAD"}},
    .outputs = {{"X@GRAD", kOptional}, {"Y@GRAD", kOptional}, {"W@GRAD", kOptional}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = InferGrad,
    .kernels = {{DType::kFloat32, MatchMatrixGrad<float>},
                {DType::kFloat64, MatchMatrixGrad<double>}},
});

}  // namespace
}  // namespace interp
