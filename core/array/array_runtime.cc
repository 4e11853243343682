#include "core/array/array_runtime.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/array/op_cache.h"

namespace interp {
namespace {

absl::Status CheckHostTensor(const Tensor& tensor) {
  if (!tensor.place().on_host() || (!tensor.has_memory() && tensor.numel() > 0)) {
    return InvalidArgument("a tensor of ", DescribeType(tensor), " has no memory of the host");
  }
  if (tensor.layout != Layout::kPlain || !tensor.lod.empty()) {
    return InvalidArgument("an array is to be made of ", DescribeType(tensor), " with ",
                           tensor.lod.empty() ? "another layout than plain" : "a LoD",
                           ", which arrays have not");
  }
  return absl::OkStatus();
}

}  // namespace

ArrayRuntime::ArrayRuntime(const ArrayOptions& options) : random_seed_(options.random_seed) {}

absl::StatusOr<std::unique_ptr<ArrayRuntime>> ArrayRuntime::Create(const ArrayOptions& options) {
  std::unique_ptr<ArrayRuntime> runtime(new ArrayRuntime(options));
  INTERP_ASSIGN_OR_RETURN(runtime->engine_, engine::Engine::Create(options.engine));
  runtime->host_pool_ = Pool::OnHost({.name = "arrays"});
  runtime->ops_ = options.ops != nullptr ? options.ops : &OpRegistry::Global();
  runtime->num_threads_ = std::max(1, options.num_threads);
  runtime->op_cache_ = std::make_unique<OpCache>();
  runtime->places_.push_back(std::make_unique<OnPlace>());
  for (const std::shared_ptr<Device>& device : options.engine.devices) {
    runtime->places_.push_back(std::make_unique<OnPlace>());
    runtime->places_.back()->place = device->place();
    runtime->places_.back()->pool = StreamPool::Create(*device);
  }
  return runtime;
}

ArrayRuntime::~ArrayRuntime() {
  if (engine_ == nullptr) return;
  engine_->Start();
  (void)engine_->WaitForAll();
}

ArrayRuntime::OnPlace* ArrayRuntime::Find(Place place) {
  for (const std::unique_ptr<OnPlace>& on : places_) {
    if (on->place == place) return on.get();
  }
  return nullptr;
}

absl::StatusOr<Array> ArrayRuntime::Make(const Shape& shape, DType dtype, Place place, bool rows) {
  if (!shape.CheckedNumel().has_value() || SizeOf(dtype) == 0) {
    return InvalidArgument("an array cannot be ", Name(dtype), ToString(shape));
  }
  if (Find(place) == nullptr) {
    return InvalidArgument("an array is to lie on ", Name(place),
                           ", which is not among the devices of its runtime");
  }
  Array array;
  array.chunk_ = std::make_shared<Chunk>();
  array.chunk_->runtime = this;
  array.chunk_->variable = engine_->NewVariable();
  array.chunk_->place = place;
  array.shape_ = shape;
  array.dtype_ = dtype;
  array.rows_ = rows;
  array.id_ = last_id_.fetch_add(1, std::memory_order_relaxed) + 1;
  array.chunk_->size_bytes = array.size_bytes();
  array.chunk_->value.tensor.dtype = dtype;
  return array;
}

absl::StatusOr<Array> ArrayRuntime::New(const Shape& shape, DType dtype, Place place) {
  return Make(shape, dtype, place, /*rows=*/false);
}

absl::StatusOr<Array> ArrayRuntime::NewRows(const Shape& shape, DType dtype) {
  if (shape.rank() == 0) return InvalidArgument("an array of rows has no axis of rows");
  INTERP_ASSIGN_OR_RETURN(Array array, Make(shape, dtype, Place{}, /*rows=*/true));
  array.chunk_->value.selected_rows.emplace();
  array.chunk_->value.selected_rows->height = shape[0];
  return array;
}

absl::StatusOr<Array> ArrayRuntime::FromTensor(const Tensor& tensor, Place place) {
  INTERP_RETURN_IF_ERROR(CheckHostTensor(tensor));
  INTERP_ASSIGN_OR_RETURN(Tensor copy, tensor.Clone(*host_pool_));
  INTERP_ASSIGN_OR_RETURN(const Array array, Adopt(copy));
  if (place.on_host()) return array;
  INTERP_ASSIGN_OR_RETURN(Array there, New(tensor.shape, tensor.dtype, place));
  INTERP_RETURN_IF_ERROR(there.TakeValues(array, /*priority=*/0));
  return there;
}

absl::StatusOr<Array> ArrayRuntime::Adopt(const Tensor& tensor) {
  INTERP_RETURN_IF_ERROR(CheckHostTensor(tensor));
  INTERP_ASSIGN_OR_RETURN(Array array, Make(tensor.shape, tensor.dtype, Place{}, /*rows=*/false));
  // Nobody else knows the array: no operation is needed.
  if (tensor.has_memory()) {
    array.chunk_->value.tensor.ShareMemory(tensor);
  } else {
    INTERP_RETURN_IF_ERROR(array.chunk_->value.tensor.AllocateBytes(*host_pool_, 0));
  }
  return array;
}

absl::StatusOr<Array> ArrayRuntime::FromRows(const Tensor& values, const RowIndex& index) {
  INTERP_RETURN_IF_ERROR(CheckHostTensor(values));
  if (values.shape.rank() == 0 || values.shape[0] != std::ssize(index.rows)) {
    return InvalidArgument("rows of ", DescribeType(values), " have ", index.rows.size(),
                           " numbers");
  }
  for (const int64_t row : index.rows) {
    if (row < 0 || row >= index.height) {
      return InvalidArgument("row ", row, " is not among the ", index.height, " of the array");
    }
  }
  Shape shape = values.shape;
  shape[0] = index.height;
  INTERP_ASSIGN_OR_RETURN(Array array, NewRows(shape, values.dtype));
  Variable& value = array.chunk_->value;
  INTERP_ASSIGN_OR_RETURN(value.tensor, values.Clone(*host_pool_));
  value.selected_rows = index;
  return array;
}

Allocator& ArrayRuntime::AllocatorOf(const engine::RunContext& context) {
  if (context.stream == nullptr) return *host_pool_;
  return Find(context.place)->pool->ForStream(*context.stream);
}

void ArrayRuntime::RecordUse(const BufferRef& buffer, const engine::RunContext& context) {
  if (context.stream == nullptr || !buffer || buffer->place.on_host()) return;
  Find(buffer->place)->pool->RecordUse(*buffer.get(), *context.stream);
}

PlaceResources& ArrayRuntime::resources(Place place) { return Find(place)->resources; }

RandomState ArrayRuntime::NextRandomState() {
  return {.seed = random_seed_, .step = random_calls_.fetch_add(1, std::memory_order_relaxed)};
}

Array ArrayRuntime::ViewOf(const Array& array, const Shape& shape, size_t offset_bytes) {
  Array view = array;
  view.shape_ = shape;
  view.offset_bytes_ = offset_bytes;
  view.id_ = last_id_.fetch_add(1, std::memory_order_relaxed) + 1;
  return view;
}

}  // namespace interp
