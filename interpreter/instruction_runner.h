// InstructionRunner: the instructions of a plan bound to one core's variables, runnable one by one.
#pragma once

#include <memory>
#include <vector>

#include "core/host_pool.h"
#include "core/op_def.h"
#include "core/status.h"
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
  // `variables` by VarId, null for @EMPTY@; all arguments are borrowed and must outlive the runner.
  // `devices` is null for a plan without devices.
  InstructionRunner(const Plan& plan, const std::vector<Variable*>& variables, HostPool& pool,
                    DeviceSet* devices, SharedConstants& shared, const RunnerOptions& options);
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

  void Bind(InstrId id, const std::vector<Variable*>& variables, HostPool& pool,
            SharedConstants& shared);
  void BindOutputs(Bound& bound, const std::vector<Variable*>& variables, HostPool& pool);
  static void BindLaunch(Bound& bound);
  Allocator& AllocatorOf(const Instruction& instruction, const PlanVar& var, HostPool& pool);
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
  DeviceSet* const devices_;
  const RunnerOptions options_;
  std::vector<Output> outputs_;  // of all instructions, in program order
  std::vector<Hot> hot_;         // by InstrId
  std::vector<Bound> bound_;     // by InstrId; does not move: contexts refer to it
};

}  // namespace interp
