#include "passes/fuse/fuse_where.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/attr_reader.h"
#include "core/edit_op.h"
#include "core/fused_forms.h"
#include "passes/fuse/fusion.h"
#include "passes/fuse/unread_ops.h"
#include "passes/op_inputs.h"

namespace interp {
namespace {

constexpr absl::string_view kWhere = "where";
constexpr absl::string_view kBroadcastWhere = "broadcast_where";

// Variables that are zeros, and those whose shapes they have together.
struct Zeros {
  std::vector<VarId> made;
  std::vector<VarId> like;
};

class WhereFuser {
 public:
  WhereFuser(Program program, const OpRegistry& ops)
      : fuser_(std::move(program), ops), registry_(ops) {}

  Program Run() && {
    for (int i = 0; i < std::ssize(fuser_.ops()); ++i) {
      if (op(i).type == kWhere) TryFuse(i);
    }
    return WithoutUnread(std::move(fuser_).TakeProgram(), registry_, passed_);
  }

 private:
  const Op& op(int index) const { return fuser_.ops()[index]; }

  std::optional<BinaryOperands> SumAt(int index) const {
    return op(index).type == "elementwise_add" ? OperandsByLastDim(op(index)) : std::nullopt;
  }

  // The sum that makes the variable, which the op at position `reader` alone reads.
  std::optional<BinaryOperands> SumFor(int reader, VarId id) const {
    const std::optional<int> maker = fuser_.MakerFor(reader, id);
    if (!maker.has_value() || fuser_.OnlyReader(*maker, "Out") != reader) return std::nullopt;
    return SumAt(*maker);
  }

  // What a cast to `dtype`, or to any, reads.
  std::optional<VarId> CastFrom(int index, std::optional<DType> dtype) const {
    if (op(index).type != "cast") return std::nullopt;
    AttrReader attrs(op(index));
    const bool fits = !dtype.has_value() || attrs.Type("out_dtype", DType::kUndefined) == *dtype;
    return fits && attrs.status().ok() ? OnlyInput(op(index)) : std::nullopt;
  }

  // Follows zeros, which the op at position `reader` reads, back to the variables that they are
  // like; false where something else is added.
  bool FollowZeros(int reader, VarId id, int depth, Zeros& zeros) const {
    constexpr int kMostDepth = 4;  // paddle.where adds three
    const std::optional<int> maker = fuser_.MakerFor(reader, id);
    if (!maker.has_value() || depth > kMostDepth) return false;
    zeros.made.push_back(id);
    if (const std::optional<BinaryOperands> sum = SumAt(*maker)) {
      return FollowZeros(*maker, sum->x, depth + 1, zeros) &&
             FollowZeros(*maker, sum->y, depth + 1, zeros);
    }
    if (const std::optional<VarId> from = CastFrom(*maker, std::nullopt)) {
      return FollowZeros(*maker, *from, depth + 1, zeros);
    }
    const std::optional<VarId> source = OnlyInput(op(*maker));
    AttrReader attrs(op(*maker));
    const bool zero = op(*maker).type == "fill_any_like" && attrs.Float("value", 1) == 0;
    if (!zero || !attrs.status().ok() || !source.has_value()) return false;
    zeros.like.push_back(*source);
    return true;
  }

  void TryFuse(int where) {
    const std::optional<VarId> condition = Fuser::Argument(op(where).inputs, "Condition");
    const std::optional<VarId> x = Fuser::Argument(op(where).inputs, "X");
    const std::optional<VarId> y = Fuser::Argument(op(where).inputs, "Y");
    if (!condition.has_value() || !x.has_value() || !y.has_value()) return;
    const std::optional<BinaryOperands> x_sum = SumFor(where, *x);
    const std::optional<BinaryOperands> y_sum = SumFor(where, *y);
    const std::optional<int> to_bool = fuser_.MakerFor(where, *condition);
    if (!x_sum.has_value() || !y_sum.has_value() || !to_bool.has_value()) return;
    const std::optional<VarId> number = CastFrom(*to_bool, DType::kBool);
    const std::optional<BinaryOperands> sum =
        number.has_value() ? SumFor(*to_bool, *number) : std::nullopt;
    const std::optional<int> cast =
        sum.has_value() ? fuser_.MakerFor(*to_bool, sum->x) : std::nullopt;
    if (!cast.has_value() || x_sum->y != y_sum->y || x_sum->y != sum->y) return;
    const std::optional<VarId> from = CastFrom(*cast, std::nullopt);
    const std::optional<VarId> out = Fuser::Argument(op(where).outputs, "Out");
    if (!from.has_value() || !out.has_value() || DTypeOf(*from) != DType::kBool) return;
    const DType dtype = DTypeOf(*out);
    if (dtype == DType::kUndefined) return;
    if (DTypeOf(x_sum->x) != dtype || DTypeOf(y_sum->x) != dtype || DTypeOf(sum->y) != dtype)
      return;
    const std::vector<VarId> operands = {*from, x_sum->x, y_sum->x};
    Zeros zeros;
    if (!FollowZeros(*to_bool, sum->y, /*depth=*/0, zeros) || !AreLikeAll(zeros, operands)) return;
    int first = *cast;
    for (const VarId id : zeros.made) first = std::min(first, fuser_.uses()[id].last_write);
    for (const VarId id : operands) {
      if (!fuser_.IsStable(id, first)) return;
    }
    passed_.insert(passed_.end(), zeros.made.begin(), zeros.made.end());
    for (const VarId id : {*condition, *x, *y, *number, sum->x}) passed_.push_back(id);
    Replace(where, operands, *out);
  }

  DType DTypeOf(VarId id) const {
    const Var* const var = fuser_.uses()[id].var;
    return var == nullptr ? DType::kUndefined : var->dtype;
  }

  // Whether zeros have the shape that all operands together broadcast to.
  static bool AreLikeAll(const Zeros& zeros, const std::vector<VarId>& operands) {
    const auto is_operand = [&](VarId of) { return absl::c_linear_search(operands, of); };
    const auto counts = [&](VarId of) { return absl::c_linear_search(zeros.like, of); };
    return absl::c_all_of(zeros.like, is_operand) && absl::c_all_of(operands, counts);
  }

  void Replace(int where, const std::vector<VarId>& operands, VarId out) {
    Op fused = fuser_.TakeAs(kBroadcastWhere, where);
    AddInput(fused, "Condition", {operands[0]});
    AddInput(fused, "X", {operands[1]});
    AddInput(fused, "Y", {operands[2]});
    AddOutput(fused, "Out", {out});
    fuser_.Replace({where}, std::move(fused));
  }

  Fuser fuser_;
  const OpRegistry& registry_;
  std::vector<VarId> passed_;  // variables in whose place others are read
};

}  // namespace

absl::StatusOr<Program> FuseWhere(Program program, const PassContext& context) {
  if (!HasOpOf(program, {kWhere}) || !CanMake(kBroadcastWhere, context)) return program;
  return WhereFuser(std::move(program), context.ops).Run();
}

}  // namespace interp
