#include "interpreter/train/merge_values.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

namespace interp {
namespace {

// Elements that are summed at a time: their sums stay in the first cache.
constexpr int64_t kChunk = 1024;

// 16-bit floats are summed in float.
template <typename T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
void SumScaled(const std::vector<Tensor>& parts, const std::vector<double>& weights, int64_t begin,
               int64_t end, T* out) {
  SumOf<T> sums[kChunk];
  for (int64_t at = begin; at < end; at += kChunk) {
    const int64_t size = std::min(kChunk, end - at);
    for (size_t p = 0; p < parts.size(); ++p) {
      const T* const from = parts[p].data<T>() + at;
      const auto weight = static_cast<SumOf<T>>(weights[p]);
      for (int64_t i = 0; i < size; ++i) {
        const SumOf<T> scaled = weight * static_cast<SumOf<T>>(from[i]);
        sums[i] = p == 0 ? scaled : sums[i] + scaled;
      }
    }
    for (int64_t i = 0; i < size; ++i) out[at + i] = static_cast<T>(sums[i]);
  }
}

template <typename T>
void Scale(const Tensor& from, double factor, T* out) {
  const auto weight = static_cast<SumOf<T>>(factor);
  const T* const in = from.data<T>();
  for (int64_t i = 0; i < from.numel(); ++i) {
    out[i] = static_cast<T>(weight * static_cast<SumOf<T>>(in[i]));
  }
}

// Calls visit(T()). REQUIRES: a dtype of floats.
template <typename Visit>
void WithFloat(DType dtype, const Visit& visit) {
  if (dtype == DType::kFloat32) return visit(float());
  if (dtype == DType::kFloat64) return visit(double());
  if (dtype == DType::kFloat16) return visit(float16());
  return visit(bfloat16());
}

bool SameBytes(const Tensor& a, const Tensor& b) {
  return a.size_bytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.size_bytes()) == 0;
}

}  // namespace

absl::Status MergedValue::Begin(std::vector<Tensor> parts, Merge merge,
                                const std::vector<double>& weights) {
  parts_ = std::move(parts);
  merge_ = merge;
  weights_ = weights;
  done_ = false;
  for (size_t p = 0; p < parts_.size(); ++p) {
    if (parts_[p].numel() > 0 && !parts_[p].has_memory()) {
      return InvalidArgument("has no value in share ", p);
    }
    if (parts_[p].dtype != parts_[0].dtype || parts_[p].shape.rank() != parts_[0].shape.rank()) {
      return InvalidArgument("is ", DescribeType(parts_[0]), " in share 0 and ",
                             DescribeType(parts_[p]), " in share ", p);
    }
  }
  const bool rows = merge != Merge::kMean && parts_[0].shape.rank() > 0;
  return rows ? BeginRows() : BeginMean();
}

absl::Status MergedValue::BeginMean() {
  merge_ = Merge::kMean;
  const bool floats = IsFloating(parts_[0].dtype);
  for (size_t p = 1; p < parts_.size(); ++p) {
    if (parts_[p].shape != parts_[0].shape) {
      return InvalidArgument("is ", DescribeType(parts_[0]), " in share 0 and ",
                             DescribeType(parts_[p]), " in share ", p,
                             ": expected one shape, of which the mean is taken, or -1 as the first "
                             "declared dim, for rows");
    }
    if (!floats && !SameBytes(parts_[0], parts_[p])) {
      return InvalidArgument("is ", DescribeType(parts_[0]),
                             " and differs between shares: expected floats, of which the mean is "
                             "taken");
    }
  }
  const BufferRef& first = parts_[0].buffer();
  const bool ours = first && first.unique() && first->writable;
  done_ = !floats || parts_.size() == 1;
  if (done_ || ours) {
    result_ = parts_[0];
    return absl::OkStatus();
  }
  result_.shape = parts_[0].shape;
  result_.dtype = parts_[0].dtype;
  result_.lod.clear();
  return result_.Allocate(SystemAllocator());
}

absl::Status MergedValue::BeginRows() {
  int64_t rows = 0;
  for (size_t p = 0; p < parts_.size(); ++p) {
    Shape same = parts_[p].shape;
    same[0] = parts_[0].shape[0];
    if (same != parts_[0].shape) {
      return InvalidArgument("is ", DescribeType(parts_[0]), " in share 0 and ",
                             DescribeType(parts_[p]), " in share ", p,
                             ": expected rows of one shape");
    }
    rows += parts_[p].shape[0];
  }
  result_.shape = parts_[0].shape;
  result_.shape[0] = rows;
  result_.dtype = parts_[0].dtype;
  result_.lod.clear();
  return result_.Allocate(SystemAllocator());
}

void MergedValue::MergeSlice(int slice, int count) {
  if (done_) return;
  if (merge_ == Merge::kMean) {
    const int64_t size = result_.numel();
    const int64_t begin = size * slice / count;
    const int64_t end = size * (slice + 1) / count;
    WithFloat(result_.dtype, [&](auto t) {
      SumScaled(parts_, weights_, begin, end, result_.mutable_data<decltype(t)>());
    });
    return;
  }
  char* out = static_cast<char*>(result_.mutable_raw_data());
  for (size_t p = 0; p < parts_.size(); ++p) {
    const Tensor& part = parts_[p];
    if (static_cast<int>(p) % count == slice && part.size_bytes() > 0) {
      if (merge_ == Merge::kScaledRows && IsFloating(part.dtype)) {
        WithFloat(part.dtype,
                  [&](auto t) { Scale(part, weights_[p], reinterpret_cast<decltype(t)*>(out)); });
      } else {
        std::memcpy(out, part.raw_data(), part.size_bytes());
      }
    }
    out += part.size_bytes();
  }
}

}  // namespace interp
