#include "passes/fuse/fuse_attention.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/attr_reader.h"
#include "core/edit_op.h"
#include "core/fused_forms.h"
#include "passes/fuse/fusion.h"
#include "passes/fuse/matrix_product.h"
#include "passes/fuse/uncertain_ranks.h"
#include "passes/fuse/unread_ops.h"
#include "passes/fuse/variable_view.h"
#include "passes/op_inputs.h"

namespace interp {
namespace {

constexpr absl::string_view kAttention = "scaled_dot_product_attention";

// A variable as attention reads it, without a factor.
struct Operand {
  VariableView view;
  double scale = 1;
};

enum class TermKind { kFactor, kBias, kSubtractedBias };

// What op `at` changes the scores by.
struct Term {
  VarId id = 0;
  int at = 0;
  TermKind kind = TermKind::kBias;
  bool turns = false;  // windows take turns with it
  bool leads = false;  // the first operand, whose LoD the result has
};

std::optional<TermKind> KindOf(const Op& op) {
  if (op.type == "elementwise_mul") return TermKind::kFactor;
  if (op.type == "elementwise_add") return TermKind::kBias;
  if (op.type == "elementwise_sub") return TermKind::kSubtractedBias;
  return std::nullopt;
}

// Programs write attention in a few ops. What is longer is something else, which would be walked
// again for each product that it leads to.
constexpr size_t kMostOps = 16;

// What is joined.
struct AttentionMatch {
  int softmax = 0;
  std::vector<int> chain;   // its ops; the first one multiplies queries and keys
  std::vector<Term> terms;  // the last one that changes the scores first
  double scale = 1;
  MatrixProduct scores;  // of queries and keys
  MatrixProduct values;  // of weights and values
  int values_at = 0;
  std::vector<int64_t> out_axes;
  VarId out = 0;
};

class AttentionFuser {
 public:
  AttentionFuser(Program program, const OpRegistry& ops)
      : fuser_(std::move(program), ops),
        attention_(*ops.Find(kAttention)),
        registry_(ops),
        uncertain_(FindUncertainRanks(fuser_.program())),
        taken_(fuser_.ops().size()) {}

  // All matches first: what one takes is no view for another.
  Program Run() && {
    std::vector<AttentionMatch> matches;
    for (int i = 0; i < std::ssize(fuser_.ops()); ++i) {
      if (taken_[i] || op(i).type != "softmax") continue;
      std::optional<AttentionMatch> match = MatchAt(i);
      if (!match.has_value()) continue;
      for (const int at : match->chain) taken_[at] = true;
      matches.push_back(*std::move(match));
    }
    for (const AttentionMatch& match : matches) Join(match);
    return WithoutUnread(std::move(fuser_).TakeProgram(), registry_, passed_);
  }

 private:
  const Op& op(int index) const { return fuser_.ops()[index]; }

  // The declared dims of a variable that is written once at most; empty where they may not be those
  // of a run.
  std::vector<int64_t> DimsOf(VarId id) const {
    const VarUse& use = fuser_.uses()[id];
    const bool known = use.var != nullptr && use.writes <= 1 && !uncertain_[id];
    return known ? use.var->dims : std::vector<int64_t>();
  }

  // The op that makes the variable, which the op at position `reader` alone reads.
  std::optional<int> MakerFor(int reader, VarId id) const {
    const int maker = fuser_.uses()[id].last_write;
    if (maker < 0 || maker >= reader || taken_[maker]) return std::nullopt;
    if (Fuser::Argument(op(maker).outputs, "Out") != id || !fuser_.GivesOutAlone(maker)) {
      return std::nullopt;
    }
    return fuser_.OnlyReader(maker, "Out") == reader ? std::optional(maker) : std::nullopt;
  }

  std::optional<AttentionMatch> MatchAt(int softmax) const {
    const std::optional<VarId> scores = OnlyInput(op(softmax));
    if (!scores.has_value() || !fuser_.GivesOutAlone(softmax) || !IsAlongLast(softmax, *scores)) {
      return std::nullopt;
    }
    const VarUse& use = fuser_.uses()[*scores];
    if (!HasKernelOf(attention_, use.var->dtype)) return std::nullopt;
    AttentionMatch match;
    match.softmax = softmax;
    match.chain = {softmax};
    if (!FollowScores(softmax, *scores, match) || !FollowWeights(softmax, match)) {
      return std::nullopt;
    }
    absl::c_sort(match.chain);
    return IsPlain(match) && Stays(match) ? std::optional(std::move(match)) : std::nullopt;
  }

  bool IsPlain(const AttentionMatch& match) const {
    const auto have_rows = [&](VarId id) { return DimsOf(id).size() >= 2; };
    if (!have_rows(match.scores.x) || !have_rows(match.scores.y) || !have_rows(match.values.y)) {
      return false;
    }
    // The result would have the sequences of the queries or of a term.
    const bool leads = absl::c_any_of(match.terms, [](const Term& term) { return term.leads; });
    const bool has_lod = (leads || op(match.chain.front()).type == "matmul") &&
                         op(match.values_at).type == "matmul" && match.out_axes.empty();
    return !match.scores.trans_x && !match.values.trans_x && match.values.alpha == 1 && !has_lod;
  }

  // Whether what the ops of the chain read keeps its values until the last of them.
  bool Stays(const AttentionMatch& match) const {
    const auto stays = [&](const Term& term) { return fuser_.IsStable(term.id, term.at); };
    return fuser_.IsStable(match.scores.x, match.chain.front()) &&
           fuser_.IsStable(match.scores.y, match.chain.front()) &&
           fuser_.IsStable(match.values.y, match.values_at) && absl::c_all_of(match.terms, stays);
  }

  bool IsAlongLast(int softmax, VarId x) const {
    const std::vector<int64_t> dims = DimsOf(x);
    AttrReader attrs(op(softmax));
    const int64_t axis = attrs.Int("axis", -1);
    return dims.size() >= 2 && (axis == -1 || axis == std::ssize(dims) - 1) && attrs.status().ok();
  }

  // From what the op at position `reader` reads back to the product of queries and keys. Factors
  // come before biases: with `scaled`, nothing is added on the way.
  bool FollowScores(int reader, VarId id, AttentionMatch& match, bool scaled = false) const {
    const std::optional<int> maker = MakerFor(reader, id);
    if (!maker.has_value() || match.chain.size() >= kMostOps) return false;
    const Op& made_by = op(*maker);
    if (const std::optional<MatrixProduct> product = ReadProduct(made_by)) {
      match.chain.push_back(*maker);
      match.scores = *product;
      match.scale *= product->alpha;
      return true;
    }
    if (const std::optional<float> factor = FactorOf(made_by)) {
      const std::optional<VarId> x = Fuser::Argument(made_by.inputs, "X");
      match.chain.push_back(*maker);
      match.scale *= *factor;
      return x.has_value() && FollowScores(*maker, *x, match, /*scaled=*/true);
    }
    if (KindOf(made_by).has_value()) return FollowTerm(*maker, match, scaled);
    return !scaled && FollowTurns(*maker, match);
  }

  // From the sum, difference or product of scores and a term.
  bool FollowTerm(int at, AttentionMatch& match, bool scaled) const {
    const TermKind kind = *KindOf(op(at));
    const bool is_factor = kind == TermKind::kFactor;
    const std::optional<VarId> x = Fuser::Argument(op(at).inputs, "X");
    const std::optional<VarId> y = Fuser::Argument(op(at).inputs, "Y");
    const std::optional<VarId> out = Fuser::Argument(op(at).outputs, "Out");
    if (!x.has_value() || !y.has_value() || !out.has_value()) return false;
    AttrReader attrs(op(at));
    const bool by_last = attrs.Int("axis", -1) == -1 || DimsOf(*x).size() == DimsOf(*y).size();
    if (!by_last || !attrs.status().ok() || (scaled && !is_factor)) return false;
    for (const auto& [scores, term] : {std::pair(*x, *y), std::pair(*y, *x)}) {
      if (kind == TermKind::kSubtractedBias && scores != *x) break;
      const std::vector<int64_t> dims = DimsOf(term);
      const bool fits = !dims.empty() && dims.size() <= DimsOf(scores).size() &&
                        DimsOf(*out) == DimsOf(scores) && HasDTypeOf(scores, term);
      AttentionMatch joined = match;
      joined.chain.push_back(at);
      joined.terms.push_back({.id = term, .at = at, .kind = kind, .leads = term == *x});
      if (!fits || !FollowScores(at, scores, joined, scaled || is_factor)) continue;
      match = std::move(joined);
      return true;
    }
    return false;
  }

  bool HasDTypeOf(VarId a, VarId b) const {
    const Var* const var = fuser_.uses()[b].var;
    return var != nullptr && fuser_.uses()[a].var != nullptr &&
           var->dtype == fuser_.uses()[a].var->dtype;
  }

  // From `back`, a reshape of a sum of a reshape, which adds a mask that windows of the first
  // dimension take turns with.
  bool FollowTurns(int back, AttentionMatch& match) const {
    const std::optional<int> sum = MakerOfReshape(back);
    if (!sum.has_value() || op(*sum).type != "elementwise_add") return false;
    const std::optional<VarId> x = Fuser::Argument(op(*sum).inputs, "X");
    const std::optional<VarId> mask = Fuser::Argument(op(*sum).inputs, "Y");
    if (!x.has_value() || !mask.has_value()) return false;
    const std::optional<int> split = MakerFor(*sum, *x);
    if (!split.has_value() || !IsReshape(*split)) return false;
    const std::optional<VarId> scores = Fuser::Argument(op(*split).inputs, "X");
    const std::optional<VarId> out = Fuser::Argument(op(back).outputs, "Out");
    if (!scores.has_value() || DimsOf(*scores) != DimsOf(*out)) return false;
    if (!TakesTurns(DimsOf(*scores), DimsOf(*x), DimsOf(*mask)) || !HasDTypeOf(*x, *mask)) {
      return false;
    }
    match.chain.insert(match.chain.end(), {back, *sum, *split});
    match.terms.push_back({.id = *mask, .at = *sum, .turns = true});
    return FollowScores(*split, *scores, match);
  }

  // Whether a reshape of `scores` to `split` cuts nothing but the first dimension, for a mask that
  // has one for all of its first part.
  static bool TakesTurns(const std::vector<int64_t>& scores, const std::vector<int64_t>& split,
                         const std::vector<int64_t>& mask) {
    if (scores.size() < 3 || split.size() != scores.size() + 1 || mask.size() != split.size()) {
      return false;
    }
    for (size_t i = 1; i < scores.size(); ++i) {
      const bool fits = mask[i + 1] == 1 || mask[i + 1] == scores[i];
      if (scores[i] <= 0 || split[i + 1] != scores[i] || !fits) return false;
    }
    return mask[0] == 1 && mask[1] > 0 && split[1] == mask[1];
  }

  bool IsReshape(int index) const {
    return op(index).type == "reshape2" || op(index).type == "reshape";
  }

  std::optional<int> MakerOfReshape(int index) const {
    const std::optional<VarId> x = Fuser::Argument(op(index).inputs, "X");
    return IsReshape(index) && x.has_value() ? MakerFor(index, *x) : std::nullopt;
  }

  // From the softmax on to the result.
  bool FollowWeights(int softmax, AttentionMatch& match) const {
    const std::optional<int> next = fuser_.OnlyReader(softmax, "Out");
    if (!next.has_value() || taken_[*next]) return false;
    const std::optional<MatrixProduct> product = ReadProduct(op(*next));
    if (!product.has_value() || product->x != Fuser::Argument(op(softmax).outputs, "Out")) {
      return false;
    }
    match.values = *product;
    match.values_at = *next;
    match.chain.push_back(*next);
    if (const std::optional<int> turn = fuser_.OnlyReader(*next, "Out"); turn.has_value()) {
      const std::vector<int64_t> axes = AxesOfTranspose(op(*turn));
      const bool rows_stay = axes.size() >= 2 && axes.back() == std::ssize(axes) - 1;
      if (rows_stay && !taken_[*turn] && fuser_.GivesOutAlone(*turn)) {
        match.chain.push_back(*turn);
        match.out_axes = axes;
      }
    }
    const std::optional<VarId> out = Fuser::Argument(op(match.chain.back()).outputs, "Out");
    if (out.has_value()) match.out = *out;
    return out.has_value();
  }

  // Follows an operand of the op at position `reader` back over transposes, slices and, with
  // `scales`, factors, as far as `reader` can read what they are made from in their place: its last
  // axis is one of the last `count` of the view, and a transpose tells the rank of what is sliced.
  Operand Follow(VarId id, int reader, int64_t count, bool scales) {
    Operand operand = {{id}};
    Operand best = operand;
    std::vector<VarId> passed;
    bool certain = true;
    int until = reader;
    for (size_t step = 0; step < kMostOps; ++step) {
      const VarUse& use = fuser_.uses()[operand.view.id];
      const int maker = use.last_write;
      const bool made = use.writes == 1 && !use.pinned() && maker >= 0 && maker < until;
      if (!made || taken_[maker] || !CheckNothingFused(op(maker)).ok()) return best;
      if (!IsOfSamePart(op(maker), op(reader))) return best;
      passed.push_back(operand.view.id);
      const std::optional<VarId> from = Before(maker, scales, operand);
      if (!from.has_value() || !fuser_.IsStable(*from, maker)) return best;
      operand.view.id = *from;
      until = maker;
      if (op(maker).type == "slice") certain = false;
      if (!AxesOfTranspose(op(maker)).empty()) certain = true;
      if (!certain || !EndsWithLast(operand.view, count)) continue;
      best = operand;
      passed_.insert(passed_.end(), passed.begin(), passed.end());
      passed.clear();
    }
    return best;
  }

  // Makes `operand`, the result of the op at `maker`, a view of what that op reads.
  std::optional<VarId> Before(int maker, bool scales, Operand& operand) const {
    if (const std::optional<float> factor = FactorOf(op(maker))) {
      operand.scale *= *factor;
      return scales ? Fuser::Argument(op(maker).inputs, "X") : std::nullopt;
    }
    const std::optional<VarId> sliced = Fuser::Argument(op(maker).inputs, "Input");
    const auto rank = sliced.has_value() ? std::ssize(DimsOf(*sliced)) : 0;
    return ViewBefore(op(maker), rank, operand.view);
  }

  // The terms by slot, in the order in which they change the scores.
  struct Terms {
    ArgIds factors;
    ArgIds biases;
    std::vector<int64_t> turning;  // of biases
    std::vector<int64_t> subtracted;
  };

  static Terms TermsOf(const AttentionMatch& match) {
    Terms terms;
    for (size_t i = match.terms.size(); i-- > 0;) {
      const Term& term = match.terms[i];
      if (term.kind == TermKind::kFactor) {
        terms.factors.push_back(term.id);
        continue;
      }
      if (term.turns) terms.turning.push_back(std::ssize(terms.biases));
      if (term.kind == TermKind::kSubtractedBias) {
        terms.subtracted.push_back(std::ssize(terms.biases));
      }
      terms.biases.push_back(term.id);
    }
    return terms;
  }

  void Join(const AttentionMatch& match) {
    const int last = match.chain.back();
    const Operand q = Follow(match.scores.x, last, /*count=*/1, /*scales=*/true);
    const Operand k = Follow(match.scores.y, last, /*count=*/2, /*scales=*/true);
    const Operand v = Follow(match.values.y, last, /*count=*/2, /*scales=*/false);
    Op fused = fuser_.TakeAs(kAttention, match.softmax);
    AddInput(fused, "Q", {q.view.id});
    AddInput(fused, "K", {k.view.id});
    AddInput(fused, "V", {v.view.id});
    const Terms terms = TermsOf(match);
    if (!terms.factors.empty()) AddInput(fused, "Factor", terms.factors);
    if (!terms.biases.empty()) AddInput(fused, "Bias", terms.biases);
    AddOutput(fused, "Out", {match.out});
    const auto set = [&](absl::string_view name, const std::vector<int64_t>& numbers) {
      if (!numbers.empty()) SetAttr(fused, name, numbers);
    };
    SetAttr(fused, "scale", match.scale * q.scale * k.scale);
    if (!match.scores.trans_y) SetAttr(fused, "trans_k", true);
    if (match.values.trans_y) SetAttr(fused, "trans_v", true);
    set("q_axes", q.view.axes);
    set("q_slice", q.view.slice);
    set("k_axes", k.view.axes);
    set("k_slice", k.view.slice);
    set("v_axes", v.view.axes);
    set("v_slice", v.view.slice);
    set("out_axes", match.out_axes);
    set("turning", terms.turning);
    set("subtracted", terms.subtracted);
    fuser_.Replace(match.chain, std::move(fused));
  }

  Fuser fuser_;
  const OpDef& attention_;
  const OpRegistry& registry_;
  const std::vector<bool> uncertain_;  // ranks, by variable
  std::vector<bool> taken_;            // by a match, of ops
  std::vector<VarId> passed_;          // variables in whose place others are read
};

}  // namespace

absl::StatusOr<Program> FuseAttention(Program program, const PassContext& context) {
  if (!HasOpOf(program, {"softmax"}) || !CanMake(kAttention, context)) return program;
  return AttentionFuser(std::move(program), context.ops).Run();
}

}  // namespace interp
