// beam_search: one step of a beam search. Row i of `scores` are the candidates that continue prefix
// i, and the prefixes of a source are a sequence of level `level`. Each source keeps its beam_size
// best candidates; a prefix that has ended (its pre_ids is end_id) has but one, itself. A source
// whose beams all ended before keeps none.
//
// selected_ids and selected_scores are [kept, 1], ordered by prefix, with a LoD of two levels: the
// prefixes of each source, the candidates of each prefix. parent_idx has the prefix of each.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/op_def.h"
#include "kernels/sequence/lod.h"
#include "kernels/util/data_or_null.h"

namespace interp {
namespace {

constexpr int kPreIds = 0;
constexpr int kPreScores = 1;
constexpr int kIds = 2;
constexpr int kScores = 3;
constexpr int kSelectedIds = 0;
constexpr int kSelectedScores = 1;
constexpr int kParentIdx = 2;

struct BeamAttrs {
  int64_t level = 0;
  size_t beam_size = 0;
  int64_t end_id = 0;
  bool is_accumulated = true;  // scores include those of the prefix; else they are probabilities
};

BeamAttrs ReadBeamAttrs(AttrReader& reader) {
  BeamAttrs attrs;
  attrs.level = reader.Int("level", 0);
  const int32_t beam_size = reader.Int("beam_size", 0);
  attrs.end_id = reader.Int("end_id", 0);
  attrs.is_accumulated = reader.Bool("is_accumulated", true);
  if (beam_size < 1) reader.Fail(absl::StrCat("attribute 'beam_size' is ", beam_size));
  attrs.beam_size = static_cast<size_t>(std::max(beam_size, 0));
  return attrs;
}

void InferDTypes(DTypeContext& ctx) {
  ctx.Set(kSelectedIds, DType::kInt64);
  ctx.Set(kParentIdx, DType::kInt32);
}

struct Candidate {
  int64_t prefix = 0;
  int64_t id = 0;
  float score = 0;
};

bool Worse(const Candidate& a, const Candidate& b) {
  return a.score < b.score || (a.score == b.score && a.prefix < b.prefix);
}

// Adds to `best`, which is sorted from the best on and no longer than the beam. Of equals the later
// one takes the last place.
void Insert(std::vector<Candidate>& best, const Candidate& candidate, size_t beam_size) {
  if (best.size() < beam_size) {
    best.push_back(candidate);
  } else if (Worse(candidate, best.back())) {
    return;
  }
  size_t at = best.size() - 1;
  for (; at > 0 && Worse(best[at - 1], candidate); --at) best[at] = best[at - 1];
  best[at] = candidate;
}

// The tensors of one step. All have a row for each prefix.
struct Step {
  const int64_t* pre_ids = nullptr;
  const float* pre_scores = nullptr;
  const int64_t* ids = nullptr;  // null: a candidate's id is its column
  const float* scores = nullptr;
  int64_t width = 0;
};

absl::Status CheckRows(const Tensor& tensor, absl::string_view slot, DType dtype, int64_t count) {
  if (tensor.dtype == dtype && tensor.numel() == count) return absl::OkStatus();
  return InvalidArgument("input '", slot, "' is ", DescribeType(tensor), ", expected ", count,
                         " elements of ", Name(dtype));
}

absl::StatusOr<Step> ReadStep(const OpContext& ctx) {
  const Tensor& scores = ctx.input(kScores);
  const int64_t prefixes = scores.shape[0];
  INTERP_RETURN_IF_ERROR(CheckRows(ctx.input(kPreIds), "pre_ids", DType::kInt64, prefixes));
  INTERP_RETURN_IF_ERROR(CheckRows(ctx.input(kPreScores), "pre_scores", DType::kFloat32, prefixes));
  const Tensor* const ids = ctx.optional_input(kIds);
  if (ids != nullptr) {
    INTERP_RETURN_IF_ERROR(CheckRows(*ids, "ids", DType::kInt64, scores.numel()));
  }
  return Step{.pre_ids = ctx.input(kPreIds).data<int64_t>(),
              .pre_scores = ctx.input(kPreScores).data<float>(),
              .ids = DataOrNull<int64_t>(ids),
              .scores = scores.data<float>(),
              .width = RowSize(scores)};
}

std::vector<Candidate> BestOf(const BeamAttrs& attrs, const Step& step, int64_t begin,
                              int64_t end) {
  std::vector<Candidate> best;
  for (int64_t prefix = begin; prefix < end; ++prefix) {
    const float before = step.pre_scores[prefix];
    if (step.pre_ids[prefix] == attrs.end_id) {
      Insert(best, {prefix, attrs.end_id, before}, attrs.beam_size);
      continue;
    }
    for (int64_t d = 0; d < step.width; ++d) {
      const int64_t at = prefix * step.width + d;
      const float score = step.scores[at];
      Insert(best,
             {prefix, step.ids != nullptr ? step.ids[at] : d,
              attrs.is_accumulated ? score : before + std::log(score)},
             attrs.beam_size);
    }
  }
  return best;
}

bool HasEnded(const BeamAttrs& attrs, const Step& step, const std::vector<Candidate>& best) {
  return std::all_of(best.begin(), best.end(), [&](const Candidate& candidate) {
    return candidate.id == attrs.end_id && step.pre_ids[candidate.prefix] == attrs.end_id;
  });
}

// What all sources keep, by prefix.
std::vector<Candidate> SelectAll(const BeamAttrs& attrs, const Step& step, Offsets sources) {
  std::vector<Candidate> selected;
  for (int64_t i = 0; i < SequenceCount(sources); ++i) {
    std::vector<Candidate> best = BestOf(attrs, step, sources[i], sources[i + 1]);
    if (HasEnded(attrs, step, best)) continue;
    std::stable_sort(best.begin(), best.end(),
                     [](const Candidate& a, const Candidate& b) { return a.prefix < b.prefix; });
    selected.insert(selected.end(), best.begin(), best.end());
  }
  return selected;
}

Lod LodOf(std::vector<int64_t> sources, const std::vector<Candidate>& selected) {
  std::vector<int64_t> by_prefix(static_cast<size_t>(sources.back()) + 1, 0);
  for (const Candidate& candidate : selected) ++by_prefix[candidate.prefix + 1];
  for (size_t i = 1; i < by_prefix.size(); ++i) by_prefix[i] += by_prefix[i - 1];
  return {std::move(sources), std::move(by_prefix)};
}

absl::Status BeamSearch(KernelContext& ctx) {
  const BeamAttrs& attrs = ctx.attrs<BeamAttrs>();
  INTERP_ASSIGN_OR_RETURN(std::vector<int64_t> sources,
                          LevelOffsets(ctx.input(kScores), attrs.level, "scores"));
  INTERP_ASSIGN_OR_RETURN(const Step step, ReadStep(ctx));
  const std::vector<Candidate> selected = SelectAll(attrs, step, sources);
  const auto count = static_cast<int64_t>(selected.size());
  const Lod lod = LodOf(std::move(sources), selected);
  for (const int slot : {kSelectedIds, kSelectedScores}) {
    ctx.output(slot).shape = {count, 1};
    ctx.output(slot).lod = lod;
    INTERP_RETURN_IF_ERROR(ctx.Allocate(ctx.output(slot)));
  }
  Tensor* const parent = ctx.optional_output(kParentIdx);
  if (parent != nullptr) {
    parent->shape = {count};
    parent->lod.clear();
    INTERP_RETURN_IF_ERROR(ctx.Allocate(*parent));
  }
  auto* const ids = ctx.output(kSelectedIds).mutable_data<int64_t>();
  auto* const scores = ctx.output(kSelectedScores).mutable_data<float>();
  for (size_t i = 0; i < selected.size(); ++i) {
    ids[i] = selected[i].id;
    scores[i] = selected[i].score;
    if (parent != nullptr) {
      parent->mutable_data<int32_t>()[i] = static_cast<int32_t>(selected[i].prefix);
    }
  }
  return absl::OkStatus();
}

DType ScoresDType(const DTypeContext& ctx) { return ctx.input(kScores); }

INTERP_REGISTER_OP(OpDef{
    .type = "beam_search",
    .inputs = {{"pre_ids", kAnyDType}, {"pre_scores"}, {"ids", kOptional | kAnyDType}, {"scores"}},
    .outputs = {{"selected_ids"}, {"selected_scores"}, {"parent_idx", kOptional}},
    .parse = ParseAttrs<BeamAttrs, ReadBeamAttrs>,
    .kernel_dtype = ScoresDType,
    .infer_dtype = InferDTypes,
    .kernels = {{DType::kFloat32, BeamSearch}},
    .dynamic_outputs = true,
});

}  // namespace
}  // namespace interp
