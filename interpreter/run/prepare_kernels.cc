#include "interpreter/run/prepare_kernels.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/catching.h"
#include "core/machine/openmp_team.h"
#include "interpreter/run/bound_args.h"

namespace interp {
namespace {

// An instruction to be prepared. Its arguments have shapes.
struct ToPrepare {
  InstrId id = 0;
  BoundArgs args;
  int64_t num_known = 0;  // elements of inputs that have their values: weights
};

KernelFn PrepareOf(const Instruction& instruction) {
  if (!instruction.place.on_host()) return nullptr;
  return instruction.def->kernels[instruction.kernel].prepare;
}

// Walks over a block in program order and infers what a run would, as far as shapes alone tell.
class ShapesAhead {
 public:
  // All is borrowed. What has memory now is known.
  ShapesAhead(const Plan& plan, absl::Span<Variable* const> variables)
      : plan_(plan), known_(plan.vars.size(), nullptr) {
    for (size_t id = 0; id < known_.size(); ++id) {
      const bool tensor = plan.vars[id].kind == VarKind::kLodTensor;
      const bool is_feed_list = static_cast<VarId>(id) == plan.feed_list;
      if (is_feed_list || (tensor && variables[id]->tensor.has_memory()))
        known_[id] = variables[id];
    }
  }

  // The arguments of the next instruction with the shapes that they will have after it. Nothing
  // where that depends on values, or on shapes that are not known.
  std::optional<BoundArgs> Next(const Instruction& instruction) {
    const bool takes_known = TakesKnown(instruction);
    for (const VarId id : instruction.outputs) {
      if (id >= 0) known_[id] = takes_known ? &Renew(id) : nullptr;
    }
    if (!takes_known) return std::nullopt;
    BoundArgs args = BindArgs(plan_, instruction, known_);
    if (Infer(instruction, args).ok()) return args;
    for (const VarId id : instruction.outputs) {
      if (id >= 0) known_[id] = nullptr;
    }
    return std::nullopt;
  }

 private:
  bool TakesKnown(const Instruction& instruction) const {
    if (instruction.sub_block >= 0) return false;
    for (int arg = 0; arg < static_cast<int>(instruction.inputs.size()); ++arg) {
      const VarId id = instruction.inputs[arg];
      if (id < 0) continue;
      if (known_[id] == nullptr) return false;
      const int flags = InputFlags(instruction, arg);
      if ((flags & kValueInInfer) != 0 && !known_[id]->tensor.has_memory()) return false;
      // Of what is declared wrongly the run says so.
      if (!TakesDType(instruction, arg, known_[id]->tensor.dtype)) return false;
    }
    return std::all_of(instruction.outputs.begin(), instruction.outputs.end(), [this](VarId id) {
      return id < 0 || plan_.vars[id].kind == VarKind::kLodTensor;
    });
  }

  // The variable as it will be, with no memory. An update goes on from the shape that it has.
  Variable& Renew(VarId id) {
    Variable& made = made_.emplace_back();
    if (known_[id] != nullptr) CopyMetadata(known_[id]->tensor, made.tensor);
    return made;
  }

  absl::Status Infer(const Instruction& instruction, BoundArgs& args) const {
    const OpDef& def = *instruction.def;
    const void* const attrs = instruction.attrs.get();
    const bool feeds = instruction.inputs.size() == 1 && instruction.inputs[0] == plan_.feed_list;
    if (feeds) {  // which takes the caller's memory
      KernelContext context(args, attrs, {});
      return Catching([&] { return def.kernels[instruction.kernel].run(context); });
    }
    if (def.dynamic_outputs || def.infer == nullptr) return absl::UnavailableError("");
    const size_t first = instruction.inputs.size();
    for (size_t arg = 0; arg < instruction.outputs.size(); ++arg) {
      Tensor* const tensor = args.tensors[first + arg];
      if (tensor == nullptr) continue;
      tensor->dtype = instruction.output_dtypes[arg];
      tensor->layout = instruction.output_layouts[arg];
    }
    InferContext context(args, attrs);
    return Catching([&] { return def.infer(context); });
  }

  const Plan& plan_;
  std::vector<Variable*> known_;  // by VarId; null: its shape is not known
  std::deque<Variable> made_;     // do not move
};

int64_t CountKnown(const Instruction& instruction, const BoundArgs& args) {
  int64_t count = 0;
  for (size_t arg = 0; arg < instruction.inputs.size(); ++arg) {
    const Tensor* const tensor = args.tensors[arg];
    if (tensor != nullptr && tensor->has_memory()) count += tensor->numel();
  }
  return count;
}

std::vector<ToPrepare> FindTasks(const Plan& plan, ShapesAhead& shapes) {
  std::vector<ToPrepare> tasks;
  for (size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& instruction = plan.instructions[i];
    std::optional<BoundArgs> args = shapes.Next(instruction);
    if (!args.has_value() || PrepareOf(instruction) == nullptr) continue;
    const int64_t num_known = CountKnown(instruction, *args);
    tasks.push_back({static_cast<InstrId>(i), *std::move(args), num_known});
  }
  // Packing a large weight takes longest. Begun last, it would keep one thread alone.
  std::stable_sort(tasks.begin(), tasks.end(), [](const ToPrepare& a, const ToPrepare& b) {
    return a.num_known > b.num_known;
  });
  return tasks;
}

// Tasks that several threads do, each one after the other.
class Preparation {
 public:
  Preparation(const Plan& plan, InstructionRunner& runner, std::vector<ToPrepare>& tasks,
              const std::function<bool()>& stops)
      : plan_(plan), runner_(runner), all_(tasks), stops_(stops) {}

  // Until none is left.
  void Work() {
    const bool alone = std::exchange(ThisTeam().alone, true);
    for (size_t i = next_++; i < all_.size() && !stops_(); i = next_++) {
      const Instruction& instruction = plan_.instructions[all_[i].id];
      KernelContext context = runner_.ContextFor(all_[i].id, all_[i].args);
      Catching([&] { return PrepareOf(instruction)(context); }).IgnoreError();
    }
    ThisTeam().alone = alone;
  }

 private:
  const Plan& plan_;
  InstructionRunner& runner_;
  std::vector<ToPrepare>& all_;
  const std::function<bool()>& stops_;
  std::atomic<size_t> next_{0};
};

}  // namespace

void PrepareKernels(const Plan& plan, absl::Span<Variable* const> variables,
                    InstructionRunner& runner, PrepareThreads run_by,
                    const std::function<bool()>& stops) {
  const auto prepares = [](const Instruction& i) { return PrepareOf(i) != nullptr; };
  const auto count = std::count_if(plan.instructions.begin(), plan.instructions.end(), prepares);
  const int num_threads = run_by.num_workers * run_by.per_op;
  if (num_threads < 2 || count < 2) return;
  ShapesAhead shapes(plan, variables);
  std::vector<ToPrepare> tasks = FindTasks(plan, shapes);
  const int threads = std::min(num_threads, static_cast<int>(tasks.size()));
  Preparation preparation(plan, runner, tasks, stops);
  const auto work = [&preparation] { preparation.Work(); };
  if (threads < 2) return;
  // The thread that calls runs the ops next, unless several workers do.
  if (run_by.num_workers == 1) {
    RunOnTeam(threads, work);
  } else {
    RunOnThreads(threads, work);
  }
}

}  // namespace interp
