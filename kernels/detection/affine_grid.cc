// affine_grid: where each pixel of an image samples from, for grid_sampler. Theta [N,2,3] and the
// shape of the images [N,C,H,W] give Output [N,H,W,2]; Theta [N,3,4] with [N,C,D,H,W] gives
// [N,D,H,W,3]. N is that of Theta, whatever the shape says.
#include "kernels/detection/affine_grid.h"

#include "absl/strings/str_join.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kOutput = 0;

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const IntList image, AffineImageShape(ctx));
  Shape out = {image[0]};
  for (size_t i = 2; i < image.size(); ++i) out.push_back(image[i]);
  out.push_back(std::ssize(image) - 2);
  if (!out.CheckedNumel().has_value()) {
    return InvalidArgument("the output ", ToString(out), " is too large");
  }
  ctx.SetShape(kOutput, out);
  return absl::OkStatus();
}

template <typename T>
absl::Status AffineGrid(KernelContext& ctx) {
  if (ctx.output(kOutput).numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const IntList image, AffineImageShape(ctx));
  const AffinePoints<T> points(image, ctx.attrs<AffineGridAttrs>().align_corners);
  const int rank = points.rank();
  const int64_t pixels = points.size();
  const T* const theta = ctx.input(kAffineTheta).data<T>();
  T* const out = ctx.output(kOutput).mutable_data<T>();
  ParallelFor(ctx.num_threads(), image[0] * pixels, GrainFor(8), [&](int64_t begin, int64_t end) {
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

absl::StatusOr<IntList> AffineImageShape(const OpContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(IntList image,
                          ReadIntList(ctx, {.name = "output_shape", .tensor = kAffineOutputShape},
                                      ctx.attrs<AffineGridAttrs>().output_shape));
  bool right = image.size() == 4 || image.size() == 5;
  for (size_t axis = 2; axis < image.size(); ++axis) right &= image[axis] >= 0;
  if (!right) {
    return InvalidArgument("output_shape [", absl::StrJoin(image, ","),
                           "], expected 4 or 5 dims, from 0 but for the first two");
  }
  const Shape& theta = ctx.input(kAffineTheta).shape;
  const int64_t rank = std::ssize(image) - 2;
  if (theta.rank() != 3 || theta[1] != rank || theta[2] != rank + 1) {
    return InvalidArgument("input 'Theta' has shape ", ToString(theta), ", expected [N,", rank, ",",
                           rank + 1, "] for images [", absl::StrJoin(image, ","), "]");
  }
  image[0] = theta[0];
  return image;
}

}  // namespace interp
