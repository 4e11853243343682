// A merge sort: blocks sort tiles in shared memory, then each launch merges neighbouring runs. Of a
// run that is longer than what is kept, only its start goes on.
#include <algorithm>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/sort.h"
#include "kernels/cuda/values.h"

namespace interp::cuda {
namespace {

constexpr int kTile = 1024;

struct Order {
  bool descending;

  template <typename T>
  __device__ bool operator()(T left, T right) const {
    const auto a = ToCompute(left);
    const auto b = ToCompute(right);
    const bool a_is_nan = a != a;
    const bool b_is_nan = b != b;
    if (a_is_nan != b_is_nan) return descending ? a_is_nan : b_is_nan;
    return descending ? a > b : a < b;
  }
};

// Lines of values and where those were in the lines of the input.
template <typename T>
struct Entries {
  T* values;
  int64_t* indices;
  LineShape lines;

  __device__ void Store(int64_t line, int64_t position, T value, int64_t index) const {
    const int64_t at = lines.Start(line) + position * lines.inner;
    values[at] = value;
    indices[at] = index;
  }
};

// Where element `i` of neighbouring runs of `width` goes when each two of them are merged.
template <typename T>
__device__ int64_t MergedPosition(const T* values, int64_t count, int64_t width, int64_t i,
                                  Order before) {
  const int64_t pair = i / (2 * width) * (2 * width);
  const bool is_left = i - pair < width;
  const int64_t other = std::min(is_left ? pair + width : pair, count);
  int64_t low = other;
  int64_t high = std::min(other + width, count);
  const T value = values[i];
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const bool comes_before =
        is_left ? before(values[middle], value) : !before(value, values[middle]);
    if (comes_before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return (is_left ? i : i - width) + (low - other);
}

// A tile of a line for each block; `out` gets the first `run` elements of each, one after the
// other.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    SortTiles(const T* x, LineShape lines, int64_t run, Order before, Entries<T> out) {
  INTERP_SHARED(T, values, [2][kTile]);
  INTERP_SHARED(int, indices, [2][kTile]);
  const int64_t tiles = (lines.length + kTile - 1) / kTile;
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t task = blockIdx.x; task < lines.count() * tiles; task += gridDim.x) {
    const int64_t line = task / tiles;
    const int64_t first = task % tiles * kTile;
    const int count = static_cast<int>(std::min<int64_t>(kTile, lines.length - first));
    for (int i = thread; i < count; i += kBlockThreads) {
      values[0][i] = x[lines.Start(line) + (first + i) * lines.inner];
      indices[0][i] = i;
    }
    int from = 0;
    __syncthreads();
    for (int width = 1; width < count; width *= 2) {
      for (int i = thread; i < count; i += kBlockThreads) {
        const int64_t to = MergedPosition(values[from], count, width, i, before);
        values[1 - from][to] = values[from][i];
        indices[1 - from][to] = indices[from][i];
      }
      from = 1 - from;
      __syncthreads();
    }
    for (int64_t i = thread; i < std::min<int64_t>(count, run); i += kBlockThreads) {
      out.Store(line, first / kTile * run + i, values[from][i], first + indices[from][i]);
    }
    __syncthreads();  // the next tile is loaded into the same memory
  }
}

// Merges each two runs of `width`, of which `out` gets the first `run` elements.
template <typename T>
__global__ void __launch_bounds__(kBlockThreads)
    MergeRuns(Entries<T> in, int64_t count, int64_t width, int64_t run, Order before,
              Entries<T> out) {
  for (int64_t task = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; task < in.lines.outer * count;
       task += int64_t{gridDim.x} * blockDim.x) {
    const int64_t line = task / count;
    const int64_t i = task % count;
    const int64_t start = in.lines.Start(line);
    const int64_t to = MergedPosition(in.values + start, count, width, i, before);
    const int64_t pair = i / (2 * width);
    const int64_t in_run = to - pair * 2 * width;
    if (in_run >= run) continue;
    out.Store(line, pair * run + in_run, in.values[start + i], in.indices[start + i]);
  }
}

// What stays of `count` elements in runs of `width` when each run keeps `keep` at most.
int64_t KeptOf(int64_t count, int64_t width, int64_t keep) {
  return count / width * std::min(width, keep) + std::min(count % width, keep);
}

template <typename T>
absl::Status MergeTiles(const SortArguments& args, TakeWorkspace take_workspace,
                        cudaStream_t stream) {
  const LineShape& lines = args.lines;
  const Order before{args.descending};
  int64_t run = std::min<int64_t>(kTile, args.keep);
  int64_t count = KeptOf(lines.length, kTile, args.keep);
  const LineShape buffer_lines = {lines.count(), count, 1};
  const auto size = static_cast<size_t>(buffer_lines.numel());
  INTERP_ASSIGN_OR_RETURN(const Workspace indices, take_workspace(2 * size * sizeof(int64_t)));
  INTERP_ASSIGN_OR_RETURN(const Workspace values, take_workspace(2 * size * sizeof(T)));
  Entries<T> in = {values.template data<T>(), indices.template data<int64_t>(), buffer_lines};
  Entries<T> out = {in.values + size, in.indices + size, buffer_lines};
  const Entries<T> result = {
      static_cast<T*>(args.values), args.indices, {lines.outer, args.keep, lines.inner}};
  const int64_t tiles = (lines.length + kTile - 1) / kTile;
  INTERP_RETURN_IF_ERROR(Launch(SortTiles<T>, BlocksFor(lines.count() * tiles, 1), kBlockThreads,
                                /*shared_bytes=*/0, stream, static_cast<const T*>(args.x), lines,
                                run, before, in));
  for (bool is_last = false; !is_last;) {
    const int64_t merged = std::min(2 * run, args.keep);
    is_last = count <= 2 * run;
    INTERP_RETURN_IF_ERROR(LaunchElements(MergeRuns<T>, lines.count() * count, stream, in, count,
                                          run, merged, before, is_last ? result : out));
    count = KeptOf(count, 2 * run, args.keep);
    run = merged;
    std::swap(in, out);
  }
  return absl::OkStatus();
}

template <typename T, typename Index>
__global__ void __launch_bounds__(kBlockThreads)
    ScatterElements(const T* updates, const Index* indices, LineShape kept, int64_t length,
                    T* out) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < kept.numel();
       i += int64_t{gridDim.x} * blockDim.x) {
    const int64_t index = indices[i];
    if (index < 0 || index >= length) continue;
    const int64_t outer = i / (kept.length * kept.inner);
    out[(outer * length + index) * kept.inner + i % kept.inner] = updates[i];
  }
}

template <typename T>
absl::Status Scatter(const ScatterToLinesArguments& args, cudaStream_t stream) {
  const unsigned blocks = BlocksFor(args.kept.numel(), kBlockThreads);
  const T* const updates = static_cast<const T*>(args.updates);
  T* const out = static_cast<T*>(args.out);
  if (args.index_dtype == DType::kInt32) {
    return Launch(ScatterElements<T, int32_t>, blocks, kBlockThreads, /*shared_bytes=*/0, stream,
                  updates, static_cast<const int32_t*>(args.indices), args.kept, args.length, out);
  }
  return Launch(ScatterElements<T, int64_t>, blocks, kBlockThreads, /*shared_bytes=*/0, stream,
                updates, static_cast<const int64_t*>(args.indices), args.kept, args.length, out);
}

}  // namespace

absl::Status Sort(DType dtype, const SortArguments& arguments, TakeWorkspace take_workspace,
                  cudaStream_t stream) {
  const LineShape& lines = arguments.lines;
  if (lines.numel() == 0 || arguments.keep == 0) return absl::OkStatus();
  return WithNumbers("sorting", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if (lines.length > kTile) return MergeTiles<T>(arguments, take_workspace, stream);
    const Entries<T> result = {static_cast<T*>(arguments.values),
                               arguments.indices,
                               {lines.outer, arguments.keep, lines.inner}};
    return Launch(SortTiles<T>, BlocksFor(lines.count(), 1), kBlockThreads, /*shared_bytes=*/0,
                  stream, static_cast<const T*>(arguments.x), lines, arguments.keep,
                  Order{arguments.descending}, result);
  });
}

absl::Status ScatterToLines(const ScatterToLinesArguments& arguments, cudaStream_t stream) {
  if (arguments.index_dtype != DType::kInt32 && arguments.index_dtype != DType::kInt64) {
    return Unimplemented("indices of ", Name(arguments.index_dtype), " on a GPU");
  }
  const int64_t size = arguments.kept.count() * arguments.length;
  if (size == 0) return absl::OkStatus();
  const auto bytes = static_cast<size_t>(size * arguments.element_bytes);
  INTERP_RETURN_IF_ERROR(
      ToStatus(cudaMemsetAsync(arguments.out, 0, bytes, stream), "cannot fill memory"));
  if (arguments.kept.numel() == 0) return absl::OkStatus();
  return arguments.element_bytes == 8 ? Scatter<uint64_t>(arguments, stream)
                                      : Scatter<uint32_t>(arguments, stream);
}

}  // namespace interp::cuda
