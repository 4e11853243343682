#include "core/kvstore/across_ranks.h"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "core/array/array_runtime.h"
#include "core/base/catching.h"

namespace interp {
namespace {

using Token = std::shared_ptr<engine::Completion>;

// What has spoilt one of them, as far as is known without waiting.
absl::Status Spoilt(engine::Engine& engine, std::initializer_list<engine::Variable> variables) {
  for (const engine::Variable variable : variables) {
    if (const engine::ErrorRef spoilt = engine.ErrorOf(variable)) {
      return Annotate(spoilt->status, absl::StrCat("operation '", spoilt->operation, "'"));
    }
  }
  return absl::OkStatus();
}

// Starts a call; the operation is done when it is.
absl::Status StartCall(Communicator& ring, const CommCall& call, engine::Completion& done,
                       std::vector<BufferRef> memory) {
  INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<CommRequest> request,
                          ring.Start(call, std::move(memory)));
  const auto token = std::make_shared<engine::Completion>(std::move(done));
  request->Then([token](const absl::Status& status) { static_cast<void>(token->Done(status)); });
  return absl::OkStatus();
}

absl::StatusOr<Tensor> NewInt64s(ArrayRuntime& runtime, int64_t count) {
  Tensor tensor;
  tensor.dtype = DType::kInt64;
  tensor.shape = Shape{count};
  INTERP_RETURN_IF_ERROR(tensor.Allocate(runtime.host_pool()));
  return tensor;
}

// The rows of all ranks: how many each has, then their numbers and values. What follows the first
// answer runs on the thread that communicates.
class RowsGathering : public std::enable_shared_from_this<RowsGathering> {
 public:
  RowsGathering(Rings& rings, Communicator& ring, Array rows, Array out, std::string name)
      : rings_(rings),
        ring_(ring),
        rows_(std::move(rows)),
        out_(std::move(out)),
        name_(std::move(name)) {}

  absl::Status Start(engine::Completion& done) {
    const std::vector<int64_t>& rows = Own().selected_rows->rows;
    INTERP_ASSIGN_OR_RETURN(own_rows_, NewInt64s(rows_.runtime(), std::ssize(rows)));
    std::copy(rows.begin(), rows.end(), own_rows_.mutable_data<int64_t>());
    INTERP_ASSIGN_OR_RETURN(Tensor own_count, NewInt64s(rows_.runtime(), 1));
    own_count.mutable_data<int64_t>()[0] = std::ssize(rows);
    INTERP_ASSIGN_OR_RETURN(counts_, NewInt64s(rows_.runtime(), ring_.size()));
    INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<CommRequest> request,
                            Gather({}, own_count, counts_));
    done_ = std::make_shared<engine::Completion>(std::move(done));
    request->Then([self = shared_from_this()](const absl::Status& status) {
      absl::Status next = status;
      if (next.ok()) next = Catching([&] { return self->GatherAll(); });
      if (!next.ok()) self->Finish(next);
    });
    return absl::OkStatus();
  }

 private:
  const Variable& Own() const { return ArrayAccess::chunk(rows_)->value; }

  // Of one element each where there are no counts.
  absl::StatusOr<std::shared_ptr<CommRequest>> Gather(std::vector<int64_t> counts, const Tensor& in,
                                                      Tensor& out) {
    return ring_.Start({.kind = CommKind::kAllGather,
                        .dtype = out.dtype,
                        .count = 1,
                        .counts = std::move(counts),
                        .in = in.has_memory() ? in.raw_data() : nullptr,
                        .out = out.mutable_raw_data(),
                        .name = name_},
                       {in.buffer(), out.buffer()});
  }

  absl::Status GatherAll() {
    std::vector<int64_t> counts(counts_.data<int64_t>(), counts_.data<int64_t>() + counts_.numel());
    int64_t total = 0;
    for (const int64_t count : counts) {
      if (count < 0 || count > kMostRows - total) {
        return InvalidArgument("key '", name_, "': a rank has ", count, " rows");
      }
      total += count;
    }
    INTERP_ASSIGN_OR_RETURN(all_rows_, NewInt64s(rows_.runtime(), total));
    values_.dtype = rows_.dtype();
    values_.shape = rows_.shape();
    values_.shape[0] = total;
    INTERP_RETURN_IF_ERROR(values_.Allocate(rows_.runtime().host_pool()));
    INTERP_RETURN_IF_ERROR(Gather(counts, own_rows_, all_rows_).status());
    const int64_t width = rows_.shape().numel(1, rows_.shape().rank());
    for (int64_t& count : counts) count *= width;
    // Done after the numbers: both are of one ring.
    INTERP_ASSIGN_OR_RETURN(const std::shared_ptr<CommRequest> request,
                            Gather(counts, Own().tensor, values_));
    request->Then([self = shared_from_this()](const absl::Status& status) {
      self->Finish(status.ok() ? self->Keep() : status);
    });
    return absl::OkStatus();
  }

  absl::Status Keep() {
    const int64_t height = rows_.shape()[0];
    const auto* const begin = all_rows_.data<int64_t>();
    std::vector<int64_t> rows(begin, begin + all_rows_.numel());
    for (const int64_t row : rows) {
      if (row >= 0 && row < height) continue;
      return InvalidArgument("key '", name_, "': a rank has row ", row, ", expected less than ",
                             height);
    }
    Variable& result = ArrayAccess::chunk(out_)->value;
    result.tensor = std::move(values_);
    result.selected_rows = RowIndex{.rows = std::move(rows), .height = height};
    return absl::OkStatus();
  }

  // Arrays end before the operation: their runtime may end after it.
  void Finish(const absl::Status& status) {
    if (!status.ok()) rings_.Fail(status);  // the others wait for this rank's part
    const Token done = done_;
    rows_ = {};
    out_ = {};
    static_cast<void>(done->Done(status));
  }

  static constexpr int64_t kMostRows = int64_t{1} << 40;

  Rings& rings_;
  Communicator& ring_;
  Array rows_;
  Array out_;
  const std::string name_;
  Token done_;
  Tensor own_rows_;
  Tensor counts_;    // by rank
  Tensor all_rows_;  // their numbers
  Tensor values_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AcrossRanks>> AcrossRanks::Make(ArrayRuntime& runtime,
                                                               std::shared_ptr<Rings> rings) {
  Communicator* const ring = &rings->Stores();
  engine::Engine& engine = runtime.engine();
  const auto order = std::static_pointer_cast<CallOrder>(
      rings->Share(&engine, [&] { return std::make_shared<CallOrder>(engine, "order of ranks"); }));
  return std::unique_ptr<AcrossRanks>(new AcrossRanks(runtime, std::move(rings), ring, order));
}

// The thread that communicates ends with the rings, and cannot do so from an operation's end.
AcrossRanks::~AcrossRanks() { order_->Finish(); }

// Runs where what it reads is spoilt, too: then this rank's part does not come, which the others
// have to be told.
absl::Status AcrossRanks::Push(const Array& array, const Array& out, StartFn start,
                               int32_t priority) const {
  const auto run = [rings = rings_.get(), ring = ring_, order = order_->variable(), array,
                    start = std::move(start)](engine::Completion done) {
    const auto begin = [&]() -> absl::Status {
      engine::Engine& engine = array.runtime().engine();
      INTERP_RETURN_IF_ERROR(Spoilt(engine, {array.variable(), order}));
      INTERP_RETURN_IF_ERROR(done.Start());
      // Whether a device has spoilt it is known only now that its work is over.
      INTERP_RETURN_IF_ERROR(Spoilt(engine, {array.variable(), order}));
      return start(*ring, done);
    };
    const absl::Status status = Catching(begin);
    if (status.ok()) return;
    rings->Fail(status);  // the others wait for this rank's part
    static_cast<void>(done.Done(status));
  };
  const engine::Variable read = array.variable();
  const engine::Variable written = out.variable();
  return order_->Push(
      run, {&read, 1}, {&written, 1},
      {.name = "across ranks", .property = engine::Property::kNoSkip, .priority = priority});
}

absl::StatusOr<Array> AcrossRanks::PushCall(const CommCall& call, const Array& array,
                                            const Shape& shape, int32_t priority) const {
  INTERP_ASSIGN_OR_RETURN(const Array out, runtime_.New(shape, array.dtype()));
  const auto start = [call, array, out](Communicator& ring,
                                        engine::Completion& done) -> absl::Status {
    INTERP_ASSIGN_OR_RETURN(const Tensor in, ArrayAccess::Readable(array));
    INTERP_ASSIGN_OR_RETURN(Tensor result,
                            ArrayAccess::Writable(out, /*overwrites=*/true, done.context()));
    CommCall ready = call;
    ready.dtype = array.dtype();
    ready.count = array.numel();
    ready.in = in.raw_data();
    ready.out = result.mutable_raw_data();
    return StartCall(ring, ready, done, {in.buffer(), result.buffer()});
  };
  INTERP_RETURN_IF_ERROR(Push(array, out, start, priority));
  return out;
}

absl::StatusOr<Array> AcrossRanks::Sum(const Array& array, std::string name,
                                       int32_t priority) const {
  return PushCall({.kind = CommKind::kAllReduce, .name = std::move(name)}, array, array.shape(),
                  priority);
}

absl::StatusOr<Array> AcrossRanks::FromFirst(const Array& array, std::string name,
                                             int32_t priority) const {
  return PushCall({.kind = CommKind::kBroadcast, .name = std::move(name)}, array, array.shape(),
                  priority);
}

absl::StatusOr<Array> AcrossRanks::Gather(const Array& array, std::string name,
                                          int32_t priority) const {
  std::vector<int64_t> dims = {size()};
  for (const int64_t dim : array.shape().dims()) dims.push_back(dim);
  return PushCall({.kind = CommKind::kAllGather, .name = std::move(name)}, array, Shape(dims),
                  priority);
}

absl::StatusOr<Array> AcrossRanks::GatherRows(const Array& rows, std::string name,
                                              int32_t priority) const {
  INTERP_ASSIGN_OR_RETURN(const Array out, runtime_.NewRows(rows.shape(), rows.dtype()));
  const auto start = [rings = rings_.get(), rows, out, name = std::move(name)](
                         Communicator& ring, engine::Completion& done) {
    return std::make_shared<RowsGathering>(*rings, ring, rows, out, name)->Start(done);
  };
  INTERP_RETURN_IF_ERROR(Push(rows, out, start, priority));
  return out;
}

absl::Status AcrossRanks::Barrier() const {
  INTERP_RETURN_IF_ERROR(order_->Push(
      [ring = ring_](engine::Completion done) {
        const absl::Status status =
            StartCall(*ring, {.kind = CommKind::kBarrier, .name = "barrier"}, done, {});
        if (!status.ok()) static_cast<void>(done.Done(status));
      },
      {}, {}, {.name = "barrier of ranks"}));
  return order_->Wait();
}

}  // namespace interp
