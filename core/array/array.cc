#include "core/array/array.h"

#include <cstring>
#include <utility>

#include "core/array/array_runtime.h"
#include "core/array/tape.h"

namespace interp {

Chunk::~Chunk() {
  // Operations hold their chunks, so nothing names the variable any more.
  if (runtime != nullptr) (void)runtime->engine().DeleteVariable(variable);
}

std::string DescribeArray(const Array& array) {
  return absl::StrCat(Name(array.dtype()), ToString(array.shape()), " on ", Name(array.place()));
}

absl::StatusOr<Tensor> ArrayAccess::Readable(const Array& array) {
  const Tensor& memory = array.chunk_->value.tensor;
  if (!memory.has_memory()) {
    return NotFound("an array ", DescribeArray(array), " has no values: nothing has written them");
  }
  Tensor tensor;
  tensor.shape = array.shape_;
  tensor.dtype = array.dtype_;
  tensor.SetMemory(memory.buffer(),
                   static_cast<char*>(const_cast<void*>(memory.raw_data())) + array.offset_bytes_);
  return tensor;
}

absl::StatusOr<Tensor> ArrayAccess::Writable(const Array& array, bool overwrites,
                                             const engine::RunContext& context) {
  Chunk& chunk = *array.chunk_;
  Tensor& memory = chunk.value.tensor;
  Allocator& allocator =
      chunk.place.on_host() ? chunk.runtime->host_pool() : chunk.runtime->AllocatorOf(context);
  // Memory of a device is shared by nobody. That of the host may be: with copies, and with readers.
  const bool own = memory.has_memory() && (!chunk.place.on_host() ||
                                           (memory.buffer().unique() && memory.buffer()->writable));
  if (!own) {
    Tensor fresh;
    INTERP_RETURN_IF_ERROR(fresh.AllocateBytes(allocator, chunk.size_bytes));
    if (!overwrites || !IsWhole(array)) {
      if (memory.has_memory()) {
        std::memcpy(fresh.mutable_raw_data(), memory.raw_data(), chunk.size_bytes);
      } else if (context.stream == nullptr) {
        std::memset(fresh.mutable_raw_data(), 0, chunk.size_bytes);
      } else {
        INTERP_RETURN_IF_ERROR(context.stream->Fill(fresh.mutable_raw_data(), 0, chunk.size_bytes));
      }
    }
    memory.ShareMemory(fresh);
  }
  return Readable(array);
}

absl::StatusOr<Array> Array::Slice(int64_t begin, int64_t end) const {
  if (rows_ || shape_.rank() == 0 || begin < 0 || begin > end || end > shape_[0]) {
    return InvalidArgument("rows ", begin, " to ", end, " of an array ", DescribeArray(*this),
                           rows_ ? ", which holds rows with numbers" : "");
  }
  Shape shape = shape_;
  shape[0] = end - begin;
  const size_t row_bytes = static_cast<size_t>(shape_.numel(1, shape_.rank())) * SizeOf(dtype_);
  const Array view =
      chunk_->runtime->ViewOf(*this, shape, offset_bytes_ + static_cast<size_t>(begin) * row_bytes);
  INTERP_RETURN_IF_ERROR(Tape::NoteSlice(*this, view, begin, end));
  return view;
}

absl::StatusOr<Array> Array::At(int64_t i) const {
  if (shape_.rank() == 0 || i < 0 || i >= shape_[0]) {
    return InvalidArgument("row ", i, " of an array ", DescribeArray(*this));
  }
  INTERP_ASSIGN_OR_RETURN(const Array row, Slice(i, i + 1));
  return row.Reshape(Shape(shape_.dims().subspan(1)));
}

absl::StatusOr<Array> Array::Reshape(const Shape& shape) const {
  Shape full = shape;
  int unknown = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1 && unknown < 0) {
      unknown = i;
      full[i] = 1;
    }
  }
  const std::optional<int64_t> others = full.CheckedNumel();
  if (unknown >= 0 && others.value_or(0) > 0) full[unknown] = numel() / *others;
  if (rows_ || !others.has_value() || full.CheckedNumel() != numel()) {
    return InvalidArgument("an array ", DescribeArray(*this), " cannot have the shape ",
                           ToString(shape));
  }
  const Array view = chunk_->runtime->ViewOf(*this, full, offset_bytes_);
  INTERP_RETURN_IF_ERROR(Tape::NoteReshape(*this, view));
  return view;
}

absl::Status Array::WaitToRead() const { return runtime().engine().WaitForVar(variable()); }
absl::Status Array::WaitToWrite() const { return runtime().engine().WaitForWrite(variable()); }

namespace {

// Runs `read` as an operation that reads the array, on this thread where nothing is in its way, and
// waits for it. `Result` outlives this call where the wait is given up.
template <typename Result, typename Function>
absl::StatusOr<Result> ReadBy(const Array& array, const Function& read) {
  engine::Engine& engine = array.runtime().engine();
  auto result = std::make_shared<Result>();
  const engine::Variable done = engine.NewVariable();
  const engine::Variable variable = array.variable();
  absl::Status status = engine.Push(
      [array, result, read]() -> absl::Status {
        INTERP_ASSIGN_OR_RETURN(*result, read(array));
        return absl::OkStatus();
      },
      {.reads = {&variable, 1}, .writes = {&done, 1}},
      {.name = "read", .property = engine::Property::kAsync});
  if (status.ok()) status = engine.WaitForVar(done);
  (void)engine.DeleteVariable(done);
  if (!status.ok()) return status;
  return std::move(*result);
}

}  // namespace

absl::StatusOr<Tensor> Array::Read() const {
  if (rows_) return InvalidArgument("an array ", DescribeArray(*this), " of rows is read as one");
  if (!place().on_host()) {
    INTERP_ASSIGN_OR_RETURN(const Array copy, runtime().New(shape_, dtype_));
    INTERP_RETURN_IF_ERROR(copy.TakeValues(*this, /*priority=*/0));
    return copy.Read();
  }
  return ReadBy<Tensor>(*this, [](const Array& array) { return ArrayAccess::Readable(array); });
}

absl::StatusOr<Array::Rows> Array::ReadRows() const {
  if (!rows_) return InvalidArgument("an array ", DescribeArray(*this), " holds no rows");
  return ReadBy<Rows>(*this, [](const Array& array) -> absl::StatusOr<Rows> {
    const Variable& value = ArrayAccess::chunk(array)->value;
    Rows rows{.values = value.tensor, .index = *value.selected_rows};
    if (!rows.values.has_memory() && !rows.index.rows.empty()) {
      return NotFound("an array ", DescribeArray(array), " has no values");
    }
    return rows;
  });
}

}  // namespace interp
