#include "passes/train/micro_batches.h"

#include <utility>

#include "core/each_argument.h"
#include "core/edit_op.h"
#include "core/op_role.h"
#include "passes/make_op.h"
#include "passes/train/micro_batch_analysis.h"
#include "passes/train/split_stages.h"

namespace interp {
namespace {

constexpr absl::string_view kWeightPrefix = "micro_batches@WEIGHT_";
constexpr absl::string_view kSuffix = "@MICRO_";
constexpr absl::string_view kWeightedSuffix = "@WEIGHTED";

class Maker {
 public:
  Maker(const Program& main, const MicroBatchOptions& options, MicroBatchAnalysis found)
      : main_(main),
        ops_(main.blocks[0].ops),
        place_(options.place),
        found_(std::move(found)),
        positions_(VarPositions(main, main.blocks[0])),
        renamed_always_(main.names.size(), false),
        sums_of_(ops_.size()),
        summands_(found_.sums.size()) {
    made_.program = main;
    made_.program.blocks[0].ops.clear();
    made_.schedule = found_.schedule;
    made_.fetched_once = found_.fetched_once;
    for (const VarId id : found_.states) made_.states.push_back(main.NameOf(id));
    names_of_.resize(made_.schedule.micro_batches);
    for (size_t s = 0; s < found_.sums.size(); ++s) {
      sums_of_[found_.sums[s].writer].push_back(s);
      summands_[s].resize(made_.schedule.micro_batches, -1);
      renamed_always_[found_.sums[s].id] = true;
    }
  }

  absl::StatusOr<MicroBatchProgram> Run() {
    DeclareWeights();
    INTERP_RETURN_IF_ERROR(PutJobs());
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!IsUpdate(ops_[i])) continue;
      PutOnDevice(Add(ops_[i]), found_.segment_of[i]);
    }
    return std::move(made_);
  }

 private:
  const Var* VarOf(VarId id) const {
    return positions_[id] < 0 ? nullptr : &main_.blocks[0].vars[positions_[id]];
  }

  absl::Status PutJobs() {
    const JobSchedule& schedule = made_.schedule;
    std::vector<std::vector<Job>> of_stages;
    for (int32_t s = 0; s < schedule.stages; ++s) of_stages.push_back(JobsOfStage(schedule, s));
    INTERP_ASSIGN_OR_RETURN(const std::vector<TimedJob> order, OrderJobs(of_stages, schedule));
    std::vector<std::vector<size_t>> ops_of(2 * static_cast<size_t>(schedule.segments()));
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (found_.job_of[i] >= 0) ops_of[found_.job_of[i]].push_back(i);
    }
    for (const TimedJob& timed : order) {
      const int32_t number = NumberOf(schedule, timed.job);
      micro_batch_ = timed.job.micro_batch;
      JobOps put{.job = timed.job, .first_op = NumOps(), .num_ops = 0, .keeps = {}};
      for (const size_t i : ops_of[number]) PutOp(i, timed.job);
      put.num_ops = NumOps() - put.first_op;
      for (const VarId id : found_.kept[number]) put.keeps.push_back(NameNow(id));
      for (size_t s = 0; s < found_.sums.size(); ++s) {
        if (found_.job_of[found_.sums[s].writer] != number) continue;
        put.keeps.push_back(IsLast() ? found_.sums[s].id : summands_[s][micro_batch_]);
      }
      made_.jobs.push_back(std::move(put));
    }
    return absl::OkStatus();
  }

  bool IsLast() const { return micro_batch_ + 1 == made_.schedule.micro_batches; }
  int32_t NumOps() const { return static_cast<int32_t>(made_.program.blocks[0].ops.size()); }

  Op& Add(Op op) { return made_.program.blocks[0].ops.emplace_back(std::move(op)); }

  VarId Declare(const std::string& name, Var var) {
    var.id = made_.program.Intern(name);
    var.persistable = false;
    var.wire.clear();
    made_.program.blocks[0].vars.push_back(std::move(var));
    return made_.program.blocks[0].vars.back().id;
  }

  // As exact as the most exact gradient; ops of other types cast it.
  DType WeightType() const {
    bool is_double = false;
    const auto look = [&](VarId id) {
      const Var* const var = VarOf(id);
      is_double = is_double || (var != nullptr && var->dtype == DType::kFloat64);
    };
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!found_.starts[i]) continue;
      for (const VarId id : EachNamedArgument(main_, ops_[i].outputs)) look(id);
    }
    for (const MicroBatchSum& sum : found_.sums) look(sum.id);
    return is_double ? DType::kFloat64 : DType::kFloat32;
  }

  void DeclareWeights() {
    const DType dtype = WeightType();
    for (int32_t m = 0; m < made_.schedule.micro_batches; ++m) {
      made_.weights.push_back(absl::StrCat(kWeightPrefix, m));
      weights_.push_back(
          Declare(made_.weights.back(), {.dtype = dtype, .dims = {1}, .need_check_feed = true}));
    }
  }

  // The variable that `id` is in the present micro-batch.
  VarId NameNow(VarId id) {
    if (!found_.per_micro_batch[id] || (micro_batch_ == 0 && !renamed_always_[id])) return id;
    std::vector<VarId>& names = names_of_[micro_batch_];
    if (names.empty()) names.resize(main_.names.size(), -1);
    if (names[id] >= 0) return names[id];
    const std::string name = absl::StrCat(main_.names[id], kSuffix, micro_batch_);
    const Var* const var = VarOf(id);
    names[id] = var != nullptr ? Declare(name, *var) : made_.program.Intern(name);
    return names[id];
  }

  void PutOnDevice(Op& op, int32_t segment) const {
    if (made_.schedule.stages == 1 || place_.on_host()) return;
    if (IsPutOnHost(op)) {
      SetAttr(op, kDeviceAttr, Name(Place{}));  // without a number
      return;
    }
    Place place = place_;
    place.index = static_cast<int8_t>(place.index + segment % made_.schedule.stages);
    SetAttr(op, kDeviceAttr, Name(place));
  }

  void PutOp(size_t i, const Job& job) {
    Op op = ops_[i];
    for (std::vector<Slot>* const slots : {&op.inputs, &op.outputs}) {
      for (VarId& id : EachArgument(*slots)) id = NameNow(id);
    }
    for (Attr& attr : op.attrs) Rename(attr);
    std::erase_if(op.attrs, [](const Attr& attr) { return attr.name == "op_role_var"; });
    const int32_t segment = found_.segment_of[i];
    const auto add = [&](Op made) {
      SetAttr(made, kJobAttr, NameOf(made_.schedule, job));
      SetAttr(made, kStageAttr, job.stage);
      PutOnDevice(made, segment);
      Add(std::move(made));
    };
    std::vector<VarId> outputs;
    for (const VarId id : EachNamedArgument(main_, ops_[i].outputs)) outputs.push_back(NameNow(id));
    add(std::move(op));
    if (found_.starts[i]) {
      for (const VarId id : outputs) add(Weigh(id, id));
    }
    for (const size_t s : sums_of_[i]) PutSummand(found_.sums[s], summands_[s], add);
  }

  // Attributes that name variables.
  void Rename(Attr& attr) {
    const auto rename = [this](std::string& name) {
      const VarId id = main_.Find(name);
      if (id < 0 || NameNow(id) == id) return false;
      name = made_.program.NameOf(NameNow(id));
      return true;
    };
    bool changed = false;
    if (auto* const one = std::get_if<VarName>(&attr.value)) changed = rename(one->name);
    if (auto* const many = std::get_if<VarNames>(&attr.value)) {
      for (std::string& name : many->names) changed = rename(name) || changed;
    }
    if (changed) attr.wire.clear();
  }

  Op Weigh(VarId x, VarId out) const {
    Op op =
        MakeOp("scale", {{"X", {x}}, {"ScaleTensor", {weights_[micro_batch_]}}}, {{"Out", {out}}});
    SetRole(op, kBackwardRole);
    return op;
  }

  template <typename AddToJob>
  void PutSummand(const MicroBatchSum& sum, ArgIds& summands, const AddToJob& add) {
    const VarId own = NameNow(sum.id);
    VarId& summand = summands[micro_batch_];
    summand = own;
    if (sum.weighted) {
      const std::string name = absl::StrCat(made_.program.NameOf(own), kWeightedSuffix);
      const Var* const var = VarOf(sum.id);
      summand = var != nullptr ? Declare(name, *var) : made_.program.Intern(name);
      add(Weigh(own, summand));
    }
    if (IsLast()) PutSum(sum, summands);  // all schedules keep the order of the micro-batches
  }

  void PutSum(const MicroBatchSum& sum, const ArgIds& summands) {
    const int32_t segment = found_.segment_of[sum.writer];
    Op op = MakeOp("sum", {{"X", summands}}, {{"Out", {sum.id}}});
    SetRole(op, kBackwardRole);
    SetAttr(op, kStageAttr, segment % made_.schedule.stages);
    PutOnDevice(op, segment);
    Add(std::move(op));
  }

  const Program& main_;
  const std::vector<Op>& ops_;
  const Place place_;
  const MicroBatchAnalysis found_;
  const std::vector<int32_t> positions_;      // by VarId: of declarations
  std::vector<bool> renamed_always_;          // by VarId: in the first micro-batch, too
  std::vector<std::vector<size_t>> sums_of_;  // by op that writes them last
  std::vector<ArgIds> summands_;              // like found_.sums: by micro-batch
  std::vector<VarId> weights_;                // by micro-batch
  int32_t micro_batch_ = 0;                   // the present one
  std::vector<std::vector<VarId>> names_of_;  // by micro-batch and VarId; -1: not yet
  MicroBatchProgram made_;
};

}  // namespace

std::string NameInMicroBatch(const std::string& name, int32_t micro_batch) {
  return micro_batch == 0 ? name : absl::StrCat(name, kSuffix, micro_batch);
}

absl::StatusOr<MicroBatchProgram> MakeMicroBatches(const Program& main,
                                                   const std::vector<std::string>& feeds,
                                                   const MicroBatchOptions& options,
                                                   const OpRegistry& ops) {
  INTERP_ASSIGN_OR_RETURN(MicroBatchAnalysis found, AnalyzeMicroBatches(main, feeds, options, ops));
  return Maker(main, options, std::move(found)).Run();
}

}  // namespace interp
