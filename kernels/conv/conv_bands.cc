#include "kernels/conv/conv_bands.h"

#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "kernels/util/convert_elements.h"
#include "kernels/util/parallel_for.h"

namespace interp::nn {
namespace {

int64_t RowElements(const ConvProblem& p, bool output) {
  int64_t elements = output ? p.out_channels : p.in_channels;
  for (int i = 1; i < p.window.rank; ++i) elements *= output ? p.window[i].out : p.window[i].in;
  return elements;
}

size_t InLines(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

bool ConvInBands::Pays(const ConvProblem& p, const ConvEpilogue& epilogue, DType dtype,
                       int num_threads) {
  const int64_t rows = p.batch * p.window[0].out;
  if (PaysAsPostOp(epilogue.activation) || ClampsBoundedInputs(p, epilogue, dtype)) return false;
  if (num_threads > 1 && rows < 2 * num_threads) return false;
  if (dtype != DType::kFloat32) return !epilogue.residual;
  return rows * RowElements(p, /*output=*/true) * int64_t{sizeof(float)} >= kCachedImageBytes;
}

ConvInBands::ConvInBands(const ConvProblem& problem, const ConvEpilogue& epilogue, DType dtype)
    : problem_(problem),
      epilogue_(epilogue),
      dtype_(dtype),
      in_row_(RowElements(problem, /*output=*/false)),
      out_row_(RowElements(problem, /*output=*/true)) {}

// False where a band would read nothing but padding, or there would be many kinds. Measured on
// AVX-512 with an L2 cache of 2 MiB, as for fused_pointwise_depthwise.
bool ConvInBands::Cut(int num_threads) {
  constexpr int64_t kBandBytes = int64_t{256} << 10;
  constexpr size_t kMostKinds = 6;
  const WindowAxis& axis = problem_.window[0];
  const int64_t in_cache = kBandBytes / (out_row_ * int64_t{sizeof(float)});
  const int64_t most = std::clamp<int64_t>(in_cache, 1, axis.out);
  // As many for each thread where images are not shared out as a whole.
  const int64_t parts = problem_.batch % num_threads == 0 ? 1 : num_threads;
  const int64_t least = (axis.out + most - 1) / most;
  const int64_t count = std::min((least + parts - 1) / parts * parts, axis.out);
  const int64_t rows = (axis.out + count - 1) / count;
  for (int64_t first = 0; first < axis.out; first += rows) {
    const int64_t out_rows = std::min(rows, axis.out - first);
    const int64_t begin = first * axis.stride - axis.pad_begin;
    const int64_t end = begin + (out_rows - 1) * axis.stride + axis.extent();
    const int64_t in_first = std::max<int64_t>(begin, 0);
    const int64_t in_rows = std::min(end, axis.in) - in_first;
    if (in_rows <= 0) return false;
    const Kind kind = {out_rows, in_rows, in_first - begin};
    const auto found = std::find(kinds_.begin(), kinds_.end(), kind);
    bands_.push_back({first, in_first, static_cast<size_t>(found - kinds_.begin())});
    if (found == kinds_.end()) kinds_.push_back(kind);
    if (kinds_.size() > kMostKinds) return false;
  }
  if (dtype_ != DType::kFloat32) {
    wide_bytes_ = InLines(static_cast<size_t>(rows * out_row_) * sizeof(float));
  }
  return true;
}

absl::Status ConvInBands::MakeLane(int64_t first, int64_t last) {
  Lane& lane = lanes_.emplace_back(Lane{.first = first, .last = last});
  lane.convs.resize(kinds_.size());
  for (int64_t band = first; band < last; ++band) {
    const size_t number = bands_[band % std::ssize(bands_)].kind;
    if (lane.convs[number] != nullptr) continue;
    const Kind& kind = kinds_[number];
    ConvProblem p = problem_;
    p.batch = 1;
    p.window[0].in = kind.in_rows;
    p.window[0].out = kind.out_rows;
    p.window[0].pad_begin = kind.pad_begin;
    INTERP_ASSIGN_OR_RETURN(std::unique_ptr<OnednnConv> conv,
                            OnednnConv::Make(p, epilogue_, dtype_, DType::kFloat32));
    scratch_bytes_ = std::max(scratch_bytes_, InLines(conv->scratchpad_bytes()));
    if (implementation_.empty()) {
      implementation_ = absl::StrCat(conv->implementation(), ", bands of ", kind.out_rows);
    }
    lane.convs[number] = std::move(conv);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ConvInBands>> ConvInBands::Make(const ConvProblem& problem,
                                                               const ConvEpilogue& epilogue,
                                                               DType dtype, int num_threads) {
  std::unique_ptr<ConvInBands> conv(new ConvInBands(problem, epilogue, dtype));
  if (!conv->Cut(num_threads))
    return Unimplemented("rows of padding alone, or many kinds of bands");
  const int64_t bands = problem.batch * std::ssize(conv->bands_);
  const int64_t lanes = std::min<int64_t>(bands, num_threads);
  absl::Status made;
  UseThreads(1);
  for (int64_t i = 0; i < lanes && made.ok(); ++i) {
    made = conv->MakeLane(bands * i / lanes, bands * (i + 1) / lanes);
  }
  UseThreads(num_threads);
  INTERP_RETURN_IF_ERROR(made);
  conv->weights_.resize(conv->kinds_.size());
  return conv;
}

absl::Status ConvInBands::TakeWeights(const KernelContext& ctx, const ConvAttrs& attrs) {
  for (size_t kind = 0; kind < kinds_.size(); ++kind) {
    if (weights_[kind] != nullptr) continue;
    const auto has_kind = [kind](const Lane& lane) { return lane.convs[kind] != nullptr; };
    const OnednnConv& conv = *std::find_if(lanes_.begin(), lanes_.end(), has_kind)->convs[kind];
    INTERP_ASSIGN_OR_RETURN(weights_[kind], conv.SharedWeights(ctx, attrs));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status ConvInBands::Run(const KernelContext& ctx, const ConvAttrs& attrs, const T* in,
                              T* out) {
  INTERP_RETURN_IF_ERROR(TakeWeights(ctx, attrs));
  const int64_t lanes = std::ssize(lanes_);
  const size_t lane_bytes = scratch_bytes_ + wide_bytes_;
  INTERP_ASSIGN_OR_RETURN(const Workspace work,
                          ctx.workspace(lane_bytes * static_cast<size_t>(lanes)));
  std::vector<absl::Status> statuses(lanes_.size());
  ParallelFor(ctx.num_threads(), lanes, /*grain=*/1, [&](int64_t begin, int64_t end) {
    if (ctx.num_threads() > 1) UseThreads(1);  // as the primitives were made
    for (int64_t i = begin; i < end; ++i) {
      char* const own = work.data<char>() + lane_bytes * static_cast<size_t>(i);
      for (int64_t band = lanes_[i].first; band < lanes_[i].last; ++band) {
        statuses[i].Update(RunBand(lanes_[i], band, in, out, own));
      }
    }
  });
  UseThreads(ctx.num_threads());
  for (const absl::Status& status : statuses) INTERP_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

// `number`: of the bands of all images. `work`: of the lane.
template <typename T>
absl::Status ConvInBands::RunBand(Lane& lane, int64_t number, const T* in, T* out, char* work) {
  const int64_t image = number / std::ssize(bands_);
  const Band& band = bands_[number % std::ssize(bands_)];
  const WindowAxis& axis = problem_.window[0];
  const T* const from = in + (image * axis.in + band.in_first) * in_row_;
  T* const to = out + (image * axis.out + band.out_first) * out_row_;
  const std::shared_ptr<const PackedWeights>& weights = weights_[band.kind];
  OnednnConv& conv = *lane.convs[band.kind];
  if constexpr (std::is_same_v<T, float>) return conv.Run(weights, from, to, work);
  auto* const wide = reinterpret_cast<float*>(work + scratch_bytes_);
  INTERP_RETURN_IF_ERROR(conv.Run(weights, from, wide, work));
  ConvertElements(/*num_threads=*/1, wide, kinds_[band.kind].out_rows * out_row_, to);
  return absl::OkStatus();
}

template absl::Status ConvInBands::Run(const KernelContext&, const ConvAttrs&, const float*,
                                       float*);
template absl::Status ConvInBands::Run(const KernelContext&, const ConvAttrs&, const bfloat16*,
                                       bfloat16*);

}  // namespace interp::nn
