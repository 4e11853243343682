// Frame: what the activations of one block need: variables, counters, kernel states, random state.
//
// A core has one frame for the main block, and within it one for each block that an op runs, made
// with the core and used for every activation. So a warm loop allocates nothing, looks no name up,
// and infers shapes only when what comes from outside the block has other shapes than before.
//
// A variable of the block lies in the frame. One that it captures is the variable of the enclosing
// frame, or of the root scope, under a pointer that is bound once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/block_runner.h"
#include "core/resource/random_stream.h"
#include "core/scope.h"
#include "core/status.h"
#include "core/variable.h"
#include "interpreter/compile/compiled_program.h"
#include "interpreter/run/buffer_collector.h"
#include "interpreter/run/device_set.h"
#include "interpreter/run/folded_constants.h"
#include "interpreter/run/garbage_collector.h"
#include "interpreter/run/graph_scheduler.h"
#include "interpreter/run/instruction_runner.h"
#include "interpreter/run/run_control.h"
#include "interpreter/run/scheduler.h"

namespace interp {

// What all frames of a core use; borrowed.
struct FrameServices {
  Allocator* pool = nullptr;
  DeviceSet* devices = nullptr;        // null for plans without
  BufferCollector* buffers = nullptr;  // null: memory is dropped at once
  SharedConstants* shared = nullptr;
  const OpRegistry* ops = nullptr;
  std::map<std::string, PlaceResources>* resources = nullptr;  // by place name
  SchedulerThreads* threads = nullptr;
  SchedulerOptions scheduler = {};
  RunnerOptions runner = {};
};

// Thread-safety: one activation at a time.
class Frame final : public BlockRunner {
 public:
  // The frame of the main block and, within it, of all blocks that run. Persistable variables are
  // those of `root`. All arguments are borrowed and must outlive the frame; `control` and `random`
  // are those of the run.
  static absl::StatusOr<std::unique_ptr<Frame>> Create(const CompiledProgram& compiled, Scope& root,
                                                       RunControl& control,
                                                       const RandomState& random,
                                                       const FrameServices& services);
  ~Frame() override;

  // One activation of the main block. The result is the control's. `same_feeds`: they have the
  // shapes, dtypes and LoD that they had in the activation before.
  void RunMain(bool same_feeds, RunObserver* observer);
  // After a run that failed, in this frame and those within it: drops what collection would have.
  void DropAll();
  // Makes the next activation infer all shapes, here and within.
  void ForgetShapes();

  // BlockRunner.
  absl::Status Run() override;
  bool saves() const override { return plan_.gradient_block >= 0; }
  absl::Status RunAndSave(StepRecord& record) override;
  absl::Status RunOn(StepRecord& record) override;

  // An instruction that runs this block is about to start, on `context.worker`, and has ended: all
  // work on devices is done then.
  void Enter(const RunContext& context);
  void Leave();

  const Plan& plan() const { return plan_; }
  // By VarId; null for @EMPTY@.
  absl::Span<Variable* const> variables() const { return variables_; }
  // Frames of the blocks that instructions run, in program order.
  absl::Span<const std::unique_ptr<Frame>> children() const { return children_; }

  // Of the main block, where it runs in graphs (SchedulerOptions::graphs).
  std::optional<GraphStats> graph_stats() const;

  // InstructionRunner::Algorithm of all instructions here and within, by their number.
  void CollectAlgorithms(std::vector<std::string>& algorithms) const;

  // Forgets what kernels keep between activations, here and within. REQUIRES: nothing in flight.
  void ResetKernelStates();
  // Gives PlanVar::copy_of variables their values, here and within. Folded variables and copies of
  // those are made anew before the next activation.
  absl::Status CopyConstants();
  // An error of work that an instruction gave a device, by its number in the program, with the
  // place of that instruction in front. Nothing when the number is of no frame within this one.
  std::optional<absl::Status> Explain(int32_t number, const absl::Status& status) const;

 private:
  // A tensor from outside the frame, and what it was when the last activation started.
  struct Watched {
    Tensor* tensor = nullptr;
    bool written = false;  // by the block
    Tensor at_start;       // metadata alone
    bool had_memory = false;
  };

  Frame(const CompiledProgram& compiled, int32_t block, Frame* outer, RunControl* control,
        const RandomState* random, const FrameServices& services);
  void BindMain(Scope& root);
  void BindWithin(InstrId id);
  void BindOwn();
  void FindMaybeWritten();
  void FindTyped();
  void Watch(VarId var, bool written);
  absl::Status MakeChildren();
  absl::Status MakeParts();
  absl::Status MakeOwnScheduler();
  absl::Status Activate(StepRecord* inherited);
  void Save(Variable& variable, Variable& value) const;
  void DropSaved();
  void Inherit(StepRecord& record);
  // The types of what entries of the gradient's block are gradients of, into values from `first`.
  void CopyTypes(StepRecord& record, size_t first) const;
  absl::Status Synchronize();
  absl::Status FinishActivation();
  bool NoteStart();
  void NoteEnd();
  void PrepareAll();
  void EmptyWhole();
  void EmptyMaybeWritten();

  const CompiledProgram& compiled_;
  const Plan& plan_;
  Frame* const outer_;  // null for the main block's
  const FrameServices services_;
  RunControl own_control_;  // of a nested block
  RunControl* const control_;
  const RandomState* const outer_random_;
  RandomState random_;  // of the activation

  std::vector<Variable> own_;
  std::vector<Variable*> variables_;  // by VarId
  std::vector<Variable*> whole_;  // of this frame and no tensors; emptied before each activation
  // Of this frame, written by blocks within and freed by nobody: emptied before each activation, as
  // those blocks may leave them alone.
  std::vector<Tensor*> maybe_written_;
  std::vector<Watched> watched_;
  // By entry of the gradient's block: what is captured and written here and has that gradient, else
  // null.
  std::vector<const Variable*> typed_;
  std::vector<Tensor> held_;  // with devices: values of the outer block that a step began with
  bool shapes_known_ =
      false;               // the last activation succeeded, so static shapes are in the variables
  bool prepared_ = false;  // of the main block: kernels were, see prepare_kernels.h
  bool with_devices_ = false;            // this block or one within has instructions on devices
  std::vector<int32_t> device_streams_;  // of them, by index into Plan::streams
  InstrId caller_id_ = -1;               // the instruction that runs the block
  RunContext caller_;
  uint64_t activation_ = 0;  // since Enter

  std::vector<std::unique_ptr<Frame>> children_;
  std::vector<std::unique_ptr<DeviceEvent>> events_;
  std::unique_ptr<InstructionRunner> runner_;
  std::optional<FoldedConstants> folded_;
  std::unique_ptr<GarbageCollector> collector_;
  std::unique_ptr<Scheduler> scheduler_;
  GraphScheduler* graphs_ = nullptr;  // the scheduler, where it is one
};

}  // namespace interp
