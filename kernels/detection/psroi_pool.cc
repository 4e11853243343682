// psroi_pool: the average over each bin of a region of interest, each bin and output channel from
// an input channel of its own. A bin outside the image gives 0.
#include "kernels/detection/psroi_pool.h"

#include <vector>

#include "core/op_def.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kX = 0;
constexpr int kRois = 1;
constexpr int kRoisNum = 2;
constexpr int kOut = 0;

constexpr int64_t kGrain = 1024;  // bins per task, tens of pixels each

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(
      const Shape out,
      InferPsRoiShape(ctx.attrs<PsRoiAttrs>(), ctx.input(kX).shape, ctx.input(kRois).shape));
  ctx.SetShape(kOut, out);
  return absl::OkStatus();
}

template <typename T>
T Average(const PsRoiBin& bin, int64_t width, const T* plane) {
  if (bin.area() == 0) return T{0};
  T sum = 0;
  for (int64_t y = bin.top; y < bin.bottom; ++y) {
    for (int64_t i = y * width + bin.left; i < y * width + bin.right; ++i) sum += plane[i];
  }
  return sum / static_cast<T>(bin.area());
}

template <typename T>
absl::Status PsRoiPool(KernelContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& rois = ctx.input(kRois);
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> images,
                          ImageOfRoi(rois, ctx.optional_input(kRoisNum), x.shape[0]));
  const RoiGrid& grid = ctx.attrs<PsRoiAttrs>().grid;
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  const int64_t bins = grid.height * grid.width;
  T* const out = ctx.output(kOut).mutable_data<T>();
  ParallelFor(ctx.num_threads(), rois.shape[0] * channels, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t region = i / channels, bin = i % bins;
      const PsRoiBin place = PlacePsRoiBin(grid, rois.data<T>() + 4 * region, bin / grid.width,
                                           bin % grid.width, height, width);
      const int64_t plane = images[region] * channels + i % channels;
      out[i] = Average(place, width, x.data<T>() + plane * height * width);
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "psroi_pool",
    .inputs = {{"X"}, {"ROIs"}, {"RoisNum", kOptional | kAnyDType}},
    .outputs = {{"Out"}},
    .parse = ParseAttrs<PsRoiAttrs, ReadPsRoiAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, PsRoiPool<float>}, {DType::kFloat64, PsRoiPool<double>}},
    .gradient = {.inputs = {"X", "ROIs", "RoisNum", "Out@GRAD"}, .outputs = {"X@GRAD"}},
});

}  // namespace
}  // namespace interp
