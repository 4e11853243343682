#include "passes/quant/early_grids.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "core/attr_reader.h"
#include "core/edit_op.h"
#include "passes/fuse/fusion.h"
#include "passes/op_inputs.h"
#include "passes/quant/quantizers.h"

namespace interp {
namespace {

constexpr absl::string_view kQuantizer = "quantize_int8";
// Ops that go before a grid at most, one behind the other: the search is recursive.
constexpr int kMostInARow = 64;

class EarlyGrids {
 public:
  EarlyGrids(Program program, const PassContext& context)
      : fuser_(std::move(program), context.ops),
        writers_(FindWriters(fuser_)),
        float32_ops_(context.float32_ops) {}

  Program Run() && {
    for (int i = 0; i < std::ssize(fuser_.ops()); ++i) {
      const Op& op = fuser_.ops()[i];
      if (op.type == kQuantizer && IsConstant(op)) MoveUp(i);
    }
    return std::move(fuser_).TakeProgram();
  }

 private:
  bool IsConstant(const Op& quantizer) const {
    return fuser_.Parameter(Fuser::Argument(quantizer.inputs, "Scale")) != nullptr &&
           !Fuser::Argument(quantizer.outputs, "OutScale").has_value();
  }

  void MoveUp(int quantizer) {
    const Op& op = fuser_.ops()[quantizer];
    const std::optional<VarId> x = Fuser::Argument(op.inputs, "X");
    const std::optional<int> mover = x.has_value() ? MoverOf(*x) : std::nullopt;
    if (!mover.has_value() || *mover > quantizer) return;
    const VarId out = *Fuser::Argument(op.outputs, "Out");
    fuser_.Replace({*mover, quantizer}, Moved(*mover, out, op, /*depth=*/1));
  }

  // The op that makes the value for one reader, where it gives the same of whole numbers.
  std::optional<int> MoverOf(VarId value) const {
    const int writer = writers_[value];
    const VarUse& use = fuser_.uses()[value];
    if (writer < 0 || fuser_.IsGone(writer) || use.pinned() || use.mentions != 2 || use.reads != 1)
      return std::nullopt;
    const Op& op = fuser_.ops()[writer];
    if (absl::c_linear_search(float32_ops_, op.type)) return std::nullopt;
    if (op.type == "concat") return InputsCanBe(op) ? std::optional(writer) : std::nullopt;
    if (op.type != "pool2d" || !TakesMaximaOfImages(op) || !InputsCanBe(op)) return std::nullopt;
    const VarUse& input = fuser_.uses()[*Fuser::Argument(op.inputs, "X")];
    return input.mentions == 2 && !input.pinned() ? std::optional(writer) : std::nullopt;
  }

  // Whether every window of a pool has a part of the image in it. The maximum of padding alone is
  // the least number, which is another one on a grid.
  static bool TakesMaximaOfImages(const Op& pool) {
    AttrReader attrs(pool);
    if (attrs.String("pooling_type", "max") != "max" || !OnlyInput(pool).has_value()) return false;
    if (attrs.Bool("global_pooling", false)) return attrs.status().ok();
    const std::vector<int64_t> window = attrs.Ints("ksize");
    const std::vector<int64_t> paddings = attrs.Ints("paddings");
    const bool explicit_paddings = attrs.String("padding_algorithm", "EXPLICIT") == "EXPLICIT";
    const bool touch = absl::c_all_of(paddings, [&](int64_t padding) {
      return absl::c_all_of(window, [&](int64_t size) { return padding < size; });
    });
    return touch && explicit_paddings && !attrs.Bool("adaptive", false) &&
           !attrs.Bool("ceil_mode", false) && attrs.status().ok();
  }

  // Whether each of X is made by one op before, in the only way that it is.
  bool InputsCanBe(const Op& op) const {
    for (const Slot& slot : op.inputs) {
      if (slot.name != "X") continue;
      for (const VarId id : slot.args) {
        const VarUse& use = fuser_.uses()[id];
        if (writers_[id] < 0 || use.var == nullptr || use.block != 0) return false;
        if (use.var->kind != VarKind::kLodTensor || use.var->dtype != DType::kFloat32) return false;
        if (!fuser_.IsStable(id, writers_[id] + 1)) return false;
      }
      return !slot.args.empty();
    }
    return false;
  }

  // The op at `mover` for whole numbers, with the result `out`.
  Op Moved(int mover, VarId out, const Op& quantizer, int depth) {
    Op moved = fuser_.ops()[mover];
    absl::flat_hash_map<VarId, VarId> wholes;  // an input may be there twice
    for (Slot& slot : moved.inputs) {
      if (slot.name != "X") continue;
      for (VarId& id : slot.args) {
        const auto [at, is_new] = wholes.try_emplace(id);
        if (is_new) at->second = WholeNumbersOf(id, quantizer, depth);
        id = at->second;
      }
    }
    moved.outputs.clear();
    AddOutput(moved, "Out", {out});
    return moved;
  }

  VarId WholeNumbersOf(VarId value, const Op& quantizer, int depth) {
    Var var = *fuser_.uses()[value].var;
    var.dtype = DType::kInt8;
    const VarId whole = fuser_.Declare(std::string(fuser_.program().NameOf(value)) + ".int8", var);
    const std::optional<int> mover = depth < kMostInARow ? MoverOf(value) : std::nullopt;
    if (mover.has_value()) {
      fuser_.Replace({*mover}, Moved(*mover, whole, quantizer, depth + 1));
      return whole;
    }
    Op before = quantizer;
    before.inputs.clear();
    before.outputs.clear();
    AddInput(before, "X", {value});
    AddInput(before, "Scale", {*Fuser::Argument(quantizer.inputs, "Scale")});
    AddOutput(before, "Out", {whole});
    fuser_.PutBehind(writers_[value], std::move(before));
    return whole;
  }

  Fuser fuser_;
  const std::vector<int> writers_;
  const std::vector<std::string>& float32_ops_;
};

}  // namespace

Program QuantizeEarlier(Program program, const PassContext& context) {
  return EarlyGrids(std::move(program), context).Run();
}

}  // namespace interp
