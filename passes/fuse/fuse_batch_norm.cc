#include "passes/fuse/fuse_batch_norm.h"

#include <iterator>
#include <optional>
#include <utility>

#include "core/each_argument.h"
#include "passes/fuse/fusion.h"

namespace interp {
namespace {

constexpr absl::string_view kBatchNorm = "batch_norm";

class BatchNormFuser {
 public:
  BatchNormFuser(Program program, const OpRegistry& ops) : fuser_(std::move(program), ops) {}

  Program Run() && {
    for (int i = 0; i < std::ssize(fuser_.ops()); ++i) {
      if (const std::optional<int> relu = Match(i)) Join(i, *relu);
    }
    return std::move(fuser_).TakeProgram();
  }

 private:
  const Op& op(int index) const { return fuser_.ops()[index]; }

  // The relu of the batch norm at `index`.
  std::optional<int> Match(int index) const {
    if (op(index).type != kBatchNorm || !OnlyNormalizes(fuser_, op(index))) return std::nullopt;
    const std::optional<int> next = fuser_.OnlyReader(index, "Y");
    if (!next.has_value() || op(*next).type != "relu") return std::nullopt;
    return MatchActivation(op(*next)).has_value() && KeepsInputs(index) ? next : std::nullopt;
  }

  // Whether the op at `index` would read the same further down. Statistics it may write itself,
  // with what they hold.
  bool KeepsInputs(int index) const {
    for (const VarId id : EachArgument(op(index).inputs)) {
      const VarUse& use = fuser_.uses()[id];
      if (use.block == VarUse::kSeveralBlocks ? use.writes > 0 : use.last_change > index) {
        return false;
      }
    }
    return true;
  }

  void Join(int norm, int relu) {
    Op fused = fuser_.TakeForFusion(norm);
    for (const Slot& slot : op(norm).inputs) AddInput(fused, slot.name, slot.args);
    for (const Slot& slot : op(norm).outputs) {
      AddOutput(fused, slot.name, slot.name == "Y" ? op(relu).FindOutput("Out")->args : slot.args);
    }
    SetAttr(fused, "fuse_with_relu", true);
    fuser_.Replace({norm, relu}, std::move(fused));
  }

  Fuser fuser_;
};

}  // namespace

absl::StatusOr<Program> FuseBatchNorm(Program program, const PassContext& context) {
  if (!HasOpOf(program, {kBatchNorm})) return program;
  return BatchNormFuser(std::move(program), context.ops).Run();
}

}  // namespace interp
