// Long because bands and whole images share what an instruction keeps.
// fused_pointwise_depthwise: a convolution of 1 x 1 and the depthwise one that alone reads it, as
// in the inverted residuals of MobileNetV2.
//   Output = depthwise(pointwise(Input))
// Both are fused_conv2d without a residual: the inputs and attributes of the second have the prefix
// "Depthwise" and "depthwise_".
//
// The image between the two is several times as large as Input, often larger than the L2 cache. Its
// rows are made in bands, which stay there until they are read; those of small images all at once.
#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "absl/base/casts.h"
#include "core/machine/processor.h"
#include "kernels/conv/conv_methods.h"
#include "kernels/conv/conv_onednn.h"
#include "kernels/conv/conv_own_weights.h"
#include "kernels/conv/conv_pair.h"
#include "kernels/conv/depthwise_rows.h"
#include "kernels/nn/with_channels_last.h"
#include "kernels/product/gemm.h"
#include "kernels/util/flops.h"
#include "kernels/util/flush_denormals.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

constexpr int kInput = 0;
constexpr int kOutput = 0;

absl::Status Infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<PairAttrs>();
  INTERP_ASSIGN_OR_RETURN(const PairProblem pair, ResolvePair(ctx, attrs));
  INTERP_RETURN_IF_ERROR(CheckFoldedInputs(ctx, attrs.pointwise, pair.pointwise.out_channels));
  INTERP_RETURN_IF_ERROR(
      Annotate(CheckFoldedInputs(ctx, attrs.depthwise, pair.depthwise.out_channels), "depthwise"));
  ctx.SetShape(kOutput, ConvOutputShape(pair.depthwise, attrs.depthwise.channels_last_dims));
  return absl::OkStatus();
}

int64_t Flops(const OpContext& ctx) {
  const auto pair = ResolvePair(ctx, ctx.attrs<PairAttrs>());
  return pair.ok() ? ToFlops(pair->pointwise.flops() + pair->depthwise.flops()) : 0;
}

// The pointwise convolution of that many rows, on one thread.
struct Rows {
  int64_t count = 0;
  std::unique_ptr<OnednnConv> conv = nullptr;
  std::shared_ptr<const PackedWeights> weights = nullptr;  // null until the first run
};

// The output rows [first, last) of each image, which one thread makes in bands.
struct Lane {
  int64_t first = 0;
  int64_t last = 0;
  int64_t in_first = 0;  // the rows in between that they need
  int64_t in_last = 0;
  std::vector<Rows> rows = {};  // of bands and of the rest
};

struct Prepared {
  int64_t band = 0;         // output rows; 0: images are made as a whole
  std::vector<Lane> lanes;  // of bands
  // What makes whole ones: a method of our own, else oneDNN's, else plain loops.
  const ConvMethod* method = nullptr;
  std::unique_ptr<OnednnConv> whole;
  std::shared_ptr<const PackedWeights> weights;  // of oneDNN's
  size_t scratch_bytes = 0;                      // of a lane
  std::string algorithm;
};

struct PairState : KernelState {
  ShapeCache<Prepared> prepared;
  const Prepared* last = nullptr;
  std::shared_ptr<const PackedArrays> taps;  // constant ones, null until packed
  // Constant weights of our own methods, whatever the size of images; null until made.
  std::array<KeptWeights, kConvMethodKeys> own;  // by key

  std::string algorithm() const override { return last == nullptr ? "" : last->algorithm; }
};

// The pointwise convolution of `rows` rows of one image.
ConvProblem OfRows(ConvProblem p, int64_t rows) {
  p.batch = 1;
  p.window[0].in = rows;
  p.window[0].out = rows;
  return p;
}

int64_t RowFloats(const ConvProblem& depthwise) {
  return depthwise.window[1].in * depthwise.in_channels;
}

// Rows of the image between that output rows [first, last) reach, from `begin` to `end`.
std::pair<int64_t, int64_t> ReachedRows(const WindowAxis& axis, int64_t first, int64_t last) {
  const int64_t begin = first * axis.stride - axis.pad_begin;
  const int64_t end = (last - 1) * axis.stride - axis.pad_begin + axis.kernel;
  const int64_t low = std::clamp<int64_t>(begin, 0, axis.in);
  return {low, std::clamp(end, low, axis.in)};
}

// Output rows of a band; 0: bands do not pay. Measured on AVX-512 with an L2 cache of 2 MiB: below
// a megabyte the image between stays in the cache by itself, and a large filter, which each band
// goes through, takes its place.
int64_t BandOf(const PairProblem& pair, Algorithms algorithms, int num_threads) {
  constexpr int64_t kLargeBytes = int64_t{1} << 20;
  constexpr int64_t kBandBytes = int64_t{128} << 10;
  const WindowAxis& axis = pair.depthwise.window[0];
  const int64_t row_bytes = RowFloats(pair.depthwise) * int64_t{sizeof(float)};
  const int64_t filter_bytes =
      pair.pointwise.in_channels * pair.pointwise.out_channels * int64_t{sizeof(float)};
  if (algorithms != Algorithms::kFast || row_bytes * axis.in < kLargeBytes ||
      filter_bytes > L2CacheBytes() / 2) {
    return 0;
  }
  const int64_t band = std::max<int64_t>(kBandBytes / row_bytes / axis.stride, 1);
  return axis.out >= 2 * band * num_threads ? band : 0;
}

int64_t BandInRows(const ConvProblem& depthwise, int64_t band) {
  return band * depthwise.window[0].stride;
}

// Rows of the ring that bands are made in: those of a band and its window, and the band that is
// made ahead. Bands do not wrap around.
int64_t RingRows(const ConvProblem& depthwise, int64_t band) {
  const int64_t unit = BandInRows(depthwise, band);
  return (2 + (depthwise.window[0].kernel + unit - 1) / unit) * unit;
}

absl::Status AddRows(const ConvProblem& pointwise, const ConvEpilogue& epilogue, int64_t count,
                     Prepared& prepared, Lane& lane) {
  if (count == 0) return absl::OkStatus();
  Rows rows = {.count = count};
  INTERP_ASSIGN_OR_RETURN(rows.conv,
                          OnednnConv::Make(OfRows(pointwise, count), epilogue, DType::kFloat32));
  prepared.scratch_bytes = std::max(prepared.scratch_bytes, rows.conv->scratchpad_bytes());
  prepared.algorithm =
      absl::StrCat(rows.conv->implementation(), " + depthwise rows, bands of ", prepared.band);
  lane.rows.push_back(std::move(rows));
  return absl::OkStatus();
}

// REQUIRES: UseThreads(1).
absl::Status MakeLanes(const PairProblem& pair, const ConvEpilogue& epilogue, int num_threads,
                       Prepared& prepared) {
  const WindowAxis& axis = pair.depthwise.window[0];
  const int64_t unit = BandInRows(pair.depthwise, prepared.band);
  for (int64_t i = 0; i < num_threads; ++i) {
    Lane lane = {.first = axis.out * i / num_threads, .last = axis.out * (i + 1) / num_threads};
    std::tie(lane.in_first, lane.in_last) = ReachedRows(axis, lane.first, lane.last);
    const int64_t needed = lane.in_last - lane.in_first;
    INTERP_RETURN_IF_ERROR(
        AddRows(pair.pointwise, epilogue, needed >= unit ? unit : 0, prepared, lane));
    INTERP_RETURN_IF_ERROR(AddRows(pair.pointwise, epilogue, needed % unit, prepared, lane));
    prepared.lanes.push_back(std::move(lane));
  }
  return absl::OkStatus();
}

absl::Status PrepareWhole(const KernelContext& ctx, const PairProblem& pair,
                          const ConvEpilogue& epilogue, Prepared& prepared) {
  absl::string_view name = "plain loops";
  if (ctx.algorithms() == Algorithms::kFast &&
      WeightsAreConstant(ctx, ctx.attrs<PairAttrs>().pointwise)) {
    prepared.method = FindConvMethod(pair.pointwise);
  }
  if (prepared.method != nullptr) {
    name = prepared.method->name;
  } else {
    auto whole = OnednnConv::Make(pair.pointwise, epilogue, DType::kFloat32);
    if (!whole.ok() && !absl::IsUnimplemented(whole.status())) return whole.status();
    if (whole.ok()) prepared.whole = *std::move(whole);
    if (prepared.whole != nullptr) name = prepared.whole->implementation();
  }
  prepared.algorithm = absl::StrCat(name, " + depthwise rows");
  return absl::OkStatus();
}

absl::StatusOr<Prepared*> Prepare(KernelContext& ctx, const PairProblem& pair) {
  const auto& attrs = ctx.attrs<PairAttrs>();
  ShapeCache<Prepared>& cache = ctx.state<PairState>().prepared;
  const ConvEpilogue epilogue = EpilogueOf(ctx, attrs.pointwise);
  ShapeCache<Prepared>::Key key = KeyOf(pair.pointwise, ctx.num_threads());
  for (const int64_t number : KeyOf(pair.depthwise, ctx.num_threads())) key.push_back(number);
  key.push_back(absl::bit_cast<int32_t>(epilogue.affine.scale));
  key.push_back(absl::bit_cast<int32_t>(epilogue.affine.shift));
  if (Prepared* prepared = cache.Find(key)) return prepared;
  auto prepared = std::make_unique<Prepared>();
  prepared->band = BandOf(pair, ctx.algorithms(), ctx.num_threads());
  if (prepared->band > 0) {
    UseThreads(1);
    const absl::Status made = MakeLanes(pair, epilogue, ctx.num_threads(), *prepared);
    UseThreads(ctx.num_threads());
    if (!made.ok() && !absl::IsUnimplemented(made)) return made;
    if (!made.ok()) *prepared = Prepared();
  }
  if (prepared->band == 0) INTERP_RETURN_IF_ERROR(PrepareWhole(ctx, pair, epilogue, *prepared));
  return &cache.Insert(std::move(key), std::move(prepared));
}

// The weights of `conv`, which `kept` keeps where they are constant.
absl::Status TakeWeights(KernelContext& ctx, const OnednnConv& conv,
                         std::shared_ptr<const PackedWeights>& kept) {
  const ConvAttrs& attrs = ctx.attrs<PairAttrs>().pointwise;
  if (WeightsAreConstant(ctx, attrs)) {
    if (kept != nullptr) return absl::OkStatus();
    INTERP_ASSIGN_OR_RETURN(kept, conv.SharedWeights(ctx, attrs));
    return absl::OkStatus();
  }
  INTERP_ASSIGN_OR_RETURN(auto packed, conv.Pack(ctx, attrs));
  INTERP_ASSIGN_OR_RETURN(kept, conv.Use(std::move(packed)));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const PackedArrays>> MakeTaps(const KernelContext& ctx,
                                                             const ConvProblem& depthwise) {
  auto packed = std::make_shared<PackedArrays>();
  INTERP_ASSIGN_OR_RETURN(FoldedWeights folded, FoldWeights(ctx, ctx.attrs<PairAttrs>().depthwise));
  folded.bias.resize(static_cast<size_t>(depthwise.out_channels));  // zeros where there is none
  INTERP_ASSIGN_OR_RETURN(Tensor taps, NewPackedArray(folded.filter.size() * sizeof(float)));
  PackTaps(depthwise, folded.filter.data(), static_cast<float*>(taps.mutable_raw_data()));
  packed->arrays.push_back(std::move(taps));
  packed->arrays.push_back(
      Tensor::Of<float>({depthwise.out_channels}, absl::MakeConstSpan(folded.bias)));
  return std::shared_ptr<const PackedArrays>(std::move(packed));
}

absl::StatusOr<std::shared_ptr<const PackedArrays>> Taps(KernelContext& ctx,
                                                         const ConvProblem& depthwise) {
  constexpr uint64_t kKey = 2;  // no hash of a format is that small; interpreter/plan knows it
  auto& state = ctx.state<PairState>();
  const auto make = [&] { return MakeTaps(ctx, depthwise); };
  if (!WeightsAreConstant(ctx, ctx.attrs<PairAttrs>().depthwise)) return make();
  if (state.taps == nullptr) {
    INTERP_ASSIGN_OR_RETURN(auto taps, SharedArrays(ctx, kKey, make));
    const auto channels = static_cast<size_t>(depthwise.out_channels);
    const auto positions =
        static_cast<size_t>(depthwise.window[0].kernel * depthwise.window[1].kernel);
    INTERP_RETURN_IF_ERROR(
        CheckArrays(*taps, {channels * positions * sizeof(float), channels * sizeof(float)}));
    state.taps = std::move(taps);
  }
  return state.taps;
}

// One run.
class PairRun {
 public:
  PairRun(KernelContext& ctx, const PairProblem& pair, const DepthwiseWeights& weights,
          const float* in, float* out)
      : ctx_(ctx),
        p_(pair),
        epilogue_(EpilogueOf(ctx, ctx.attrs<PairAttrs>().depthwise)),
        weights_(weights),
        in_row_(pair.pointwise.window[1].in * pair.pointwise.in_channels),
        row_(RowFloats(pair.depthwise)),
        out_row_(pair.depthwise.window[1].out * pair.depthwise.out_channels),
        in_(in),
        out_(out) {}

  absl::Status Whole(Prepared& prepared) const {
    const WindowAxis& axis = p_.depthwise.window[0];
    const int64_t images = p_.depthwise.batch;
    INTERP_ASSIGN_OR_RETURN(const Workspace between, TakeFloats(images * axis.in * row_));
    INTERP_RETURN_IF_ERROR(Pointwise(prepared, between.data<float>()));
    ParallelForImageRows(
        ctx_.num_threads(), images, axis.out, [&](int64_t image, int64_t first, int64_t last) {
          DepthwiseRows(p_.depthwise, epilogue_, weights_,
                        {.data = between.data<float>() + image * axis.in * row_, .ring = axis.in},
                        first, last, out_ + (image * axis.out + first) * out_row_);
        });
    return absl::OkStatus();
  }

  absl::Status InBands(Prepared& prepared) const {
    const auto count = static_cast<int64_t>(prepared.lanes.size());
    const int64_t band_rows = RingRows(p_.depthwise, prepared.band);
    const size_t scratch_bytes = (prepared.scratch_bytes + 63) / 64 * 64;
    INTERP_ASSIGN_OR_RETURN(const Workspace bands, TakeFloats(count * band_rows * row_));
    INTERP_ASSIGN_OR_RETURN(const Workspace scratch,
                            ctx_.workspace(scratch_bytes * static_cast<size_t>(count)));
    std::vector<absl::Status> statuses(static_cast<size_t>(count));
    ParallelFor(ctx_.num_threads(), count, /*grain=*/1, [&](int64_t begin, int64_t end) {
      if (count > 1) UseThreads(1);  // of a thread that is one of this loop's
      for (int64_t i = begin; i < end; ++i) {
        statuses[i] =
            RunLane(prepared.lanes[i], prepared.band, bands.data<float>() + i * band_rows * row_,
                    scratch.data<char>() + static_cast<size_t>(i) * scratch_bytes);
      }
    });
    UseThreads(ctx_.num_threads());
    for (const absl::Status& status : statuses) INTERP_RETURN_IF_ERROR(status);
    return absl::OkStatus();
  }

 private:
  absl::Status Pointwise(Prepared& prepared, float* between) const {
    if (prepared.method != nullptr) {
      return RunConvMethod(ctx_, ctx_.attrs<PairAttrs>().pointwise, p_.pointwise, *prepared.method,
                           ctx_.state<PairState>().own[prepared.method->key], in_, between);
    }
    if (prepared.whole == nullptr) return PlainPointwise(between);
    return prepared.whole->Run(ctx_, prepared.weights, in_, between);
  }

  // When oneDNN cannot help.
  absl::Status PlainPointwise(float* between) const {
    const ConvProblem& p = p_.pointwise;
    const int64_t pixels = p.batch * p.window[0].in * p.window[1].in;
    const ConvAttrs& attrs = ctx_.attrs<PairAttrs>().pointwise;
    INTERP_ASSIGN_OR_RETURN(const FoldedWeights weights, FoldWeights(ctx_, attrs));
    ParallelFor(ctx_.num_threads(), pixels, /*grain=*/1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t c = 0; c < p.out_channels; ++c) {
          const float sum = Dot(in_ + i * p.in_channels, weights.filter.data() + c * p.in_channels,
                                p.in_channels);
          between[i * p.out_channels + c] = weights.bias.empty() ? sum : sum + weights.bias[c];
        }
      }
    });
    ApplyActivation(attrs.activation, between, pixels * p.out_channels);
    ApplyAffine(PostAffine(ctx_, attrs), between, pixels * p.out_channels);
    return absl::OkStatus();
  }

  absl::StatusOr<Workspace> TakeFloats(int64_t count) const {
    return ctx_.workspace(static_cast<size_t>(count) * sizeof(float));
  }
  absl::Status RunLane(Lane& lane, int64_t band, float* rows, void* scratch) const {
    const WindowAxis& axis = p_.depthwise.window[0];
    const int64_t ring = RingRows(p_.depthwise, band);
    for (int64_t image = 0; image < p_.depthwise.batch; ++image) {
      const float* const in = in_ + image * axis.in * in_row_;
      float* const out = out_ + image * axis.out * out_row_;
      int64_t end = lane.in_first;  // of the rows of the image between that were made
      for (int64_t y = lane.first; y < lane.last; y += band) {
        const int64_t next = std::min(y + band, lane.last);
        while (end < ReachedRows(axis, y, next).second) {
          Rows& some = lane.in_last - end >= lane.rows[0].count ? lane.rows[0] : lane.rows.back();
          INTERP_RETURN_IF_ERROR(some.conv->Run(some.weights, in + end * in_row_,
                                                rows + (end - lane.in_first) % ring * row_,
                                                scratch));
          end += some.count;
        }
        DepthwiseRows(p_.depthwise, epilogue_, weights_, {rows, lane.in_first, ring}, y, next,
                      out + y * out_row_);
      }
    }
    return absl::OkStatus();
  }

  KernelContext& ctx_;
  const PairProblem& p_;
  const ConvEpilogue epilogue_;
  const DepthwiseWeights& weights_;
  const int64_t in_row_;  // floats of a row
  const int64_t row_;     // of the image between
  const int64_t out_row_;
  const float* const in_;
  float* const out_;
};

absl::Status TakePointwiseWeights(KernelContext& ctx, const ConvProblem& pointwise,
                                  Prepared& prepared) {
  if (prepared.method != nullptr) {
    return MethodWeights(ctx, ctx.attrs<PairAttrs>().pointwise, pointwise, *prepared.method,
                         ctx.state<PairState>().own[prepared.method->key])
        .status();
  }
  if (prepared.whole != nullptr) {
    INTERP_RETURN_IF_ERROR(TakeWeights(ctx, *prepared.whole, prepared.weights));
  }
  for (Lane& lane : prepared.lanes) {
    for (Rows& rows : lane.rows) {
      INTERP_RETURN_IF_ERROR(TakeWeights(ctx, *rows.conv, rows.weights));
    }
  }
  return absl::OkStatus();
}

// What PointwiseDepthwise keeps.
absl::Status PreparePair(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<PairAttrs>();
  if (ctx.output(kOutput).numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const PairProblem pair, ResolvePair(ctx, attrs));
  const FlushDenormals flush;
  UseThreads(ctx.num_threads());
  INTERP_ASSIGN_OR_RETURN(Prepared * prepared, Prepare(ctx, pair));
  if (WeightsAreConstant(ctx, attrs.pointwise)) {
    INTERP_RETURN_IF_ERROR(TakePointwiseWeights(ctx, pair.pointwise, *prepared));
  }
  return WeightsAreConstant(ctx, attrs.depthwise) ? Taps(ctx, pair.depthwise).status()
                                                  : absl::OkStatus();
}

// `in` and `out` are dense channels-last images.
absl::Status RunChannelsLast(KernelContext& ctx, const PairProblem& pair, const float* in,
                             float* out) {
  const FlushDenormals flush;
  UseThreads(ctx.num_threads());
  INTERP_ASSIGN_OR_RETURN(Prepared * prepared, Prepare(ctx, pair));
  ctx.state<PairState>().last = prepared;
  INTERP_RETURN_IF_ERROR(TakePointwiseWeights(ctx, pair.pointwise, *prepared));
  INTERP_ASSIGN_OR_RETURN(const auto taps, Taps(ctx, pair.depthwise));
  const DepthwiseWeights weights = {ElementsOf<float>(*taps, 0), ElementsOf<float>(*taps, 1)};
  const PairRun run(ctx, pair, weights, in, out);
  return prepared->band > 0 ? run.InBands(*prepared) : run.Whole(*prepared);
}

absl::Status PointwiseDepthwise(KernelContext& ctx) {
  const auto& attrs = ctx.attrs<PairAttrs>();
  Tensor& output = ctx.output(kOutput);
  if (output.numel() == 0) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const PairProblem pair, ResolvePair(ctx, attrs));
  if (!DepthwiseRowsTakes(pair.depthwise)) {
    return Unimplemented("a depthwise convolution of that window, stride or number of channels (",
                         pair.depthwise.in_channels, ") behind one of 1 x 1");
  }
  return WithChannelsLast<float>(
      ctx, ctx.input(kInput), output, attrs.pointwise.channels_last_dims,
      [&](const float* in, float* out) { return RunChannelsLast(ctx, pair, in, out); });
}

OpDef PairDef() {
  return {
      .type = "fused_pointwise_depthwise",
      .inputs = PairInputs(),
      .outputs = {{"Output"}},
      .parse = ParseAttrs<PairAttrs, ReadPairAttrs>,
      .infer = Infer,
      .kernels = {{.dtype = DType::kFloat32, .run = PointwiseDepthwise, .prepare = PreparePair}},
      .layout = LayoutRule::kPrefersChannelsLast,
      .flops = Flops};
}

INTERP_REGISTER_OP(PairDef());

}  // namespace
}  // namespace interp::nn
