// correlation: how alike windows of two images are. Output has a channel for each displacement, the
// multiples of `stride2` up to `max_displacement` in both axes, the vertical one first, and a place
// for each `stride1` elements: the mean product of the windows of `kernel_size` around the place in
// Input1 and around the displaced one in Input2, over all channels, with `pad_size` zeros around
// the images. correlation_grad: its derivatives.
#include <algorithm>

#include "core/op_def.h"
#include "kernels/util/gradient_shape.h"
#include "kernels/util/parallel_for.h"
#include "kernels/util/zeroed_output.h"

namespace interp::correlation {
namespace {

constexpr int kInput1 = 0;
constexpr int kInput2 = 1;
constexpr int kOutput = 0;
constexpr int kOutputGrad = 2;

struct Attrs {
  int64_t pad = 0;
  int64_t kernel = 1;
  int64_t most = 0;
  int64_t stride = 1;
  int64_t step = 1;

  int64_t radius() const { return (kernel - 1) / 2; }
  int64_t steps() const { return most / step; }  // in one direction
  int64_t moves() const { return 2 * steps() + 1; }
};

Attrs ReadAttrs(AttrReader& reader) {
  const Attrs attrs = {reader.Int("pad_size", 0), reader.Int("kernel_size", 1),
                       reader.Int("max_displacement", 0), reader.Int("stride1", 1),
                       reader.Int("stride2", 1)};
  constexpr int64_t kMost = 1 << 14;
  const bool fits = attrs.pad >= 0 && attrs.kernel >= 1 && attrs.most >= 0 && attrs.stride >= 1 &&
                    attrs.step >= 1;
  const int64_t largest = std::max({attrs.pad, attrs.kernel, attrs.most, attrs.stride, attrs.step});
  if (!fits || largest > kMost) {
    reader.Fail(absl::StrCat("sizes and strides of a correlation are positive, up to ", kMost));
  }
  return attrs;
}

struct Sizes {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;
};

absl::StatusOr<Sizes> SizesOf(const OpContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  const Shape& x = ctx.input(kInput1).shape;
  if (x.rank() != 4 || !(ctx.input(kInput2).shape == x)) {
    return InvalidArgument("inputs 'Input1' and 'Input2' have shapes ", ToString(x), " and ",
                           ToString(ctx.input(kInput2).shape), ", expected images of one shape");
  }
  const auto places = [&](int64_t size) {
    const int64_t inner = size + 2 * attrs.pad - 2 * (attrs.radius() + attrs.most);
    return inner <= 0 ? int64_t{0} : (inner + attrs.stride - 1) / attrs.stride;
  };
  const Sizes sizes = {x[0], x[1], x[2], x[3], places(x[2]), places(x[3])};
  if (sizes.out_height > 0 && sizes.out_width > 0) return sizes;
  return InvalidArgument("images of shape ", ToString(x), " are smaller than 2 x ",
                         attrs.radius() + attrs.most, " beyond the padding");
}

Shape OutputShape(const Attrs& attrs, const Sizes& s) {
  return {s.batch, attrs.moves() * attrs.moves(), s.out_height, s.out_width};
}

absl::Status Infer(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Sizes sizes, SizesOf(ctx));
  ctx.SetShape(kOutput, OutputShape(ctx.attrs<Attrs>(), sizes));
  return absl::OkStatus();
}

// Calls body(element of a plane of Input1, element of one of Input2) for the pairs that are within
// both images, of the window at (y, x) of the output and the displacement (dy, dx).
template <typename Body>
void ForEachPair(const Attrs& attrs, const Sizes& s, int64_t y, int64_t x, int64_t dy, int64_t dx,
                 const Body& body) {
  const int64_t top = y * attrs.stride + attrs.most - attrs.pad;
  const int64_t left = x * attrs.stride + attrs.most - attrs.pad;
  const int64_t y_begin = std::max({top - attrs.radius(), int64_t{0}, -dy});
  const int64_t y_end = std::min({top + attrs.radius() + 1, s.height, s.height - dy});
  const int64_t x_begin = std::max({left - attrs.radius(), int64_t{0}, -dx});
  const int64_t x_end = std::min({left + attrs.radius() + 1, s.width, s.width - dx});
  for (int64_t y1 = y_begin; y1 < y_end; ++y1) {
    for (int64_t x1 = x_begin; x1 < x_end; ++x1) {
      body(y1 * s.width + x1, (y1 + dy) * s.width + x1 + dx);
    }
  }
}

// Calls body(y, x, dy, dx, element of Output) for the places of a channel.
template <typename Body>
void ForEachPlace(const Attrs& attrs, const Sizes& s, int64_t image, int64_t channel,
                  const Body& body) {
  const int64_t moves = attrs.moves();
  const int64_t dy = (channel / moves - attrs.steps()) * attrs.step;
  const int64_t dx = (channel % moves - attrs.steps()) * attrs.step;
  int64_t element = (image * moves * moves + channel) * s.out_height * s.out_width;
  for (int64_t y = 0; y < s.out_height; ++y) {
    for (int64_t x = 0; x < s.out_width; ++x) body(y, x, dy, dx, element++);
  }
}

template <typename T>
T TermsOf(const Attrs& attrs, const Sizes& s) {
  return static_cast<T>(attrs.kernel * attrs.kernel * s.channels);
}

template <typename T>
absl::Status Correlate(KernelContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  INTERP_ASSIGN_OR_RETURN(const Sizes s, SizesOf(ctx));
  const int64_t channels = attrs.moves() * attrs.moves();
  const int64_t plane = s.height * s.width;
  T* const out = ctx.output(kOutput).mutable_data<T>();
  ParallelFor(ctx.num_threads(), s.batch * channels, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t start = at / channels * s.channels * plane;
      const T* const one = ctx.input(kInput1).data<T>() + start;
      const T* const two = ctx.input(kInput2).data<T>() + start;
      ForEachPlace(attrs, s, at / channels, at % channels,
                   [&](int64_t y, int64_t x, int64_t dy, int64_t dx, int64_t element) {
                     T sum = 0;
                     ForEachPair(attrs, s, y, x, dy, dx, [&](int64_t p, int64_t q) {
                       for (int64_t c = 0; c < s.channels; ++c) {
                         sum += one[c * plane + p] * two[c * plane + q];
                       }
                     });
                     out[element] = sum / TermsOf<T>(attrs, s);
                   });
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "correlation",
    .inputs = {{"Input1"}, {"Input2"}},
    .outputs = {{"Output"}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = Infer,
    .kernels = {{DType::kFloat32, Correlate<float>}, {DType::kFloat64, Correlate<double>}},
    .gradient = {.inputs = {"Input1", "Input2", "Output@GRAD"},
                 .outputs = {"Input1@GRAD", "Input2@GRAD"}},
});

absl::Status InferGrad(InferContext& ctx) {
  INTERP_ASSIGN_OR_RETURN(const Sizes sizes, SizesOf(ctx));
  INTERP_RETURN_IF_ERROR(
      CheckGradientShape(ctx, kOutputGrad, "Output@GRAD", OutputShape(ctx.attrs<Attrs>(), sizes)));
  ctx.ShareShape(kInput1, kInput1);
  ctx.ShareShape(kInput2, kInput2);
  return absl::OkStatus();
}

// One image at a time: all displacements add to the same elements.
template <typename T>
absl::Status CorrelateGrad(KernelContext& ctx) {
  const Attrs& attrs = ctx.attrs<Attrs>();
  INTERP_ASSIGN_OR_RETURN(const Sizes s, SizesOf(ctx));
  const int64_t channels = attrs.moves() * attrs.moves();
  const int64_t plane = s.height * s.width;
  const T* const out_grad = ctx.input(kOutputGrad).data<T>();
  T* const grad1 = ZeroedOutput<T>(ctx, kInput1);
  T* const grad2 = ZeroedOutput<T>(ctx, kInput2);
  const auto add = [&](int64_t image, int64_t p, int64_t q, T factor) {
    for (int64_t c = 0; c < s.channels; ++c) {
      const int64_t start = (image * s.channels + c) * plane;
      if (grad1 != nullptr) {
        grad1[start + p] += factor * ctx.input(kInput2).data<T>()[start + q];
      }
      if (grad2 != nullptr) {
        grad2[start + q] += factor * ctx.input(kInput1).data<T>()[start + p];
      }
    }
  };
  ParallelFor(ctx.num_threads(), s.batch, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin * channels; at < end * channels; ++at) {
      ForEachPlace(attrs, s, at / channels, at % channels,
                   [&](int64_t y, int64_t x, int64_t dy, int64_t dx, int64_t element) {
                     const T factor = out_grad[element] / TermsOf<T>(attrs, s);
                     ForEachPair(attrs, s, y, x, dy, dx,
                                 [&](int64_t p, int64_t q) { add(at / channels, p, q, factor); });
                   });
    }
  });
  return absl::OkStatus();
}

INTERP_REGISTER_OP(OpDef{
    .type = "correlation_grad",
    .inputs = {{"Input1"}, {"Input2"}, {"Output@GRAD"}},
    .outputs = {{"Input1@GRAD", kOptional}, {"Input2@GRAD", kOptional}},
    .parse = ParseAttrs<Attrs, ReadAttrs>,
    .infer = InferGrad,
    .kernels = {{DType::kFloat32, CorrelateGrad<float>}, {DType::kFloat64, CorrelateGrad<double>}},
});

}  // namespace
}  // namespace interp::correlation
