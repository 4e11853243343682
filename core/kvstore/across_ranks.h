// AcrossRanks: collectives of arrays, as operations of the engine.
//
// The ranks of a ring have to start its collectives in one order. So all of these operations update
// one variable, which all stores of a runtime over the same rings have in common: they start in the
// order in which they were pushed, whatever their priorities and whatever they wait for. Ranks that
// make the same calls in the same order agree.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/array/array.h"
#include "core/array/array_runtime.h"
#include "core/comm/rings.h"
#include "core/kvstore/call_order.h"

namespace interp {

// Thread-safety: all methods; calls whose order matters come from one thread. Errors of the ranks'
// communication arrive in the arrays, and in all that is called later. Destruction waits for what
// was pushed, as CallOrder::Finish does: not within an operation of the engine.
class AcrossRanks {
 public:
  // Over the stores' ring. The runtime is borrowed; stores of other runtimes over the same rings
  // would be in no order with these.
  static absl::StatusOr<std::unique_ptr<AcrossRanks>> Make(ArrayRuntime& runtime,
                                                           std::shared_ptr<Rings> rings);
  ~AcrossRanks();
  AcrossRanks(const AcrossRanks&) = delete;
  AcrossRanks& operator=(const AcrossRanks&) = delete;

  int rank() const { return ring_->rank(); }
  int size() const { return ring_->size(); }

  // The sum of all ranks' arrays, in the order of the ranks, and rank 0's. Arrays are dense, on the
  // host and alike; `name` is for messages.
  absl::StatusOr<Array> Sum(const Array& array, std::string name, int32_t priority) const;
  absl::StatusOr<Array> FromFirst(const Array& array, std::string name, int32_t priority) const;
  // All ranks' arrays in the order of the ranks: of the shape [size, ...].
  absl::StatusOr<Array> Gather(const Array& array, std::string name, int32_t priority) const;
  // All ranks' rows, those of rank 0 first; arrays of rows of one height, width and dtype.
  absl::StatusOr<Array> GatherRows(const Array& rows, std::string name, int32_t priority) const;
  // As Rings::Fail.
  void Fail(const absl::Status& error) const { rings_->Fail(error); }
  // Waits until all ranks have come here and what this one has pushed before is done.
  absl::Status Barrier() const;

 private:
  AcrossRanks(ArrayRuntime& runtime, std::shared_ptr<Rings> rings, Communicator* ring,
              std::shared_ptr<CallOrder> order)
      : runtime_(runtime), rings_(std::move(rings)), ring_(ring), order_(std::move(order)) {}
  // What starts a call of `array` to `out`; `done` has begun.
  using StartFn = std::function<absl::Status(Communicator&, engine::Completion& done)>;
  absl::Status Push(const Array& array, const Array& out, StartFn start, int32_t priority) const;
  absl::StatusOr<Array> PushCall(const CommCall& call, const Array& array, const Shape& shape,
                                 int32_t priority) const;

  ArrayRuntime& runtime_;
  const std::shared_ptr<Rings> rings_;
  Communicator* const ring_;
  const std::shared_ptr<CallOrder> order_;  // ends with its last user
};

}  // namespace interp
