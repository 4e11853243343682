#include "core/tensor.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_join.h"

namespace interp {
namespace {

// Copies `src`, which lies channels-last, into the plain order of `shape` at `dst`.
void CopyToPlain(const char* src, char* dst, const Shape& shape, size_t element_bytes) {
  const int64_t batch = shape[0];
  const int64_t channels = shape[1];
  const int64_t spatial = shape.numel(2, shape.rank());
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t s = 0; s < spatial; ++s) {
        std::memcpy(dst + ((n * channels + c) * spatial + s) * element_bytes,
                    src + ((n * spatial + s) * channels + c) * element_bytes, element_bytes);
      }
    }
  }
}

}  // namespace

absl::string_view Name(Layout layout) {
  return layout == Layout::kPlain ? "plain" : "channels_last";
}

absl::Status CheckLod(const Lod& lod, const Shape& shape) {
  if (!lod.empty() && shape.rank() == 0) return InvalidArgument("a LoD on a tensor without dims");
  for (size_t level = 0; level < lod.size(); ++level) {
    const std::vector<int64_t>& offsets = lod[level];
    if (offsets.size() < 2 || offsets.front() != 0 ||
        !std::is_sorted(offsets.begin(), offsets.end())) {
      return InvalidArgument("LoD level ", level, " is [", absl::StrJoin(offsets, ","),
                             "], expected offsets that start with 0 and do not descend");
    }
    const bool lowest = level + 1 == lod.size();
    const int64_t parts = lowest ? shape[0] : static_cast<int64_t>(lod[level + 1].size()) - 1;
    if (offsets.back() != parts) {
      return InvalidArgument("LoD level ", level, " ends with ", offsets.back(), ", expected ",
                             parts, lowest ? ", the first dim" : ", the parts of the level below");
    }
  }
  return absl::OkStatus();
}

absl::Status Tensor::Allocate(Allocator& allocator) {
  const std::optional<int64_t> count = shape.CheckedNumel();
  if (!count.has_value()) {
    return InvalidArgument("shape ", ToString(shape), " is negative or too large for memory");
  }
  return AllocateBytes(allocator, static_cast<size_t>(*count) * SizeOf(dtype));
}

absl::Status Tensor::AllocateBytes(Allocator& allocator, size_t size_bytes) {
  if (buffer_.unique() && buffer_->writable && data_ == buffer_->data &&
      buffer_->size_bytes >= size_bytes) {
    return absl::OkStatus();
  }
  DropMemory();  // first, so that the allocator may hand the same block out again
  INTERP_ASSIGN_OR_RETURN(buffer_, allocator.Allocate(size_bytes));
  data_ = buffer_->data;
  return absl::OkStatus();
}

Tensor Tensor::Borrow(DType dtype, const Shape& shape, const void* data) {
  Tensor t;
  t.dtype = dtype;
  t.shape = shape;
  if (data == nullptr) return t;
  void* bytes = const_cast<void*>(data);  // guarded by writable = false
  t.SetMemory(BorrowBuffer(bytes, t.size_bytes(), /*writable=*/false), bytes);
  return t;
}

absl::StatusOr<Tensor> Tensor::Clone(Allocator& allocator) const {
  if (!has_memory() && numel() > 0) {
    return InvalidArgument("a tensor of ", DescribeType(*this), " has no memory to copy");
  }
  Tensor copy;
  copy.shape = shape;
  copy.dtype = dtype;
  copy.lod = lod;
  INTERP_RETURN_IF_ERROR(copy.Allocate(allocator));
  if (layout == Layout::kChannelsLast) {
    CopyToPlain(static_cast<const char*>(data_), static_cast<char*>(copy.data_), shape,
                SizeOf(dtype));
  } else if (size_bytes() > 0) {
    std::memcpy(copy.data_, data_, size_bytes());
  }
  return copy;
}

std::string DescribeType(const Tensor& tensor) {
  return absl::StrCat(Name(tensor.dtype), ToString(tensor.shape));
}

}  // namespace interp
