#include "core/kvstore/across_ranks.h"

#include <utility>

namespace interp {
namespace {

// What a call reads and writes.
struct CallMemory {
  Tensor in;
  Tensor out;
};

// Starts a call; the operation is done when it is.
void StartCall(Communicator& ring, const CommCall& call, engine::Completion done,
               CallMemory memory) {
  const absl::StatusOr<std::shared_ptr<CommRequest>> request = ring.Start(call);
  if (!request.ok()) {
    static_cast<void>(done.Done(request.status()));
    return;
  }
  const auto token = std::make_shared<engine::Completion>(std::move(done));
  (*request)->Then([token, memory = std::move(memory)](const absl::Status& status) {
    static_cast<void>(token->Done(status));
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<AcrossRanks>> AcrossRanks::Make(ArrayRuntime& runtime,
                                                               std::shared_ptr<Rings> rings) {
  INTERP_ASSIGN_OR_RETURN(Communicator* const ring, rings->Find(0));
  return std::unique_ptr<AcrossRanks>(new AcrossRanks(runtime, std::move(rings), ring));
}

AcrossRanks::~AcrossRanks() {
  // The thread that communicates ends with the rings, and cannot do so from an operation's end.
  runtime_.engine().WaitForVar(order_).IgnoreError();
  runtime_.engine().DeleteVariable(order_).IgnoreError();
}

// Runs where what it reads is spoilt, too: then this rank's part does not come, which the others
// have to be told.
absl::StatusOr<Array> AcrossRanks::Push(CommKind kind, const Array& array, std::string name,
                                        int32_t priority) const {
  INTERP_ASSIGN_OR_RETURN(const Array out, runtime_.New(array.shape(), array.dtype()));
  const auto start = [rings = rings_.get(), ring = ring_, order = order_, kind, array, out,
                      name = std::move(name)](engine::Completion done) {
    const auto find_memory = [&]() -> absl::StatusOr<CallMemory> {
      engine::Engine& engine = array.runtime().engine();
      for (const engine::Variable variable : {array.variable(), order}) {
        if (const engine::ErrorRef spoilt = engine.ErrorOf(variable)) {
          return Annotate(spoilt->status, absl::StrCat("operation '", spoilt->operation, "'"));
        }
      }
      INTERP_RETURN_IF_ERROR(done.Start());
      INTERP_ASSIGN_OR_RETURN(Tensor in, ArrayAccess::Readable(array));
      INTERP_ASSIGN_OR_RETURN(Tensor result,
                              ArrayAccess::Writable(out, /*overwrites=*/true, done.context()));
      return CallMemory{.in = std::move(in), .out = std::move(result)};
    };
    absl::StatusOr<CallMemory> memory = find_memory();
    if (!memory.ok()) {
      rings->Fail(memory.status());  // the others wait for this rank's part
      static_cast<void>(done.Done(memory.status()));
      return;
    }
    const CommCall call{.kind = kind,
                        .dtype = array.dtype(),
                        .count = array.numel(),
                        .in = memory->in.raw_data(),
                        .out = memory->out.mutable_raw_data(),
                        .name = name};
    StartCall(*ring, call, std::move(done), *std::move(memory));
  };
  const engine::Variable read = array.variable();
  const engine::Variable written = out.variable();
  INTERP_RETURN_IF_ERROR(runtime_.engine().Push(
      start, {.reads = {&read, 1}, .writes = {&written, 1}, .updates = {&order_, 1}},
      {.name = "across ranks", .property = engine::Property::kNoSkip, .priority = priority}));
  return out;
}

absl::StatusOr<Array> AcrossRanks::Sum(const Array& array, std::string name,
                                       int32_t priority) const {
  return Push(CommKind::kAllReduce, array, std::move(name), priority);
}

absl::StatusOr<Array> AcrossRanks::FromFirst(const Array& array, std::string name,
                                             int32_t priority) const {
  return Push(CommKind::kBroadcast, array, std::move(name), priority);
}

absl::Status AcrossRanks::Barrier() const {
  INTERP_RETURN_IF_ERROR(runtime_.engine().Push(
      [ring = ring_](engine::Completion done) {
        StartCall(*ring, {.kind = CommKind::kBarrier, .name = "barrier"}, std::move(done), {});
      },
      {.updates = {&order_, 1}}, {.name = "barrier of ranks"}));
  return runtime_.engine().WaitForVar(order_);
}

}  // namespace interp
