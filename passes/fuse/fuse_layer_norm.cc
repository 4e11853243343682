#include "passes/fuse/fuse_layer_norm.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/attr_reader.h"
#include "core/edit_op.h"
#include "core/fused_forms.h"
#include "passes/fuse/fusion.h"
#include "passes/fuse/uncertain_ranks.h"
#include "passes/op_inputs.h"

namespace interp {
namespace {

constexpr absl::string_view kLayerNorm = "layer_norm";
constexpr absl::string_view kRmsNorm = "rms_norm";

// What is joined.
struct NormMatch {
  std::vector<int> chain;
  VarId x = 0;
  bool centered = false;  // the mean is taken away
  bool keeps_lod = true;  // x leads to the result by first operands
  float epsilon = 0;
  std::optional<VarId> scale;
  std::optional<VarId> bias;
};

class NormFuser {
 public:
  NormFuser(Program program, const PassContext& context)
      : fuser_(std::move(program), context.ops),
        uncertain_(FindUncertainRanks(fuser_.program())),
        layer_norm_(DefOf(kLayerNorm, context)),
        rms_norm_(DefOf(kRmsNorm, context)) {}

  Program Run() && {
    for (int i = 0; i < std::ssize(fuser_.ops()); ++i) {
      if (std::optional<NormMatch> match = MatchAt(i)) TryJoin(*std::move(match));
    }
    return std::move(fuser_).TakeProgram();
  }

 private:
  static const OpDef* DefOf(absl::string_view type, const PassContext& context) {
    return CanMake(type, context) ? context.ops.Find(type) : nullptr;
  }

  const Op& op(int index) const { return fuser_.ops()[index]; }
  const Var* VarOf(VarId id) const { return fuser_.uses()[id].var; }

  // Fuser's, where the type of the op is one of `types`.
  std::optional<int> MakerFor(int reader, VarId id,
                              std::initializer_list<absl::string_view> types) const {
    const std::optional<int> maker = fuser_.MakerFor(reader, id);
    const bool fits = maker.has_value() && absl::c_linear_search(types, op(*maker).type);
    return fits ? maker : std::nullopt;
  }

  // From the op at `last`, which divides by the deviation or multiplies with its reciprocal.
  std::optional<NormMatch> MatchAt(int last) const {
    const bool divides = op(last).type == "elementwise_div";
    if (!divides && op(last).type != "elementwise_mul") return std::nullopt;
    const auto operands = OperandsByLastDim(op(last));
    if (!operands.has_value() || !CheckNothingFused(op(last)).ok()) return std::nullopt;
    std::vector<std::pair<VarId, VarId>> ways = {{operands->x, operands->y}};  // value, deviation
    if (!divides) ways.emplace_back(operands->y, operands->x);
    for (const auto& [value, deviation] : ways) {
      NormMatch match;
      match.chain = {last};
      match.keeps_lod = value == operands->x;
      const std::optional<int> root = MakerFor(last, deviation, {divides ? "sqrt" : "rsqrt"});
      if (root.has_value() && FollowDeviation(*root, value, match)) return match;
    }
    return std::nullopt;
  }

  // From a root back to the square mean of `value`, or of the same value once more.
  bool FollowDeviation(int root, VarId value, NormMatch& match) const {
    match.chain.push_back(root);
    const std::optional<VarId> moved = OnlyInput(op(root));
    const std::optional<int> move =
        moved.has_value() ? MakerFor(root, *moved, {"scale"}) : std::nullopt;
    if (!move.has_value() || !ReadEpsilon(*move, match)) return false;
    const std::optional<VarId> mean = Fuser::Argument(op(*move).inputs, "X");
    const std::optional<VarId> squares =
        mean.has_value() ? MeanOf(*move, *mean, match) : std::nullopt;
    const int averager = match.chain.back();
    const std::optional<VarId> squared =
        squares.has_value() ? SquareRootOf(averager, *squares, match) : std::nullopt;
    if (!squared.has_value()) return false;
    const int squarer = match.chain.back();
    const std::optional<VarId> x = CenteredFrom(match.chain.front(), value, match);
    match.centered =
        x.has_value() && (*squared == value || CenteredFrom(squarer, *squared, match) == x);
    if (!match.centered && *squared != value) return false;
    match.x = match.centered ? *x : value;
    return true;
  }

  bool ReadEpsilon(int move, NormMatch& match) const {
    AttrReader attrs(op(move));
    match.epsilon = attrs.Float("bias", 0);
    const bool moves = attrs.Float("scale", 1) == 1 && match.epsilon >= 0 && attrs.status().ok();
    match.chain.push_back(move);
    return moves && OnlyInput(op(move)).has_value();
  }

  // What `mean`, which the op at position `reader` reads, is the mean of along the last dim.
  std::optional<VarId> MeanOf(int reader, VarId mean, NormMatch& match) const {
    const std::optional<int> maker = MakerFor(reader, mean, {"reduce_mean"});
    const std::optional<VarId> x = maker.has_value() ? OnlyInput(op(*maker)) : std::nullopt;
    if (!x.has_value() || RankOf(*x) < 1 || VarOf(mean) == nullptr ||
        VarOf(mean)->dtype != VarOf(*x)->dtype) {
      return std::nullopt;
    }
    AttrReader attrs(op(*maker));
    const std::vector<int64_t> dims = attrs.Ints("dim");
    const bool last = dims.size() == 1 && dims[0] == -1 && attrs.Bool("keep_dim", false) &&
                      !attrs.Bool("reduce_all", false);
    if (!last || !attrs.status().ok()) return std::nullopt;
    match.chain.push_back(*maker);
    return x;
  }

  // What the variable, which the op at position `reader` reads, is the square of.
  std::optional<VarId> SquareRootOf(int reader, VarId squares, NormMatch& match) const {
    const std::optional<int> maker =
        MakerFor(reader, squares, {"pow", "square", "elementwise_mul"});
    if (!maker.has_value()) return std::nullopt;
    match.chain.push_back(*maker);
    if (op(*maker).type == "elementwise_mul") {
      const auto operands = OperandsByLastDim(op(*maker));
      const bool same = operands.has_value() && operands->x == operands->y;
      return same ? std::optional(operands->x) : std::nullopt;
    }
    AttrReader attrs(op(*maker));
    const bool square = op(*maker).type == "square" || attrs.Float("factor", 1) == 2;
    return square && attrs.status().ok() ? OnlyInput(op(*maker)) : std::nullopt;
  }

  // What the variable, which the op at position `reader` reads, is without its mean.
  std::optional<VarId> CenteredFrom(int reader, VarId id, NormMatch& match) const {
    const std::optional<int> maker = MakerFor(reader, id, {"elementwise_sub"});
    const auto operands = maker.has_value() ? OperandsByLastDim(op(*maker)) : std::nullopt;
    if (!operands.has_value()) return std::nullopt;
    NormMatch further = match;
    if (MeanOf(*maker, operands->y, further) != operands->x) return std::nullopt;
    further.chain.push_back(*maker);
    match = std::move(further);
    return operands->x;
  }

  // Of what is declared; 0 where that may not be the rank of a run.
  int64_t RankOf(VarId id) const {
    const bool known = VarOf(id) != nullptr && !uncertain_[id] && fuser_.uses()[id].writes <= 1;
    return known ? std::ssize(VarOf(id)->dims) : 0;
  }

  // A parameter with an element for each column of x, that the op behind the chain alone combines
  // with its result; the chain becomes longer then.
  std::optional<VarId> TakeVector(absl::string_view type, NormMatch& match) const {
    const std::optional<int> next = fuser_.OnlyReader(match.chain.front(), "Out");
    if (!next.has_value() || op(*next).type != type || !CheckNothingFused(op(*next)).ok()) {
      return std::nullopt;
    }
    const auto operands = OperandsByLastDim(op(*next));
    if (!operands.has_value()) return std::nullopt;
    const VarId own = *Fuser::Argument(op(match.chain.front()).outputs, "Out");
    const VarId id = operands->x == own ? operands->y : operands->x;
    const Var* const vector = fuser_.Parameter(id);
    const std::vector<int64_t> columns = {VarOf(match.x)->dims.back()};
    if (vector == nullptr || vector->dims != columns || columns[0] <= 0 ||
        vector->dtype != VarOf(match.x)->dtype) {
      return std::nullopt;
    }
    match.keeps_lod = match.keeps_lod && operands->x == own;
    match.chain.insert(match.chain.begin(), *next);
    return id;
  }

  void TryJoin(NormMatch match) {
    const OpDef* const def = match.centered ? layer_norm_ : rms_norm_;
    // Vectors of norms of bfloat16 are float32.
    const bool computes = RankOf(match.x) > 0 && def != nullptr &&
                          VarOf(match.x)->dtype != DType::kBFloat16 &&
                          HasKernelOf(*def, VarOf(match.x)->dtype);
    if (!computes) return;
    match.scale = TakeVector("elementwise_mul", match);
    if (match.scale.has_value()) match.bias = TakeVector("elementwise_add", match);
    absl::c_sort(match.chain);
    match.chain.erase(std::unique(match.chain.begin(), match.chain.end()), match.chain.end());
    const bool fits = match.centered || match.scale.has_value();
    if (!fits || !fuser_.IsStable(match.x, match.chain.front()) ||
        !fuser_.AreSeenWithin(match.chain)) {
      return;
    }
    Op fused = Fused(match);
    for (const int at : match.chain) fuser_.Drop(at);
    fuser_.Replace({match.chain.back()}, std::move(fused));
  }

  Op Fused(const NormMatch& match) {
    const VarId out = *Fuser::Argument(op(match.chain.back()).outputs, "Out");
    Op fused = fuser_.TakeAs(match.centered ? kLayerNorm : kRmsNorm, match.chain.back());
    AddInput(fused, match.centered ? "X" : "x", {match.x});
    if (match.scale.has_value()) {
      AddInput(fused, match.centered ? "Scale" : "norm_weight", {*match.scale});
    }
    if (match.bias.has_value()) {
      AddInput(fused, match.centered ? "Bias" : "norm_bias", {*match.bias});
    }
    AddOutput(fused, match.centered ? "Y" : "out", {out});
    SetAttr(fused, "begin_norm_axis", int32_t{-1});
    SetAttr(fused, "epsilon", match.epsilon);
    if (!match.keeps_lod) SetAttr(fused, "keeps_lod", false);
    return fused;
  }

  Fuser fuser_;
  const std::vector<bool> uncertain_;  // ranks, by variable
  const OpDef* const layer_norm_;      // null: not to be made
  const OpDef* const rms_norm_;
};

}  // namespace

absl::StatusOr<Program> FuseLayerNorm(Program program, const PassContext& context) {
  if (!HasOpOf(program, {"reduce_mean"}) || !HasOpOf(program, {"sqrt", "rsqrt"})) return program;
  return NormFuser(std::move(program), context).Run();
}

}  // namespace interp
