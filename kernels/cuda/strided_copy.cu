#include <algorithm>

#include "kernels/cuda/divisor.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/strided_copy.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

constexpr int kMaxDims = 8;
constexpr int kTile = 32;
constexpr int kTileRows = 8;  // threads of a block in y
// What one launch copies. Under emulation tests of longer copies are to be small.
#ifdef INTERP_CUDA_EMULATION
constexpr int64_t kMostAtOnce = int64_t{1} << 18;
#else
constexpr int64_t kMostAtOnce = kMostElements;
#endif

struct Dim {
  int64_t length;
  int64_t from;
  int64_t to;
};

// Dimensions, last first, without those of length 1 and with those merged that both sides walk as
// one.
struct Walk {
  int count = 0;
  Dim dims[kMaxDims] = {};
  Divisor lengths[kMaxDims] = {};
  int64_t size = 1;

  // Adds where element `index` of these dimensions lies to both offsets.
  __device__ void Offset(int64_t index, int64_t& from, int64_t& to) const {
    auto left = static_cast<uint32_t>(index);
    for (int d = 0; d < count; ++d) {
      const uint32_t i = lengths[d].Split(left);
      from += i * dims[d].from;
      to += i * dims[d].to;
    }
  }
};

template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    CopyElements(const Walk walk, const T* in, T* out) {
  for (int64_t index = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; index < walk.size;
       index += int64_t{gridDim.x} * blockDim.x) {
    int64_t from = 0;
    int64_t to = 0;
    walk.Offset(index, from, to);
    out[to] = in[from];
  }
}

// Neighbours of the source lie along `rows`, those of the target along `columns`: tiles go through
// shared memory, so that both sides are accessed in whole lines. A column of padding keeps the
// threads of a warp in different banks.
template <typename T>
__global__ void __launch_bounds__(kTile* kTileRows)
    CopyTiles(const Walk batch, const Dim rows, const Dim columns, const T* in, T* out) {
  INTERP_SHARED(T, tile, [kTile][kTile + 1]);
  const int64_t row_tiles = (rows.length + kTile - 1) / kTile;
  const int64_t column_tiles = (columns.length + kTile - 1) / kTile;
  for (int64_t work = blockIdx.x; work < batch.size * row_tiles * column_tiles; work += gridDim.x) {
    const int64_t row = work % row_tiles * kTile;
    const int64_t column = work / row_tiles % column_tiles * kTile;
    int64_t from = 0;
    int64_t to = 0;
    batch.Offset(work / row_tiles / column_tiles, from, to);
    for (int i = threadIdx.y; i < kTile; i += kTileRows) {
      if (row + threadIdx.x < rows.length && column + i < columns.length) {
        tile[i][threadIdx.x] =
            in[from + (row + threadIdx.x) * rows.from + (column + i) * columns.from];
      }
    }
    __syncthreads();
    for (int i = threadIdx.y; i < kTile; i += kTileRows) {
      if (row + i < rows.length && column + threadIdx.x < columns.length) {
        out[to + (row + i) * rows.to + (column + threadIdx.x) * columns.to] = tile[threadIdx.x][i];
      }
    }
    __syncthreads();  // the next tile is written
  }
}

absl::StatusOr<Walk> MakeWalk(absl::Span<const int64_t> dims, absl::Span<const int64_t> from,
                              absl::Span<const int64_t> to) {
  Walk walk;
  for (auto d = static_cast<int>(dims.size()); d-- > 0;) {
    if (dims[d] == 1) continue;
    walk.size *= dims[d];
    Dim* const last = walk.count > 0 ? &walk.dims[walk.count - 1] : nullptr;
    if (last != nullptr && from[d] == last->from * last->length &&
        to[d] == last->to * last->length) {
      last->length *= dims[d];
      continue;
    }
    if (walk.count == kMaxDims) {
      return Unimplemented("a copy of a tensor with more than ", kMaxDims, " dimensions");
    }
    walk.dims[walk.count++] = {.length = dims[d], .from = from[d], .to = to[d]};
  }
  return walk;
}

// Elements that both sides have side by side become one, as long as all stays aligned.
int Widen(Walk& walk, int bytes, const void* in, const void* out) {
  if (walk.count == 0 || walk.dims[0].from != 1 || walk.dims[0].to != 1) return bytes;
  const auto even = [](int64_t number) { return number % 2 == 0; };
  while (bytes < 16 && even(walk.dims[0].length) && AlignedTo(in, 2 * bytes) &&
         AlignedTo(out, 2 * bytes) &&
         std::all_of(walk.dims + 1, walk.dims + walk.count,
                     [&even](const Dim& dim) { return even(dim.from) && even(dim.to); })) {
    bytes *= 2;
    walk.size /= 2;
    walk.dims[0].length /= 2;
    for (int d = 1; d < walk.count; ++d) {
      walk.dims[d].from /= 2;
      walk.dims[d].to /= 2;
    }
  }
  return bytes;
}

void SetLengths(Walk& walk) {
  for (int d = 0; d < walk.count; ++d) {
    walk.lengths[d] = Divisor(static_cast<uint32_t>(walk.dims[d].length));
  }
}

// The dimension along which the source has neighbours, where that is not the last one and tiles are
// worth it; else 0.
int RowsOfTiles(const Walk& walk) {
  if (walk.count < 2 || walk.dims[0].to != 1 || walk.dims[0].from == 1) return 0;
  for (int d = 1; d < walk.count; ++d) {
    if (walk.dims[d].from == 1 && walk.dims[d].length >= 4 && walk.dims[0].length >= 4) return d;
  }
  return 0;
}

template <typename T>
absl::Status CopyAs(Walk walk, const void* in, void* out, cudaStream_t stream) {
  const T* const from = static_cast<const T*>(in);
  T* const to = static_cast<T*>(out);
  const int rows = RowsOfTiles(walk);
  if (rows == 0) {
    SetLengths(walk);
    return LaunchElements(CopyElements<T>, walk.size, stream, walk, from, to);
  }
  Walk batch;
  for (int d = 1; d < walk.count; ++d) {
    if (d == rows) continue;
    batch.dims[batch.count++] = walk.dims[d];
    batch.size *= walk.dims[d].length;
  }
  SetLengths(batch);
  const auto tiles = [](const Dim& dim) { return (dim.length + kTile - 1) / kTile; };
  const int64_t work = batch.size * tiles(walk.dims[0]) * tiles(walk.dims[rows]);
  return Launch(CopyTiles<T>, BlocksFor(work, 1), dim3(kTile, kTileRows), /*shared_bytes=*/0,
                stream, batch, walk.dims[rows], walk.dims[0], from, to);
}

// Elements of `bytes` bytes.
absl::Status CopyAtOnce(const Walk& walk, int bytes, const void* from, void* to,
                        cudaStream_t stream) {
  switch (bytes) {
    case 1:
      return CopyAs<uint8_t>(walk, from, to, stream);
    case 2:
      return CopyAs<uint16_t>(walk, from, to, stream);
    case 4:
      return CopyAs<uint32_t>(walk, from, to, stream);
    case 8:
      return CopyAs<uint2>(walk, from, to, stream);
    case 16:
      return CopyAs<uint4>(walk, from, to, stream);
    default:
      return Unimplemented("a copy of elements of ", bytes, " bytes");
  }
}

// In halves of the longest dimension, as long as they are too many for one launch.
absl::Status CopyInHalves(const Walk& walk, int bytes, const void* from, void* to,
                          cudaStream_t stream) {
  if (walk.size <= kMostAtOnce) return CopyAtOnce(walk, bytes, from, to, stream);
  const auto longest =
      std::max_element(walk.dims, walk.dims + walk.count,
                       [](const Dim& a, const Dim& b) { return a.length < b.length; }) -
      walk.dims;
  const Dim& whole = walk.dims[longest];
  for (const int64_t begin : {int64_t{0}, whole.length / 2}) {
    Walk half = walk;
    half.dims[longest].length = begin == 0 ? whole.length / 2 : whole.length - begin;
    half.size = walk.size / whole.length * half.dims[longest].length;
    INTERP_RETURN_IF_ERROR(CopyInHalves(half, bytes,
                                        static_cast<const char*>(from) + begin * whole.from * bytes,
                                        static_cast<char*>(to) + begin * whole.to * bytes, stream));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status StridedCopy(int element_bytes, absl::Span<const int64_t> dims,
                         const StridedSource& from, const StridedTarget& to, cudaStream_t stream) {
  if (from.strides.size() != dims.size() || to.strides.size() != dims.size()) {
    return InvalidArgument("a copy of rank ", dims.size(), " has strides of ranks ",
                           from.strides.size(), " and ", to.strides.size());
  }
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(Walk walk, MakeWalk(dims, from.strides, to.strides));
  const int bytes = Widen(walk, element_bytes, from.data, to.data);
  return CopyInHalves(walk, bytes, from.data, to.data, stream);
}

}  // namespace interp::cuda
