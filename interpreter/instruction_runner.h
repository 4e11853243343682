// InstructionRunner: the instructions of a plan bound to one core's variables, runnable one by one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/op_def.h"
#include "core/resource/place_resources.h"
#include "core/status.h"
#include "core/storage/pool.h"
#include "interpreter/device_set.h"
#include "interpreter/plan.h"

namespace interp {

struct RunnerOptions {
  int num_threads = 1;  // inside an op
  bool check_nan_inf =
      false;  // fail at the first op whose floating output has a NaN or an infinity
};

// For one instruction: infer shapes when they may have changed, give the outputs memory (that of an
// input where the plan pairs them and nobody else holds it), compute, check. On a device: let the
// stream wait for the events the plan names, launch instead of compute, record.
//
// Thread-safety: Run may be called concurrently for instructions the plan does not order.
// Cost: a warm Run looks nothing up and allocates from the pool alone.
class InstructionRunner {
 public:
  // What instructions run with, borrowed.
  struct Services {
    Allocator* pool = nullptr;
    DeviceSet* devices = nullptr;  // null for a plan without devices
    SharedConstants* shared = nullptr;
    const RandomState* random = nullptr;  // does not change during a run
  };
  // `variables` by VarId, null for @EMPTY@; `random_ops` are the plan's RandomOpIds, needed only
  // here. All other arguments are borrowed and must outlive the runner.
  InstructionRunner(const Plan& plan, const std::vector<uint64_t>& random_ops,
                    const std::vector<Variable*>& variables, const Services& services,
                    const RunnerOptions& options);
  ~InstructionRunner();

  // Runs one instruction. With `infer_all` shapes are inferred even where the plan calls them
  // static. Errors are prefixed with op, index and the inputs' names, dtypes and shapes.
  absl::Status Run(InstrId id, bool infer_all);

  // The events that the issuing thread must wait for before Run, as indices into Plan::events.
  absl::Span<const int32_t> HostWaits(InstrId id) const;
  void WaitFor(int32_t event) { devices_->event(event).Synchronize(); }

  // Prefixes an error of instruction `id` as Run does.
  absl::Status Explain(InstrId id, const absl::Status& status) const;

  // Forgets what kernels keep between runs. REQUIRES: no Run in progress, nothing in flight.
  void ResetKernelStates();

 private:
  struct Output;
  struct Hot;
  struct Bound;

  void BindPlaces();
  void Bind(InstrId id, const std::vector<Variable*>& variables);
  void BindOutputs(Bound& bound, const std::vector<Variable*>& variables);
  static void BindLaunch(Bound& bound);
  Allocator& AllocatorOf(const Instruction& instruction, const PlanVar& var);
  absl::Status Prepare(InstrId id, bool infer_all);
  absl::Status RunWithDevices(InstrId id, bool infer_all);
  absl::Status Launch(InstrId id);
  absl::Status Infer(Bound& bound);
  absl::Status CheckInputs(const Bound& bound) const;
  static absl::Status NoteShape(Output& output);
  static absl::Status GiveMemory(Output& output);
  static absl::Status Own(Output& output);
  absl::Status AfterKernel(const Bound& bound, absl::Status status);
  absl::Status CheckFinite(const Bound& bound) const;

  const Plan& plan_;
  const Services services_;
  DeviceSet* const devices_;
  const RunnerOptions options_;
  std::map<std::string, PlaceResources> resources_;   // by place name
  std::vector<KernelContext::PlaceServices> places_;  // by index into Plan::streams
  std::vector<Output> outputs_;                       // of all instructions, in program order
  std::vector<Hot> hot_;                              // by InstrId
  std::vector<Bound> bound_;  // by InstrId; does not move: contexts refer to it
};

}  // namespace interp
