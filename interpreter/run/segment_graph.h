// SegmentGraph: the instructions of a GraphSegment as one graph of their device.
//
// A graph knows addresses, so what it touches has to stay where it is:
//   inputs       that come from outside of graphs are copied, before the graph, to memory it keeps
//   parameters   are where they were; a graph whose parameters have moved does not fit any more
//   what it gives lies in memory that it keeps until somebody else holds it, too
//   all else     is memory of graphs alone (DeviceSet::BeginGraph), free between their runs
// A Replay must come after all work that reads the memory it keeps: see GraphScheduler.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "core/variable.h"
#include "interpreter/plan/plan.h"
#include "interpreter/run/device_set.h"
#include "interpreter/run/run_one.h"

namespace interp {

// Thread-safety: none; the thread that enqueues all work of the plan.
class SegmentGraph {
 public:
  // What segments of a plan work with; borrowed.
  struct Parts {
    const Plan* plan = nullptr;
    absl::Span<Variable* const> variables;  // by VarId
    RunParts run;
    DeviceSet* devices = nullptr;
  };
  // Memory that graphs keep for what they give: inputs that lie there stay where they are.
  using KeptBuffers = absl::flat_hash_set<const Buffer*>;

  // Nothing is captured yet. `instructions`, in their order, are all of `stream`.
  SegmentGraph(const Parts& parts, absl::Span<const InstrId> instructions, int32_t stream);

  // The instructions that write parameters which somebody else holds, so that they would not be
  // written where they lie.
  std::vector<InstrId> WritersOfHeld() const;
  // Captures the instructions and collects what they use last. Nothing has been computed then:
  // Enqueue does it. REQUIRES: there are no WritersOfHeld, and shapes are those of the run before.
  //
  // After an error the instructions are to be run: the variables they read have their values, and
  // what they write has no memory. DropCollected comes after that.
  struct Capture {
    absl::Status status;
    size_t collected = 0;               // the first so many instructions
    std::optional<size_t> broken = {};  // the instruction that had the error, where it is known
  };
  Capture Make(const RunContext& context, KeptBuffers& kept);
  // Collects what a capture that failed had collected and what has been computed since.
  void DropCollected();
  // Enqueues the graph that has just been made. Errors: those of the device, explained.
  absl::Status Enqueue(const RunContext& context);

  // Drops what the run before has left of the results, so that nobody but the graph holds it.
  void DropResults();
  // Whether Replay does what the instructions would do. REQUIRES: Make has made it, and all graphs
  // of the plan have dropped their results in this run.
  bool Fits() const;
  // Copies the inputs to where the graph has them, enqueues it and gives its results to their
  // variables. REQUIRES: Fits. Errors as those of Enqueue.
  absl::Status Replay(const RunContext& context);

 private:
  struct Input {
    VarId var;
    Tensor kept = {};               // what the graph reads, unless the variable stays
    bool stays = false;             // it lies in memory that graphs keep, or has none
    const void* address = nullptr;  // where, then
    const Buffer* buffer = nullptr;
  };
  struct Freed {
    VarId var;
    int32_t after;  // the number of an instruction
  };
  class FreeRecorder;
  struct Parameter {
    VarId var;
    bool written = false;
    const void* address = nullptr;
    Shape shape = {};
  };
  struct Result {
    VarId var;
    Tensor value;
    VarId view_of = -1;  // the variable that stays whose memory it is; -1: the graph's
    int32_t holds = 0;   // references to its buffer from here
  };
  struct Owner {
    VarId var = -1;
    const void* address = nullptr;
  };
  using Owners = absl::flat_hash_map<const Buffer*, Owner>;

  Tensor& TensorOf(VarId var) const { return parts_.variables[var]->tensor; }
  Stream& stream() const { return parts_.devices->stream(stream_); }
  void NoteInput(VarId var);
  void NoteOutput(VarId var);
  Parameter& ParameterOf(VarId var);
  std::vector<BufferRef> HoldCollectable() const;
  absl::Status StageInputs();
  absl::Status KeepInputs(const KeptBuffers& kept);
  absl::Status StageInput(const Input& input);
  absl::Status CaptureWork(const RunContext& context, Capture& capture);
  void UndoCapture(const std::vector<Tensor>& values);
  bool IsHeld(VarId parameter) const;
  absl::Status KeepResults(KeptBuffers& kept);
  Owners StayingOwners() const;
  absl::Status NoteEnqueued(const RunContext& context, int64_t start_ns);

  const Parts parts_;
  const std::vector<InstrId> instructions_;
  const int32_t stream_;
  std::vector<Input> inputs_;          // from outside, but for parameters
  std::vector<Parameter> parameters_;  // and constants
  std::vector<VarId> written_;         // but for parameters
  absl::flat_hash_set<VarId> is_input_;
  absl::flat_hash_set<VarId> is_written_;
  absl::flat_hash_map<VarId, size_t> parameter_at_;
  std::vector<Result> results_;
  std::vector<Freed> freed_;  // by the capture; until observers know, or what failed is done again
  std::unique_ptr<WorkGraph> graph_;
};

}  // namespace interp
