#include "interpreter/run/engine_scheduler.h"

#include <algorithm>

#include "core/engine/engine.h"

namespace interp {
namespace {

// The reads and writes of every instruction as variables of an engine.
class PlanAccesses {
 public:
  PlanAccesses(const Plan& plan, engine::Engine& engine)
      : plan_(plan),
        engine_(engine),
        of_var_(plan.vars.size()),
        of_storage_(plan.vars.size()),
        of_instruction_(plan.instructions.size()),
        orders_(plan.instructions.size()) {
    std::vector<bool> used(plan.vars.size(), false);
    for (size_t id = 0; id < plan.vars.size(); ++id) {
      const int32_t storage = plan.vars[id].storage;
      of_var_[id] = engine.NewVariable(plan.vars[id].name);
      // A storage with several variables has a variable of its own.
      if (used[storage] && of_storage_[storage].var == nullptr) {
        of_storage_[storage] = engine.NewVariable(absl::StrCat("storage ", storage));
      }
      used[storage] = true;
    }
    for (const Edge& edge : plan.edges) {
      if (!edge.shrunk && edge.kind > EdgeKind::kWriteAfterWrite) AddOrder(edge);
    }
  }

  // What instruction `id` reads and writes, `end` (unless void) among the first; valid until the
  // next call.
  engine::Accesses Of(InstrId id, engine::Variable end) {
    const Instruction& instruction = plan_.instructions[id];
    reads_ = orders_[id];
    if (end.var != nullptr) reads_.push_back(end);
    writes_.clear();
    for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
      const VarId var = instruction.inputs[arg];
      if (var < 0) continue;
      const bool memory = (InputFlags(instruction, static_cast<int>(arg)) & kNoNeedBuffer) == 0;
      Add(var, memory, reads_);
    }
    for (size_t arg = 0; arg < instruction.outputs.size(); ++arg) {
      const VarId var = instruction.outputs[arg];
      if (var >= 0) Add(var, /*memory=*/true, writes_);
    }
    if (of_instruction_[id].var != nullptr) writes_.push_back(of_instruction_[id]);
    return {.reads = reads_, .writes = writes_};
  }

 private:
  void AddOrder(const Edge& edge) {
    engine::Variable& from = of_instruction_[edge.from];
    if (from.var == nullptr) from = engine_.NewVariable(absl::StrCat("instruction ", edge.from));
    orders_[edge.to].push_back(from);
  }

  void Add(VarId var, bool memory, std::vector<engine::Variable>& list) const {
    list.push_back(of_var_[var]);
    const engine::Variable storage = of_storage_[plan_.vars[var].storage];
    if (memory && storage.var != nullptr) list.push_back(storage);
  }

  const Plan& plan_;
  engine::Engine& engine_;
  std::vector<engine::Variable> of_var_;          // by VarId
  std::vector<engine::Variable> of_storage_;      // by storage id; void for those of one variable
  std::vector<engine::Variable> of_instruction_;  // written by instructions others wait for
  std::vector<std::vector<engine::Variable>> orders_;  // by InstrId: of those it waits for
  std::vector<engine::Variable> reads_;
  std::vector<engine::Variable> writes_;
};

class EngineScheduler final : public Scheduler {
 public:
  EngineScheduler(const Plan& plan, const RunParts& parts, engine::Engine& engine, bool nested)
      : parts_(parts), engine_(engine) {
    names_.reserve(plan.instructions.size());
    for (const Instruction& i : plan.instructions) names_.emplace_back(i.op_type);
    if (nested) end_ = engine.NewVariable(absl::StrCat("end of block ", plan.block));
  }

  ~EngineScheduler() override {
    if (end_.var != nullptr) (void)engine_.DeleteVariable(end_);
  }

  absl::Status Record(const Plan& plan) {
    PlanAccesses accesses(plan, engine_);
    for (InstrId id = 0; id < static_cast<InstrId>(plan.instructions.size()); ++id) {
      const Instruction& instruction = plan.instructions[id];
      const bool launches = instruction.queue == QueueKind::kDevice;
      INTERP_ASSIGN_OR_RETURN(
          engine::Operator op,
          engine_.NewOperator(
              [this, id](const engine::RunContext& ctx) {
                RunInstruction(id, std::max(0, ctx.worker));
              },
              accesses.Of(id, end_),
              {.name = names_[id].c_str(),
               .property = launches ? engine::Property::kHostUrgent : engine::Property::kNormal,
               // The plan counts the other way round.
               .priority = -instruction.priority}));
      operators_.push_back(std::move(op));
    }
    return absl::OkStatus();
  }

  void Run(const RunContext& context) override {
    context_ = context;
    // The pushes publish these. Errors of instructions are the control's; pushes cannot fail, as
    // the variables live as long as the engine.
    absl::Status status = engine_.PushAll(operators_);
    // The operations of a nested block all read its end: it may be written when they are done.
    const absl::Status waited =
        end_.var != nullptr ? engine_.WaitForWrite(end_) : engine_.WaitForAll();
    if (status.ok()) status = waited;
    if (!status.ok()) parts_.control->Fail(std::move(status));
  }

 private:
  void RunInstruction(InstrId id, int worker) {
    RunOne(parts_, id,
           {.infer_all = context_.infer_all, .observer = context_.observer, .worker = worker});
    parts_.collector->After(id, context_.observer, worker);
  }

  const RunParts parts_;
  RunContext context_;
  std::vector<std::string> names_;  // by InstrId; the engine borrows them
  engine::Engine& engine_;
  engine::Variable end_;                     // void unless nested
  std::vector<engine::Operator> operators_;  // by InstrId
};

}  // namespace

absl::StatusOr<std::unique_ptr<engine::Engine>> MakeSchedulerEngine(engine::PolicyKind policy,
                                                                    int num_workers) {
  // A run is pushed whole, so there is nothing to hold up.
  INTERP_ASSIGN_OR_RETURN(
      std::unique_ptr<engine::Engine> engine,
      engine::Engine::Create({.policy = policy, .workers = num_workers, .max_in_flight = 0}));
  INTERP_RETURN_IF_ERROR(engine->StartNow());
  return engine;
}

absl::StatusOr<std::unique_ptr<Scheduler>> MakeEngineScheduler(const Plan& plan,
                                                               const RunParts& parts,
                                                               engine::Engine& engine,
                                                               bool nested) {
  auto scheduler = std::make_unique<EngineScheduler>(plan, parts, engine, nested);
  INTERP_RETURN_IF_ERROR(scheduler->Record(plan));
  return std::unique_ptr<Scheduler>(std::move(scheduler));
}

}  // namespace interp
