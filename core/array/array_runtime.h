// ArrayRuntime: what arrays need: an engine, memory of each of its places, ops, random numbers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/array/array.h"
#include "core/device/stream_pool.h"
#include "core/engine/engine.h"
#include "core/op_def.h"
#include "core/resource/place_resources.h"
#include "core/storage/pool.h"

namespace interp {

class OpCache;

struct ArrayOptions {
  engine::EngineOptions engine = {};
  // Where Invoke looks ops up; must outlive the runtime. Null: OpRegistry::Global().
  const OpRegistry* ops = nullptr;
  int num_threads = 1;  // inside an op
  uint64_t random_seed = 0;
};

// Thread-safety: all methods. Destruction waits for everything; all arrays are gone by then.
class ArrayRuntime {
 public:
  // Errors: those of Engine::Create.
  static absl::StatusOr<std::unique_ptr<ArrayRuntime>> Create(const ArrayOptions& options = {});
  ~ArrayRuntime();
  ArrayRuntime(const ArrayRuntime&) = delete;
  ArrayRuntime& operator=(const ArrayRuntime&) = delete;

  // An array without values yet. InvalidArgument for a shape with unknown dims or too large for
  // memory, and for a place that is no device of the engine.
  absl::StatusOr<Array> New(const Shape& shape, DType dtype, Place place = {});
  // One for rows: `shape` is that of all rows together, [height, ...]. On the host.
  absl::StatusOr<Array> NewRows(const Shape& shape, DType dtype);
  // An array with a copy of the values of a host tensor, made before this returns; a copy to a
  // device goes on afterwards.
  absl::StatusOr<Array> FromTensor(const Tensor& tensor, Place place = {});
  absl::StatusOr<Array> FromRows(const Tensor& values, const RowIndex& index);
  // The same with the tensor's memory itself, which nobody writes to any more. On the host.
  absl::StatusOr<Array> Adopt(const Tensor& tensor);

  engine::Engine& engine() { return *engine_; }
  const OpRegistry& ops() const { return *ops_; }
  // Waits until nothing is in flight. All errors that nobody has read, as one.
  absl::Status WaitForAll() { return engine_->WaitForAll(); }

  // Internal to core/array.
  Allocator& AllocatorOf(const engine::RunContext& context);
  Allocator& host_pool() { return *host_pool_; }
  // Work on the context's stream uses the buffer; the host's are left alone.
  void RecordUse(const BufferRef& buffer, const engine::RunContext& context);
  PlaceResources& resources(Place place);
  OpCache& op_cache() { return *op_cache_; }
  int num_threads() const { return num_threads_; }
  // Where the next random op draws from: the calls are counted.
  RandomState NextRandomState();
  // A handle of another view of `array`'s chunk.
  Array ViewOf(const Array& array, const Shape& shape, size_t offset_bytes);

 private:
  struct OnPlace {
    Place place;
    std::shared_ptr<StreamPool> pool;  // null on the host
    PlaceResources resources;
  };
  explicit ArrayRuntime(const ArrayOptions& options);
  OnPlace* Find(Place place);
  absl::StatusOr<Array> Make(const Shape& shape, DType dtype, Place place, bool rows);

  // Streams go last, after the memory whose order they keep.
  std::unique_ptr<engine::Engine> engine_;
  std::shared_ptr<Pool> host_pool_;
  std::vector<std::unique_ptr<OnPlace>> places_;
  std::unique_ptr<OpCache> op_cache_;
  const OpRegistry* ops_ = nullptr;
  int num_threads_ = 1;
  const uint64_t random_seed_;
  std::atomic<uint64_t> random_calls_{0};
  std::atomic<uint64_t> last_id_{0};
};

}  // namespace interp
