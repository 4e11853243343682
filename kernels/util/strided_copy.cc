#include "kernels/util/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/util/parallel_for.h"
#include "kernels/util/transpose_plane.h"

namespace interp {
namespace {

// Bytes one task moves: below it, starting a thread costs more than it gives.
constexpr int64_t kTaskBytes = 128 * 1024;

// A simplified job: outermost destination dimension first, strides in bytes.
struct Box {
  int rank = 0;
  int64_t element_bytes = 0;
  int64_t total_bytes = 0;
  std::array<CopyDim, kMaxCopyRank> dims;
};

bool Contiguous(const CopyDim& d, int64_t element_bytes) {
  return d.src_stride == element_bytes && d.dst_stride == element_bytes;
}

// Sorts by destination stride, largest first. Insertion sort: ranks are tiny and mostly sorted.
void AddSorted(Box& box, const CopyDim& dim) {
  int i = box.rank++;
  for (; i > 0 && box.dims[i - 1].dst_stride < dim.dst_stride; --i) box.dims[i] = box.dims[i - 1];
  box.dims[i] = dim;
}

// Joins dimensions that advance alike on both sides, and whole small rows into wider elements.
void Merge(Box& box) {
  int last = 0;
  for (int i = 1; i < box.rank; ++i) {
    CopyDim& outer = box.dims[last];
    const CopyDim& inner = box.dims[i];
    if (outer.dst_stride == inner.dst_stride * inner.size &&
        outer.src_stride == inner.src_stride * inner.size) {
      outer = {outer.size * inner.size, inner.src_stride, inner.dst_stride};
    } else {
      box.dims[++last] = inner;
    }
  }
  box.rank = std::min(box.rank, last + 1);
  if (box.rank == 0 || !Contiguous(box.dims[box.rank - 1], box.element_bytes)) return;
  const int64_t row_bytes = box.dims[box.rank - 1].size * box.element_bytes;
  if (row_bytes == 2 || row_bytes == 4 || row_bytes == 8 || row_bytes == 16) {
    box.element_bytes = row_bytes;
    --box.rank;
  }
}

// total_bytes is 0 when there is nothing to do.
Box Simplify(size_t element_bytes, absl::Span<const CopyDim> dims) {
  Box box;
  box.element_bytes = static_cast<int64_t>(element_bytes);
  box.total_bytes = box.element_bytes;
  for (const CopyDim& dim : dims) {
    box.total_bytes *= dim.size;
    if (dim.size == 1) continue;
    AddSorted(box,
              {dim.size, dim.src_stride * box.element_bytes, dim.dst_stride * box.element_bytes});
  }
  if (box.total_bytes != 0) Merge(box);
  return box;
}

// Calls body(src, dst) for each position of the `rank` dimensions at `dims`.
template <typename Body>
void Walk(const CopyDim* dims, int rank, const char* src, char* dst, const Body& body) {
  if (rank == 0) return body(src, dst);
  for (int64_t i = 0; i < dims->size; ++i) {
    Walk(dims + 1, rank - 1, src, dst, body);
    src += dims->src_stride;
    dst += dims->dst_stride;
  }
}

template <int kBytes>
void CopyRow(const char* src, char* dst, const CopyDim& row) {
  using T = typename UnalignedElement<kBytes>::Type;
  const T* in = reinterpret_cast<const T*>(src);
  T* out = reinterpret_cast<T*>(dst);
  const int64_t ss = row.src_stride / kBytes;
  const int64_t ds = row.dst_stride / kBytes;
  if (ds != 1) {
    for (int64_t i = 0; i < row.size; ++i) out[i * ds] = in[i * ss];
  } else if (ss == 0) {
    const T value = *in;
    for (int64_t i = 0; i < row.size; ++i) out[i] = value;
  } else if (ss == -1) {
    for (int64_t i = 0; i < row.size; ++i) out[i] = in[-i];
  } else {
    for (int64_t i = 0; i < row.size; ++i) out[i] = in[i * ss];
  }
}

// Strides need not be multiples of a widened element, so this one steps in bytes.
template <int kBytes>
void CopyWideRow(const char* src, char* dst, const CopyDim& row) {
  for (int64_t i = 0; i < row.size; ++i) {
    std::memcpy(dst + i * row.dst_stride, src + i * row.src_stride, kBytes);
  }
}

// Rows in one piece, `rows` of them. Short ones by instructions in place: a call for each takes as
// long as it copies.
void CopyPieces(const char* src, char* dst, const CopyDim& rows, int64_t row_bytes) {
  constexpr int64_t kStep = 64;
  constexpr int64_t kShort = 16 * kStep;
  const bool in_place = row_bytes % kStep == 0 && row_bytes <= kShort;
  for (int64_t i = 0; i < rows.size; ++i, src += rows.src_stride, dst += rows.dst_stride) {
    if (!in_place) {
      std::memcpy(dst, src, static_cast<size_t>(row_bytes));
      continue;
    }
    for (int64_t at = 0; at < row_bytes; at += kStep) std::memcpy(dst + at, src + at, kStep);
  }
}

template <int kBytes>
void CopySerial(Box& box, const char* src, char* dst) {
  if (box.rank == 0) {
    std::memcpy(dst, src, kBytes);
    return;
  }
  CopyDim* const dims = box.dims.data();
  CopyDim& row = dims[box.rank - 1];
  if (Contiguous(row, kBytes)) {
    const CopyDim one = {1, 0, 0};
    const CopyDim& rows = box.rank > 1 ? dims[box.rank - 2] : one;
    return Walk(dims, std::max(box.rank - 2, 0), src, dst,
                [&rows, row_bytes = row.size * kBytes](const char* s, char* d) {
                  CopyPieces(s, d, rows, row_bytes);
                });
  }
  CopyDim* const across =
      std::find_if(dims, &row, [](const CopyDim& dim) { return dim.src_stride == kBytes; });
  if (row.dst_stride == kBytes && across != &row) {
    std::rotate(across, across + 1, &row);
    const CopyDim column = dims[box.rank - 2];
    return Walk(dims, box.rank - 2, src, dst, [&row, &column](const char* s, char* d) {
      TransposePlane<kBytes>(s, row.src_stride, d, column.dst_stride, column.size, row.size);
    });
  }
  const bool whole = row.src_stride % kBytes == 0 && row.dst_stride % kBytes == 0;
  Walk(dims, box.rank - 1, src, dst, [&row, whole](const char* s, char* d) {
    whole ? CopyRow<kBytes>(s, d, row) : CopyWideRow<kBytes>(s, d, row);
  });
}

void CopyBox(Box box, const char* src, char* dst) {
  switch (box.element_bytes) {
    case 1:
      return CopySerial<1>(box, src, dst);
    case 2:
      return CopySerial<2>(box, src, dst);
    case 4:
      return CopySerial<4>(box, src, dst);
    case 8:
      return CopySerial<8>(box, src, dst);
    default:
      return CopySerial<16>(box, src, dst);
  }
}

// The dimension to cut for threads: the outermost that is long enough, so that each thread writes
// one region; else the longest.
int SplitDim(const Box& box, int num_threads) {
  int best = 0;
  for (int i = 0; i < box.rank; ++i) {
    if (box.dims[i].size >= 4 * num_threads) return i;
    if (box.dims[i].size > box.dims[best].size) best = i;
  }
  return best;
}

}  // namespace

void CopyStrided(int num_threads, size_t element_bytes, absl::Span<const CopyDim> dims,
                 const void* src, void* dst) {
  const Box box = Simplify(element_bytes, dims);
  if (box.total_bytes == 0) return;
  const char* const from = static_cast<const char*>(src);
  char* const to = static_cast<char*>(dst);
  if (num_threads == 1 || box.rank == 0 || box.total_bytes < 2 * kTaskBytes) {
    return CopyBox(box, from, to);
  }
  const int split = SplitDim(box, num_threads);
  const CopyDim whole = box.dims[split];
  const int64_t grain = std::max<int64_t>(1, whole.size / (box.total_bytes / kTaskBytes));
  ParallelFor(num_threads, whole.size, grain, [&](int64_t begin, int64_t end) {
    Box part = box;
    part.dims[split].size = end - begin;
    CopyBox(part, from + begin * whole.src_stride, to + begin * whole.dst_stride);
  });
}

void FillElements(int num_threads, size_t element_bytes, const void* value, void* dst,
                  int64_t count) {
  const CopyDim row = {count, 0, 1};
  CopyStrided(num_threads, element_bytes, absl::MakeConstSpan(&row, 1), value, dst);
}

void CopyTensor(int num_threads, const Tensor& in, Tensor& out) {
  const Strides from = StridesOf(in);
  const Strides to = StridesOf(out);
  CopyDims dims;
  for (int i = 0; i < in.shape.rank(); ++i) dims.push_back({in.shape[i], from[i], to[i]});
  CopyStrided(num_threads, SizeOf(in.dtype), dims, in.raw_data(), out.mutable_raw_data());
}

}  // namespace interp
