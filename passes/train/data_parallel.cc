#include "passes/train/data_parallel.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "core/edit_op.h"
#include "core/op_role.h"
#include "core/sub_blocks.h"
#include "passes/feed_fetch.h"
#include "passes/make_op.h"
#include "passes/op_effects.h"
#include "passes/train/micro_batch_flow.h"
#include "passes/train/split_update.h"

namespace interp {
namespace {

constexpr absl::string_view kWeightName = "data_parallel@WEIGHT";

struct Gradient {
  VarId id = -1;
  size_t writer = 0;  // position of the last op before the update that writes it
  DType dtype = DType::kFloat32;
  int64_t bytes = 0;
};

struct Bucket {
  std::vector<VarId> gradients;
  size_t writer = 0;  // of the last of them
  DType dtype = DType::kFloat32;
  int64_t bytes = 0;
};

class Rewriter {
 public:
  Rewriter(const Program& main, const DataParallelOptions& options)
      : options_(options), vars_(main.names.size()), writer_(main.names.size()) {
    result_.program = main;
    for (const Var& var : main.blocks[0].vars) vars_[var.id] = &var;
    const std::vector<Op>& ops = main.blocks[0].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (IsUpdate(ops[i])) continue;
      for (const VarId id : UsesOf(main, ops[i]).writes) writer_[id] = i;
      last_ = i;
    }
  }

  absl::StatusOr<DataParallelProgram> Run(const Program& main) {
    INTERP_ASSIGN_OR_RETURN(const SplitProgram split, SplitUpdate(main));
    INTERP_RETURN_IF_ERROR(CheckSharesUpdate(split, "ranks"));
    result_.same_on_all_ranks = split.fetched_from_update;
    FindGradients(main, split);
    INTERP_RETURN_IF_ERROR(FindStates(main, split));
    MakeBuckets();
    DeclareWeight();
    PutOps(main);
    return std::move(result_);
  }

 private:
  void FindGradients(const Program& main, const SplitProgram& split) {
    for (const PassedValue& value : split.passed) {
      const VarId id = main.Find(value.variable);
      // Selected rows are passed as two tensors.
      if (value.merge == Merge::kScaledRows) rows_.push_back(id);
      if (value.merge != Merge::kMean) continue;
      const Var* const var = vars_[id];
      const bool known = var != nullptr && var->dtype != DType::kUndefined;
      const DType dtype = known ? var->dtype : DType::kFloat32;
      if (!IsFloating(dtype)) continue;  // the same on all ranks
      int64_t bytes = static_cast<int64_t>(SizeOf(dtype));
      for (const int64_t dim : var == nullptr ? std::vector<int64_t>() : var->dims) {
        bytes *= std::max<int64_t>(dim, 1);
      }
      gradients_.push_back({.id = id, .writer = WriterOf(id), .dtype = dtype, .bytes = bytes});
    }
  }

  // Those that forward and backward part begin with, change and use, so that a step depends on what
  // those before have left.
  absl::Status FindStates(const Program& main, const SplitProgram& split) {
    std::vector<bool> used(main.names.size(), false);
    for (const Op& op : main.blocks[0].ops) {
      if (IsFetch(op)) continue;
      for (const Slot& slot : op.inputs) {
        if (OnlyMoves(op, slot)) continue;
        for (const VarId id : slot.args) used[id] = true;
      }
      if (!HasSubBlock(op)) continue;
      for (const VarId id : UsesOf(main, op).reads) used[id] = true;
    }
    const absl::flat_hash_set<std::string> begun_with(split.states_read.begin(),
                                                      split.states_read.end());
    for (const std::string& name : split.states_written) {
      const VarId id = main.Find(name);
      if (!used[id] || !begun_with.contains(name)) continue;
      const Var* const var = vars_[id];
      if (var != nullptr && absl::c_linear_search(var->dims, -1)) {
        return Unimplemented("'", name,
                             "' is a state of open dims that a step reads: ranks would "
                             "go on with that of rank 0, and may have others");
      }
      states_.push_back(id);
    }
    return absl::OkStatus();
  }

  // What nobody is known to write counts as written by the last op.
  size_t WriterOf(VarId id) const { return writer_[id].value_or(last_); }

  void MakeBuckets() {
    std::stable_sort(gradients_.begin(), gradients_.end(),
                     [](const Gradient& a, const Gradient& b) { return a.writer < b.writer; });
    std::map<DType, Bucket> open;
    for (const Gradient& gradient : gradients_) {
      Bucket& bucket = open[gradient.dtype];
      bucket.dtype = gradient.dtype;
      bucket.gradients.push_back(gradient.id);
      bucket.writer = gradient.writer;
      bucket.bytes += gradient.bytes;
      if (bucket.bytes < options_.bucket_bytes) continue;
      buckets_.push_back(std::exchange(bucket, {}));
    }
    for (auto& [dtype, bucket] : open) {
      if (!bucket.gradients.empty()) buckets_.push_back(std::move(bucket));
    }
    std::stable_sort(buckets_.begin(), buckets_.end(),
                     [](const Bucket& a, const Bucket& b) { return a.writer < b.writer; });
    result_.num_buckets = static_cast<int>(buckets_.size());
  }

  VarId Declare(const std::string& name, DType dtype, std::vector<int64_t> dims) {
    Program& program = result_.program;
    Var var;
    var.id = program.Intern(name);
    var.kind = VarKind::kLodTensor;
    var.dtype = dtype;
    var.dims = std::move(dims);
    program.blocks[0].vars.push_back(var);
    return var.id;
  }

  void DeclareWeight() {
    result_.weight = std::string(kWeightName);
    weight_ = Declare(result_.weight, DType::kFloat64, {1});
    result_.program.blocks[0].vars.back().need_check_feed = true;
  }

  Op Make(absl::string_view type, SlotArgs inputs, SlotArgs outputs) const {
    Op op = MakeOp(type, inputs, outputs);
    SetAttr(op, "ring_id", options_.ring_id);
    SetRole(op, kBackwardRole);
    return op;
  }

  // Forward and backward part with the start of each bucket behind its last gradient; what waits
  // for them; the update.
  void PutOps(const Program& main) {
    std::vector<Op> first;
    std::vector<Op> waits;
    std::vector<Op> update;
    std::vector<Op> fetches;
    size_t next = 0;
    const std::vector<Op>& ops = main.blocks[0].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (IsFetch(ops[i])) {
        fetches.push_back(ops[i]);
      } else {
        (IsUpdate(ops[i]) ? update : first).push_back(ops[i]);
      }
      for (; next < buckets_.size() && buckets_[next].writer == i; ++next) {
        PutBucket(buckets_[next], static_cast<int>(next), first, waits);
      }
    }
    for (const VarId rows : rows_) PutRows(rows, first);
    for (const VarId state : states_) PutState(state, first);
    std::vector<Op>& all = result_.program.blocks[0].ops;
    all = std::move(first);
    for (std::vector<Op>* const part : {&waits, &update, &fetches}) {
      std::move(part->begin(), part->end(), std::back_inserter(all));
    }
  }

  void PutBucket(const Bucket& bucket, int number, std::vector<Op>& first, std::vector<Op>& waits) {
    const VarId sum = Declare(absl::StrCat("data_parallel@BUCKET_", number), bucket.dtype, {-1});
    const ArgIds gradients(bucket.gradients.begin(), bucket.gradients.end());
    Op start =
        Make("c_bucket_allreduce", {{"X", gradients}, {"Weight", {weight_}}}, {{"Bucket", {sum}}});
    // Before what else is ready, as it returns at once. Other communication comes last.
    SetAttr(start, "scheduling_priority", -1);
    first.push_back(std::move(start));
    waits.push_back(
        Make("c_bucket_wait", {{"X", gradients}, {"Bucket", {sum}}}, {{"Out", gradients}}));
  }

  void PutRows(VarId rows, std::vector<Op>& first) const {
    first.push_back(
        Make("c_allreduce_rows", {{"X", {rows}}, {"Weight", {weight_}}}, {{"Out", {rows}}}));
  }

  void PutState(VarId state, std::vector<Op>& first) const {
    Op broadcast = Make("c_broadcast", {{"X", {state}}}, {{"Out", {state}}});
    SetAttr(broadcast, "root", 0);
    first.push_back(std::move(broadcast));
  }

  const DataParallelOptions options_;
  std::vector<const Var*> vars_;               // by VarId of the given program, or null
  std::vector<std::optional<size_t>> writer_;  // likewise
  size_t last_ = 0;                            // op that is not of the update
  std::vector<Gradient> gradients_;
  std::vector<VarId> rows_;    // selected rows
  std::vector<VarId> states_;  // that all ranks are to have of rank 0
  std::vector<Bucket> buckets_;
  VarId weight_ = -1;
  DataParallelProgram result_;
};

}  // namespace

absl::StatusOr<DataParallelProgram> MakeDataParallel(const Program& main,
                                                     const DataParallelOptions& options) {
  return Rewriter(main, options).Run(main);
}

}  // namespace interp
