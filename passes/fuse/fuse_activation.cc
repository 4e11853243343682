#include "passes/fuse/fuse_activation.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "core/each_argument.h"
#include "core/edit_op.h"
#include "core/fused_forms.h"
#include "passes/fuse/fusion.h"
#include "passes/fuse/scalar_function.h"
#include "passes/fuse/unread_ops.h"

namespace interp {
namespace {

// Ops that end an activation, all of which multiply or divide.
constexpr absl::string_view kLastOps[] = {"elementwise_mul", "elementwise_div", "scale"};

// gelu by tanh takes nine.
constexpr size_t kMostPieces = 12;

// What an op may be in an activation.
enum class Piece : int8_t { kNone, kLine, kBend };

Piece PieceOf(const Op& op) {
  if (FunctionOf(op).has_value()) return op.type == "scale" ? Piece::kLine : Piece::kBend;
  const bool binary = BinaryFunctionOf(op) != nullptr && CheckNothingFused(op).ok();
  return binary ? Piece::kLine : Piece::kNone;
}

class ActivationFuser {
 public:
  ActivationFuser(Program program, const PassContext& context)
      : fuser_(std::move(program), context.ops), context_(context) {
    for (const Op& op : fuser_.ops()) pieces_.push_back(PieceOf(op));
  }

  // The last ops first: hard_swish has a hard_sigmoid in it.
  Program Run() && {
    for (int i = static_cast<int>(fuser_.ops().size()) - 1; i >= 0; --i) {
      if (!fuser_.IsGone(i) && absl::c_linear_search(kLastOps, op(i).type)) TryFuse(i);
    }
    return WithoutUnread(std::move(fuser_).TakeProgram(), context_.ops, constants_);
  }

 private:
  const Op& op(int index) const { return fuser_.ops()[index]; }

  // Fuser's, where activations are made of such ops.
  std::optional<int> MakerFor(int reader, VarId id) const {
    const std::optional<int> maker = fuser_.MakerFor(reader, id);
    const bool fits = maker.has_value() && pieces_[*maker] != Piece::kNone &&
                      Fuser::Argument(op(*maker).outputs, "Out") == id;
    return fits ? maker : std::nullopt;
  }

  // Variables that the op at `last` may compute a function of, the nearest first; none where no
  // bend is near.
  std::vector<VarId> Candidates(int last) const {
    std::vector<VarId> found;
    std::vector<int> open = {last};
    for (size_t i = 0; i < open.size() && open.size() <= kMostPieces; ++i) {
      for (const VarId id : EachArgument(op(open[i]).inputs)) {
        if (absl::c_linear_search(found, id)) continue;
        found.push_back(id);
        if (const std::optional<int> maker = MakerFor(open[i], id)) open.push_back(*maker);
      }
    }
    return Bends(open) ? found : std::vector<VarId>();
  }

  // The number of the dtype of x that a variable has for its readers.
  std::optional<double> ConstantFor(int reader, VarId id, VarId x) const {
    const std::optional<int> maker = fuser_.MakerFor(reader, id);
    return maker.has_value() ? ConstantOf(op(*maker), fuser_.uses()[x].var->dtype) : std::nullopt;
  }

  // Whether the op may read that number beside what is made of x: not as its first operand, which
  // gives the LoD, and not as shape [1] beside what may have no dims. Programs of old releases
  // declare such as [1].
  bool TakesConstant(int reader, VarId id, VarId x) const {
    return fuser_.uses()[x].var->dims.size() > 1 && Fuser::Argument(op(reader).inputs, "X") != id;
  }

  // The ops that make a value of x, each behind those whose results it reads.
  struct Chain {
    VarId x = 0;
    std::vector<int> ops = {};
    std::vector<int> seen = {};  // those on the way, too: they bound the depth
  };

  // Adds the ops that make `id`, which the op at position `reader` reads; false where there are
  // others or too many.
  bool FollowTo(int reader, VarId id, Chain& chain) const {
    if (id == chain.x) return true;
    if (ConstantFor(reader, id, chain.x).has_value()) return TakesConstant(reader, id, chain.x);
    const std::optional<int> maker = MakerFor(reader, id);
    return maker.has_value() && FollowOp(*maker, chain);
  }
  bool FollowOp(int index, Chain& chain) const {
    if (absl::c_linear_search(chain.seen, index)) return true;
    if (chain.seen.size() == kMostPieces) return false;
    chain.seen.push_back(index);
    for (const VarId id : EachArgument(op(index).inputs)) {
      if (!FollowTo(index, id, chain)) return false;
    }
    chain.ops.push_back(index);
    return true;
  }

  // Where an operand is: 0 stands for x and i + 1 for the result of step i; else it is a number.
  struct Operand {
    std::optional<size_t> at;
    double number = 0;
  };
  // An op of a chain.
  struct Step {
    std::optional<ElementFunction> function;
    BinaryFunction binary = nullptr;
    Operand first;
    Operand second;
  };

  std::vector<Step> StepsOf(const Chain& chain) const {
    std::vector<VarId> values = {chain.x};
    std::vector<Step> steps;
    for (const int index : chain.ops) {
      const auto operand = [&](const char* slot) -> Operand {
        const std::optional<VarId> id = Fuser::Argument(op(index).inputs, slot);
        if (!id.has_value()) return {};
        const auto found = absl::c_find(values, *id);
        if (found != values.end()) return {.at = found - values.begin()};
        return {.at = std::nullopt, .number = *ConstantFor(index, *id, chain.x)};
      };
      steps.push_back(
          {FunctionOf(op(index)), BinaryFunctionOf(op(index)), operand("X"), operand("Y")});
      values.push_back(*Fuser::Argument(op(index).outputs, "Out"));
    }
    return steps;
  }

  // What the steps make of one number.
  static double Value(const std::vector<Step>& steps, double x) {
    absl::InlinedVector<double, kMostPieces + 1> values = {x};
    const auto value_of = [&](const Operand& operand) {
      return operand.at.has_value() ? values[*operand.at] : operand.number;
    };
    for (const Step& step : steps) {
      const double first = value_of(step.first);
      values.push_back(step.function.has_value() ? (*step.function)(first)
                                                 : step.binary(first, value_of(step.second)));
    }
    return values.back();
  }

  void TryFuse(int last) {
    if (pieces_[last] == Piece::kNone) return;
    for (const VarId x : Candidates(last)) {
      Chain chain = {.x = x};
      if (fuser_.uses()[x].var == nullptr || !FollowOp(last, chain)) continue;
      if (chain.ops.size() < 2 || !Bends(chain.ops) || !MayJoin(x, chain.ops)) continue;
      const std::optional<KnownFunction> known = Recognized(chain);
      if (!known.has_value() || !HasKernel(known->type, x)) continue;
      absl::c_sort(chain.ops);
      return Join(*known, x, chain.ops);
    }
  }

  std::optional<KnownFunction> Recognized(const Chain& chain) const {
    const std::vector<Step> steps = StepsOf(chain);
    const bool has_kinks = absl::c_any_of(steps, [](const Step& step) {
      return step.function.has_value() && step.function->has_kinks;
    });
    const bool exact = fuser_.uses()[chain.x].var->dtype == DType::kFloat64;
    return RecognizeActivation([&](double x) { return Value(steps, x); }, has_kinks, exact);
  }

  // Sums and multiples alone are no activation.
  bool Bends(const std::vector<int>& chain) const {
    return absl::c_any_of(chain, [&](int at) { return pieces_[at] == Piece::kBend; });
  }

  // Whether one op may stand for the chain, whose order is that of its values.
  bool MayJoin(VarId x, std::vector<int> chain) const {
    absl::c_sort(chain);
    return fuser_.IsStable(x, chain.front()) && fuser_.AreSeenWithin(chain);
  }

  // Whether there is a kernel for it: there is none for complex numbers.
  bool HasKernel(absl::string_view type, VarId x) const {
    return CanMake(type, context_) &&
           HasKernelOf(*context_.ops.Find(type), fuser_.uses()[x].var->dtype);
  }

  // The last op's place and what it says of where it was made stay.
  void Join(const KnownFunction& known, VarId x, const std::vector<int>& chain) {
    const VarId out = *Fuser::Argument(op(chain.back()).outputs, "Out");
    for (const int at : chain) {
      for (const VarId id : EachArgument(op(at).inputs)) {
        if (ConstantFor(at, id, x).has_value()) constants_.push_back(id);
      }
    }
    Op fused = fuser_.TakeAs(known.type, chain.back());
    AddInput(fused, "X", {x});
    AddOutput(fused, "Out", {out});
    for (const Attr& attr : known.attrs) SetAttr(fused, attr.name, attr.value);
    for (const int at : chain) fuser_.Drop(at);
    fuser_.Replace({chain.back()}, std::move(fused));
  }

  Fuser fuser_;
  const PassContext& context_;
  std::vector<Piece> pieces_;     // by op
  std::vector<VarId> constants_;  // that what is joined has read
};

}  // namespace

absl::StatusOr<Program> FuseActivation(Program program, const PassContext& context) {
  // One of them is in each.
  if (!HasOpOf(program, {"sigmoid", "erf", "tanh", "relu6", "clip", "hard_sigmoid", "exp"})) {
    return program;
  }
  return ActivationFuser(std::move(program), context).Run();
}

}  // namespace interp
