// InstructionRunner: the instructions of a plan bound to a frame's variables, runnable one by one.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/op_def.h"
#include "core/resource/place_resources.h"
#include "core/status.h"
#include "core/storage/pool.h"
#include "core/tensor.h"
#include "interpreter/plan/plan.h"
#include "interpreter/run/device_set.h"
#include "interpreter/run/run_context.h"

namespace interp {

class Frame;

struct RunnerOptions {
  int num_threads = 1;  // inside an op
  Algorithms algorithms = Algorithms::kFast;
  // Fail at the first op whose floating output has a NaN or an infinity.
  bool check_nan_inf = false;
};

// For one instruction: infer shapes when they may have changed, give the outputs memory (that of an
// input where the plan pairs them and nobody else holds it), compute, check. On a device: let the
// stream wait for the events the plan names, launch instead of compute, record. An instruction with
// a sub-block gets the frame to run it on.
//
// Thread-safety: Run may be called concurrently for instructions the plan does not order.
// Cost: a warm Run looks nothing up and allocates from the pool alone.
class InstructionRunner {
 public:
  // What instructions run with, borrowed.
  struct Services {
    Allocator* pool = nullptr;
    DeviceSet* devices = nullptr;                           // null for a plan without devices
    absl::Span<const std::unique_ptr<DeviceEvent>> events;  // by index into Plan::events
    SharedConstants* shared = nullptr;
    const RandomState* random = nullptr;  // does not change during an activation
    std::map<std::string, PlaceResources>* resources = nullptr;  // of the core, by place name
  };
  // What is needed only while instructions are bound.
  struct Bindings {
    // Of the plan: those of each run, or the folded ones.
    absl::Span<const Instruction> instructions;
    absl::Span<Variable* const> variables;  // by VarId
    absl::Span<Frame* const> blocks = {};   // of instructions with a sub-block, in program order
    // The plan's RandomOpIds; empty when none of the instructions draws numbers.
    absl::Span<const uint64_t> random_ops = {};
  };
  // All but `bindings` is borrowed and must outlive the runner, as must the variables.
  InstructionRunner(const Plan& plan, const Bindings& bindings, const Services& services,
                    const RunnerOptions& options);
  ~InstructionRunner();

  // Runs one instruction. Errors are prefixed with op, index and the inputs' names, dtypes and
  // shapes.
  absl::Status Run(InstrId id, const RunContext& context);

  // The events that the issuing thread must wait for before Run, as indices into Plan::events.
  absl::Span<const int32_t> HostWaits(InstrId id) const;
  absl::Status WaitFor(int32_t event) { return services_.events[event]->Synchronize(); }

  // The parts of Run, for work of a device that is captured or enqueued with that of others: the
  // stream waits for the events the plan names; memory of the outputs and the work itself, with
  // the shapes of the run before; the event that stands for it. Errors as those of Run.
  absl::Status AwaitEvents(InstrId id);
  absl::Status Enqueue(InstrId id);
  absl::Status NoteEnqueued(InstrId id, absl::Status status = absl::OkStatus());

  // Prefixes an error of instruction `id` as Run does.
  absl::Status Explain(InstrId id, const absl::Status& status) const;

  // Whether an update in place has given its variable another shape since the last call: then what
  // reads the variable before the update finds other shapes in the next activation.
  bool TakeReshaped() { return reshaped_.exchange(false, std::memory_order_relaxed); }

  // What an op with OpDef::random draws from.
  const RandomSource& random(InstrId id) const;

  // What the kernel of an instruction computed with when it last ran; empty for those that do not
  // choose. REQUIRES: no Run in progress.
  std::string Algorithm(InstrId id) const;

  // The context of an instruction of the host with other arguments; what its kernel keeps is the
  // same. REQUIRES: no Run in progress while it is used, and one user of that at a time.
  KernelContext ContextFor(InstrId id, BoundArgs& args) const;

  // Forgets what kernels keep between runs. REQUIRES: no Run in progress, nothing in flight.
  void ResetKernelStates();

 private:
  struct Output;
  struct Hot;
  struct Rare;
  struct Bound;

  static Rare& RareOf(Bound& bound);
  static bool WritesPersistables(const Bound& bound);
  void BindPlaces();
  void Bind(InstrId id, const Bindings& bindings);
  void BindInputs(Bound& bound);
  void BindOutputs(Bound& bound, absl::Span<Variable* const> variables);
  static void BindLaunch(Bound& bound);
  Allocator& AllocatorOf(const Instruction& instruction, const PlanVar& var);
  absl::Status Prepare(InstrId id, bool infer_all);
  absl::Status GiveMemoryOrUndo(InstrId id, bool inferred);
  absl::Status RunWithDevices(InstrId id, const RunContext& context);
  absl::Status RunOnHost(InstrId id, const RunContext& context);
  absl::Status Launch(InstrId id);
  void RecordUseOfPeers(const Bound& bound);
  absl::Status Infer(Bound& bound);
  static bool KeepsMemory(const Output& output);
  absl::Status InferOutputs(Bound& bound);
  absl::Status InferUpdate(Bound& bound, InferContext& context);
  static absl::Status CheckDTypes(const Bound& bound);
  static absl::Status KeepPersistables(const Bound& bound);
  absl::Status CheckInputs(const Bound& bound) const;
  std::string WhyEmpty(VarId id) const;
  static absl::Status NoteShape(Output& output);
  static absl::Status GiveMemory(Output& output);
  static absl::Status Own(Output& output);
  absl::Status AfterKernel(InstrId id, absl::Status status);
  absl::Status CheckFinite(InstrId id) const;

  const Plan& plan_;
  const Services services_;
  DeviceSet* const devices_;
  const RunnerOptions options_;
  std::vector<KernelContext::PlaceServices> places_;  // by index into Plan::streams
  std::vector<Output> outputs_;                       // of all instructions, in program order
  std::vector<Hot> hot_;                              // by InstrId
  std::atomic<bool> reshaped_{false};
  std::vector<Bound> bound_;  // by InstrId; does not move: contexts refer to it
};

}  // namespace interp
