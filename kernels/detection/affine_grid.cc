// affine_grid: where each pixel of an image samples from, for grid_sampler. Theta [N,2,3] and the
// shape of the images [N,C,H,W] give Output [N,H,W,2]; Theta [N,3,4] with [N,C,D,H,W] gives
// [N,D,H,W,3].
#include "kernels/detection/affine_grid.h"

#include "absl/strings/str_join.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kTheta = 0;
constexpr int kOutputShape = 1;
constexpr int kOutput = 0;

absl::Status Infer(InferContext& ctx) {
  const Shape& theta = ctx.input(kTheta).shape;
  INTERP_ASSIGN_OR_RETURN(const IntList image, AffineImageShape(ctx, kOutputShape));
  const int64_t rank = static_cast<int64_t>(image.size()) - 2;
  if (theta.rank() != 3 || theta[1] != rank || theta[2] != rank + 1 || theta[0] != image[0]) {
    return InvalidArgument("input 'Theta' has shape ", ToString(theta), ", expected [", image[0],
                           ",", rank, ",", rank + 1, "] for images [", absl::StrJoin(image, ","),
                           "]");
  }
  Shape out = {image[0]};
  for (size_t i = 2; i < image.size(); ++i) out.push_back(image[i]);
  out.push_back(rank);
  if (!out.CheckedNumel().has_value()) {
    return InvalidArgument("the output ", ToString(out), " is too large");
  }
  ctx.SetShape(kOutput, out);
  return absl::OkStatus();
}

template <typename T>
absl::Status AffineGrid(KernelContext& ctx) {
  if (ctx.output(kOutput).numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const IntList image, AffineImageShape(ctx, kOutputShape));
  const AffinePoints<T> points(image, ctx.attrs<AffineGridAttrs>().align_corners);
  const int rank = points.rank();
  const int64_t pixels = points.size();
  const T* const theta = ctx.input(kTheta).data<T>();
  T* const out = ctx.output(kOutput).mutable_data<T>();
  ParallelFor(ctx.num_threads(), image[0] * pixels, kElementwiseGrain / 8,
              [&](int64_t begin, int64_t end) {
                T point[4];
                for (int64_t i = begin; i < end; ++i) {
                  points.Get(i % pixels, point);
                  const T* row = theta + i / pixels * rank * (rank + 1);
                  for (int r = 0; r < rank; ++r, row += rank + 1) {
                    T sum = 0;
                    for (int k = 0; k <= rank; ++k) sum += point[k] * row[k];
                    out[i * rank + r] = sum;
                  }
                }
              });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "affine_grid",
    .inputs = {{"Theta"}, {"OutputShape", kOptional | kAnyDType | kValueInInfer}},
    .outputs = {{"Output"}},
    .parse = ParseAttrs<AffineGridAttrs, ReadAffineGridAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, AffineGrid<float>}, {DType::kFloat64, AffineGrid<double>}},
    .gradient = {.inputs = {"Theta", "OutputShape", "Output@GRAD"}, .outputs = {"Theta@GRAD"}},
});

}  // namespace

AffineGridAttrs ReadAffineGridAttrs(AttrReader& reader) {
  return {ReadIntListAttr(reader, "output_shape"), reader.Bool("align_corners", true)};
}

absl::StatusOr<IntList> AffineImageShape(const OpContext& ctx, int slot) {
  INTERP_ASSIGN_OR_RETURN(IntList image, ReadIntList(ctx, {.name = "output_shape", .tensor = slot},
                                                     ctx.attrs<AffineGridAttrs>().output_shape));
  bool right = image.size() == 4 || image.size() == 5;
  for (const int64_t dim : image) right &= dim >= 0;
  if (right) return image;
  return InvalidArgument("output_shape [", absl::StrJoin(image, ","),
                         "], expected 4 or 5 dims from 0");
}

}  // namespace interp
