// lrn: local response normalisation across channels.
//   MidOut = k + alpha * sum of X^2 over the n channels around c,   Out = X * MidOut^-beta
#include <cmath>

#include "core/op_def.h"
#include "kernels/nn/image.h"

namespace interp::nn {
namespace {

constexpr int kX = 0;
constexpr int kOut = 0;
constexpr int kMidOut = 1;

struct LrnAttrs {
  int64_t size = 5;
  float k = 2;
  float alpha = 1e-4F;
  float beta = 0.75F;
  bool channels_last_dims = false;
};

LrnAttrs ReadLrn(AttrReader& reader) {
  LrnAttrs attrs;
  attrs.size = reader.Int("n", 5);
  attrs.k = reader.Float("k", 2.0F);
  attrs.alpha = reader.Float("alpha", 1e-4F);
  attrs.beta = reader.Float("beta", 0.75F);
  attrs.channels_last_dims = HasChannelsLastDims(reader.String("data_format", "AnyLayout"));
  if (attrs.size < 1 || attrs.size % 2 == 0) {
    reader.Fail(absl::StrCat("attribute 'n' is ", attrs.size, ", expected a positive odd number"));
  }
  return attrs;
}

absl::Status Infer(InferContext& ctx) {
  const Shape& x = ctx.input(kX).shape;
  if (x.rank() != 4) {
    return InvalidArgument("input 'X' has shape ", ToString(x), ", expected 4 dims");
  }
  ctx.ShareShape(kX, kOut);
  ctx.ShareShape(kX, kMidOut);
  return absl::OkStatus();
}

absl::Status Lrn(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<LrnAttrs>();
  const ImageView view = ViewImage(ctx.input(kX), attrs.channels_last_dims);
  const float* x = ctx.input(kX).data<float>();
  float* out = ctx.output(kOut).mutable_data<float>();
  Tensor* mid_tensor = ctx.optional_output(kMidOut);
  float* mid = mid_tensor == nullptr ? nullptr : mid_tensor->mutable_data<float>();
  const int64_t channels = view.channels();
  const int64_t half = attrs.size / 2;
  const int64_t stride = view.strides[1];
  const int64_t rows = view.batch() * view.dims[2];
  ParallelFor(ctx.num_threads(), rows, /*grain=*/16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * view.dims[3]; i < end * view.dims[3]; ++i) {
      const int64_t row = i / view.dims[3];
      const int64_t pixel = row / view.dims[2] * view.strides[0] +
                            row % view.dims[2] * view.strides[2] +
                            i % view.dims[3] * view.strides[3];
      for (int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        const int64_t last = std::min(channels - 1, c + half);
        for (int64_t j = std::max<int64_t>(0, c - half); j <= last; ++j) {
          sum += x[pixel + j * stride] * x[pixel + j * stride];
        }
        const float base = attrs.k + attrs.alpha * sum;
        out[pixel + c * stride] = x[pixel + c * stride] * std::pow(base, -attrs.beta);
        if (mid != nullptr) mid[pixel + c * stride] = base;
      }
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "lrn",
    .inputs = {{"X"}},
    .outputs = {{"Out"}, {"MidOut", kOptional}},
    .parse = ParseAttrs<LrnAttrs, ReadLrn>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Lrn}},
    .layout = LayoutRule::kFollows,
});

}  // namespace
}  // namespace interp::nn
