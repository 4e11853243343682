// beam_search_decode: the sentences of a beam search, from what each of its steps selected. Ids and
// Scores are arrays of what beam_search gave, whose LoD says which prefix, an element of the step
// before, each element continues; from the last step on the way is followed back. SentenceIds and
// SentenceScores have a LoD of the sentences of each source, best score first, and their words.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"

namespace interp {
namespace {

constexpr int kIds = 0;
constexpr int kScores = 1;
constexpr int kSentenceIds = 0;
constexpr int kSentenceScores = 1;

struct DecodeAttrs {
  size_t beam_size = 0;
  int64_t end_id = 0;
};

// A source has as many sentences as there are beams: a damaged program must not ask for more than
// fit.
constexpr int32_t kMostBeams = 1 << 16;

DecodeAttrs ReadDecodeAttrs(AttrReader& reader) {
  const int32_t beam_size = reader.Int("beam_size", 0);
  if (beam_size < 1 || beam_size > kMostBeams) {
    reader.Fail(
        absl::StrCat("attribute 'beam_size' is ", beam_size, ", expected 1 to ", kMostBeams));
  }
  return {static_cast<size_t>(std::max(beam_size, 0)), reader.Int("end_id", 0)};
}

void InferDTypes(DTypeContext& ctx) {
  ctx.Set(kSentenceIds, DType::kInt64);
  ctx.Set(kSentenceScores, ctx.input(kScores));
}

// What one step selected.
template <typename T>
struct Step {
  const int64_t* ids = nullptr;
  const T* scores = nullptr;
  Offsets sources;   // in prefixes
  Offsets prefixes;  // in selected elements
};

template <typename T>
absl::StatusOr<Step<T>> ReadStep(const Tensor& ids, const Tensor& scores) {
  if (ids.dtype != DType::kInt64 || scores.dtype != DTypeOf<T> || ids.shape.rank() == 0 ||
      ids.numel() != ids.shape[0] || scores.numel() != ids.numel() ||
      (ids.numel() > 0 && (!ids.has_memory() || !scores.has_memory()))) {
    return InvalidArgument("a step has ids ", DescribeType(ids), " and scores ",
                           DescribeType(scores), ", expected as many of int64 and ",
                           Name(DTypeOf<T>));
  }
  if (ids.lod.size() != 2) {
    return InvalidArgument("a step has ids with a LoD of ", ids.lod.size(), " levels, expected 2");
  }
  INTERP_RETURN_IF_ERROR(CheckOffsets(ids.lod[1], ids.numel(), "Ids"));
  INTERP_RETURN_IF_ERROR(CheckOffsets(ids.lod[0], std::ssize(ids.lod[1]) - 1, "Ids"));
  return Step<T>{ids.numel() > 0 ? ids.data<int64_t>() : nullptr,
                 ids.numel() > 0 ? scores.data<T>() : nullptr, ids.lod[0], ids.lod[1]};
}

template <typename T>
absl::StatusOr<std::vector<Step<T>>> ReadSteps(const KernelContext& ctx) {
  const std::vector<Tensor>& ids = ctx.input_array(kIds);
  const std::vector<Tensor>& scores = ctx.input_array(kScores);
  if (ids.empty() || ids.size() != scores.size()) {
    return InvalidArgument("arrays 'Ids' and 'Scores' have ", ids.size(), " and ", scores.size(),
                           " elements, expected as many, and at least one");
  }
  std::vector<Step<T>> steps;
  for (size_t i = 0; i < ids.size(); ++i) {
    INTERP_ASSIGN_OR_RETURN(const Step<T> step, ReadStep<T>(ids[i], scores[i]));
    steps.push_back(step);
    if (step.sources.size() != steps[0].sources.size()) {
      return InvalidArgument("steps 0 and ", i, " are of ", SequenceCount(steps[0].sources),
                             " and ", SequenceCount(step.sources), " sources");
    }
  }
  if (SequenceCount(steps[0].sources) == 0) return InvalidArgument("'Ids' are of no source");
  return steps;
}

// Words from the last to the first.
template <typename T>
struct Sentence {
  std::vector<int64_t> ids;
  std::vector<T> scores;
};

// The sentences of one source, on the way back through the steps.
template <typename T>
class Backtrace {
 public:
  explicit Backtrace(const DecodeAttrs& attrs) : attrs_(attrs), sentences_(attrs.beam_size) {}

  absl::Status Add(const Step<T>& step, int64_t source) {
    const int64_t begin = step.sources[source];
    const int64_t end = step.sources[source + 1];
    return at_.empty() ? Start(step, begin, end) : Follow(step, begin, end);
  }

  // The best score, which is that of the last word, first; of equals the first.
  std::vector<Sentence<T>> Take() {
    const auto best = [](const Sentence<T>& s) {
      const bool none = s.scores.empty() || std::isnan(s.scores.front());
      return none ? -std::numeric_limits<T>::infinity() : s.scores.front();
    };
    std::stable_sort(sentences_.begin(), sentences_.end(),
                     [&](const Sentence<T>& a, const Sentence<T>& b) { return best(a) > best(b); });
    return std::move(sentences_);
  }

 private:
  // All elements of the last step with any are ends of sentences.
  absl::Status Start(const Step<T>& step, int64_t begin, int64_t end) {
    for (int64_t prefix = begin; prefix < end; ++prefix) {
      for (int64_t i = step.prefixes[prefix]; i < step.prefixes[prefix + 1]; ++i) {
        if (at_.size() == attrs_.beam_size) {
          return InvalidArgument("a source has more than 'beam_size' ", attrs_.beam_size,
                                 " sentences");
        }
        Append(step, i, sentences_[at_.size()]);
        at_.push_back(prefix);
      }
    }
    return absl::OkStatus();
  }

  // Takes the element that each sentence has arrived at, and goes to its prefix.
  absl::Status Follow(const Step<T>& step, int64_t begin, int64_t end) {
    for (size_t k = 0; k < at_.size(); ++k) {
      const int64_t i = at_[k];
      if (i < step.prefixes[begin] || i >= step.prefixes[end]) {
        return InvalidArgument("a step continues element ", i,
                               " of the step before, where its source has the elements ",
                               step.prefixes[begin], " to ", step.prefixes[end] - 1);
      }
      // A sentence may have ended long ago: one end is enough.
      if (step.ids[i] != attrs_.end_id || sentences_[k].ids.empty()) Append(step, i, sentences_[k]);
      const auto above =
          std::upper_bound(step.prefixes.begin() + begin, step.prefixes.begin() + end + 1, i);
      at_[k] = above - step.prefixes.begin() - 1;
    }
    return absl::OkStatus();
  }

  static void Append(const Step<T>& step, int64_t i, Sentence<T>& sentence) {
    sentence.ids.push_back(step.ids[i]);
    sentence.scores.push_back(step.scores[i]);
  }

  const DecodeAttrs& attrs_;
  std::vector<Sentence<T>> sentences_;
  std::vector<int64_t> at_;  // by sentence: an element of the step before
};

// Writes the sentences of all sources, words in their order.
template <typename T>
absl::Status Write(KernelContext& ctx, const std::vector<std::vector<Sentence<T>>>& by_source) {
  Lod lod = {{0}, {0}};
  for (const std::vector<Sentence<T>>& sentences : by_source) {
    for (const Sentence<T>& sentence : sentences) {
      lod[1].push_back(lod[1].back() + std::ssize(sentence.ids));
    }
    lod[0].push_back(std::ssize(lod[1]) - 1);
  }
  for (const int slot : {kSentenceIds, kSentenceScores}) {
    ctx.output(slot).shape = {lod[1].back()};
    ctx.output(slot).lod = lod;
    INTERP_RETURN_IF_ERROR(ctx.Allocate(ctx.output(slot)));
  }
  auto* ids = ctx.output(kSentenceIds).mutable_data<int64_t>();
  T* scores = ctx.output(kSentenceScores).mutable_data<T>();
  for (const std::vector<Sentence<T>>& sentences : by_source) {
    for (const Sentence<T>& sentence : sentences) {
      ids = std::copy(sentence.ids.rbegin(), sentence.ids.rend(), ids);
      scores = std::copy(sentence.scores.rbegin(), sentence.scores.rend(), scores);
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Decode(KernelContext& ctx) {
  const DecodeAttrs& attrs = ctx.attrs<DecodeAttrs>();
  INTERP_ASSIGN_OR_RETURN(const std::vector<Step<T>> steps, ReadSteps<T>(ctx));
  std::vector<std::vector<Sentence<T>>> by_source;
  for (int64_t source = 0; source < SequenceCount(steps[0].sources); ++source) {
    Backtrace<T> backtrace(attrs);
    for (size_t i = steps.size(); i-- > 0;) {
      INTERP_RETURN_IF_ERROR(backtrace.Add(steps[i], source));
    }
    by_source.push_back(backtrace.Take());
  }
  return Write(ctx, by_source);
}

absl::Status BeamSearchDecode(KernelContext& ctx) {
  return ctx.output(kSentenceScores).dtype == DType::kFloat64 ? Decode<double>(ctx)
                                                              : Decode<float>(ctx);
}

DType ScoresDType(const DTypeContext& ctx) { return ctx.input(kScores); }

INTERP_REGISTER_OP(OpDef{
    .type = "beam_search_decode",
    .inputs = {{"Ids", kTensorArray | kAnyDType}, {"Scores", kTensorArray | kAnyDType}},
    .outputs = {{"SentenceIds"}, {"SentenceScores"}},
    .parse = ParseAttrs<DecodeAttrs, ReadDecodeAttrs>,
    .kernel_dtype = ScoresDType,
    .infer_dtype = InferDTypes,
    .kernels = {{DType::kFloat32, BeamSearchDecode}, {DType::kFloat64, BeamSearchDecode}},
    .dynamic_outputs = true,
});

}  // namespace
}  // namespace interp
