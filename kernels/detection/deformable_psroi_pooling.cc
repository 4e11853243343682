// deformable_psroi_pooling: position-sensitive pooling whose bins are moved by Trans, in parts of
// the region's size. Output is the average of the samples of a bin that lie in the image, 0 where
// none does; TopCount is how many do.
#include <vector>

#include "kernels/detection/deformable_psroi.h"
#include "kernels/detection/roi.h"
#include "kernels/util/parallel_for.h"

namespace interp {
namespace {

constexpr int kTopCount = 0;
constexpr int kOutput = 1;

constexpr int64_t kGrain = 256;  // bins per task, tens of samples each

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Shape out, ResolveDeformablePsRoi(ctx));
  ctx.SetShape(kTopCount, out);
  ctx.SetShape(kOutput, out);
  return absl::OkStatus();
}

template <typename T>
T Interpolate(const T* plane, int64_t width, const DeformableSample<T>& s) {
  const T* const low = plane + s.y0 * width;
  const T* const high = plane + s.y1 * width;
  return (1 - s.dx) * (1 - s.dy) * low[s.x0] + (1 - s.dx) * s.dy * high[s.x0] +
         s.dx * (1 - s.dy) * low[s.x1] + s.dx * s.dy * high[s.x1];
}

template <typename T>
absl::Status Pool(KernelContext& ctx) {
  const Tensor& x = ctx.input(kPsRoiInput);
  const Tensor& rois = ctx.input(kPsRoiRois);
  const int64_t samples = ctx.attrs<DeformablePsRoiAttrs>().samples;
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> images,
                          ImageOfRoi(rois, /*rois_num=*/nullptr, x.shape[0]));
  const Shape& out = ctx.output(kOutput).shape;
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  T* const to = ctx.output(kOutput).mutable_data<T>();
  T* const counts = ctx.output(kTopCount).mutable_data<T>();
  ParallelFor(ctx.num_threads(), out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const DeformableBin<T> bin = PlaceDeformableBin<T>(ctx, out, i);
      const int64_t image = images[i / (out.numel() / out[0])];
      const T* const plane = x.data<T>() + (image * channels + bin.channel) * height * width;
      T sum = 0;
      const int64_t count = ForEachDeformableSample(
          bin, samples, height, width,
          [&](const DeformableSample<T>& s) { sum += Interpolate(plane, width, s); });
      to[i] = count == 0 ? T{0} : sum / static_cast<T>(count);
      counts[i] = static_cast<T>(count);
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "deformable_psroi_pooling",
    .inputs = {{"Input"}, {"ROIs"}, {"Trans"}},
    .outputs = {{"TopCount"}, {"Output"}},
    .parse = ParseAttrs<DeformablePsRoiAttrs, ReadDeformablePsRoiAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Pool<float>}, {DType::kFloat64, Pool<double>}},
    .gradient = {.inputs = {"Input", "ROIs", "Trans", "TopCount", "Output@GRAD"},
                 .outputs = {"Input@GRAD", "Trans@GRAD"}},
});

constexpr int64_t kMostParts = 1 << 20;

// Two positive values of an attribute.
void ReadPair(AttrReader& reader, absl::string_view name, int64_t& height, int64_t& width) {
  const std::vector<int64_t> pair = reader.Ints(name);
  const bool fits = pair.size() == 2 && pair[0] > 0 && pair[0] <= kMostParts && pair[1] > 0 &&
                    pair[1] <= kMostParts;
  if (fits) {
    height = pair[0];
    width = pair[1];
    return;
  }
  reader.Fail(absl::StrCat("attribute '", name, "' is not two values of 1 to ", kMostParts));
}

void CheckPositive(AttrReader& reader, absl::string_view name, int64_t value, int64_t most) {
  if (value > 0 && value <= most) return;
  reader.Fail(absl::StrCat("attribute '", name, "' is ", value, ", expected 1 to ", most));
}

}  // namespace

DeformablePsRoiAttrs ReadDeformablePsRoiAttrs(AttrReader& reader) {
  DeformablePsRoiAttrs attrs = {.no_trans = reader.Bool("no_trans", false),
                                .spatial_scale = reader.Float("spatial_scale", 1),
                                .output_dim = reader.Int("output_dim", 1),
                                .pooled_height = reader.Int("pooled_height", 1),
                                .pooled_width = reader.Int("pooled_width", 1),
                                .samples = reader.Int("sample_per_part", 4),
                                .trans_std = reader.Float("trans_std", 0.1f)};
  ReadPair(reader, "group_size", attrs.group_height, attrs.group_width);
  attrs.part_height = attrs.pooled_height;
  attrs.part_width = attrs.pooled_width;
  if (reader.Has("part_size")) ReadPair(reader, "part_size", attrs.part_height, attrs.part_width);
  CheckPositive(reader, "output_dim", attrs.output_dim, kMostParts);
  CheckPositive(reader, "pooled_height", attrs.pooled_height, kMostParts);
  CheckPositive(reader, "pooled_width", attrs.pooled_width, kMostParts);
  constexpr int64_t kMostSamples = 1024;  // of a bin's side
  CheckPositive(reader, "sample_per_part", attrs.samples, kMostSamples);
  return attrs;
}

absl::StatusOr<Shape> ResolveDeformablePsRoi(const OpContext& ctx) {
  const auto& a = ctx.attrs<DeformablePsRoiAttrs>();
  const Shape& x = ctx.input(kPsRoiInput).shape;
  const Shape& rois = ctx.input(kPsRoiRois).shape;
  const Shape& trans = ctx.input(kPsRoiTrans).shape;
  if (x.rank() != 4 || x[2] < 1 || x[3] < 1 ||
      x[1] < a.output_dim * a.group_height * a.group_width) {
    return InvalidArgument("input 'Input' has shape ", ToString(x), ", expected [N,C,H,W] with ",
                           a.output_dim, " x ", a.group_height, " x ", a.group_width, " channels");
  }
  if (rois.rank() != 2 || rois[1] != 4) {
    return InvalidArgument("input 'ROIs' has shape ", ToString(rois), ", expected [R,4]");
  }
  const bool fits = trans.rank() == 4 && trans[0] == rois[0] && trans[1] >= 2 &&
                    trans[1] % 2 == 0 && a.output_dim % (trans[1] / 2) == 0 &&
                    trans[2] == a.part_height && trans[3] == a.part_width;
  if (!a.no_trans && !fits) {
    return InvalidArgument("input 'Trans' has shape ", ToString(trans), ", expected [", rois[0],
                           ",2K,", a.part_height, ",", a.part_width, "] where K divides ",
                           a.output_dim);
  }
  const Shape out = {rois[0], a.output_dim, a.pooled_height, a.pooled_width};
  if (out.CheckedNumel().has_value()) return out;
  return InvalidArgument("the output ", ToString(out), " is too large");
}

}  // namespace interp
