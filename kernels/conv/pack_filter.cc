#include "kernels/conv/pack_filter.h"

#include <algorithm>
#include <array>

#include "kernels/util/parallel_for.h"
#include "kernels/util/transpose_plane.h"

namespace interp::nn {
namespace {

constexpr int64_t kMostBlock = 64;
constexpr int64_t kTile = 64;  // columns at a time: both tiles stay in the first cache

// Where elements lie along one axis: in blocks that are `stride` apart, `inner` apart inside.
struct Axis {
  int64_t size = 1;
  int64_t stride = 0;
  int64_t block = 1;
  int64_t inner = 0;

  int64_t Offset(int64_t i) const { return i / block * stride + i % block * inner; }
};

// The offsets of all elements over these axes, the last one fastest.
std::vector<int64_t> OffsetsOver(absl::Span<const Axis> axes) {
  std::vector<int64_t> offsets = {0};
  for (const Axis& axis : axes) {
    std::vector<int64_t> next;
    next.reserve(offsets.size() * static_cast<size_t>(axis.size));
    for (const int64_t offset : offsets) {
      for (int64_t i = 0; i < axis.size; ++i) next.push_back(offset + axis.Offset(i));
    }
    offsets = std::move(next);
  }
  return offsets;
}

// The axis of the output channels that lie together: 0, or 1 inside groups. Groups of one channel
// may lie together themselves. -1 where the format has no such blocks.
int ChannelAxis(const dnnl_memory_desc_t& desc, bool grouped) {
  const dnnl_blocking_desc_t& blocking = desc.format_desc.blocking;
  const auto axis = static_cast<int>(blocking.inner_idxs[blocking.inner_nblks - 1]);
  if (axis == 0) return !grouped || desc.dims[1] == 1 ? 0 : -1;
  return axis == 1 && grouped ? 1 : -1;
}

bool HasChannelBlocks(const dnnl_memory_desc_t& desc, bool grouped) {
  if (desc.format_kind != dnnl_blocked || desc.data_type != dnnl_f32) return false;
  const dnnl_blocking_desc_t& blocking = desc.format_desc.blocking;
  const int count = blocking.inner_nblks;
  if (desc.extra.flags != 0 || desc.offset0 != 0 || count < 1 || count > 2) return false;
  const int channel_axis = ChannelAxis(desc, grouped);
  if (channel_axis < 0 || blocking.inner_blks[count - 1] > kMostBlock) return false;
  if (count == 2 && blocking.inner_idxs[0] != channel_axis + 1) return false;
  for (int i = 0; i < desc.ndims; ++i) {
    if (i != channel_axis && desc.padded_dims[i] != desc.dims[i]) return false;
  }
  return true;
}

}  // namespace

std::optional<FilterFormat> FilterFormat::Of(const MemDesc& memory, bool grouped) {
  const dnnl_memory_desc_t& desc = memory.data;
  if (!HasChannelBlocks(desc, grouped)) return std::nullopt;
  const dnnl_blocking_desc_t& blocking = desc.format_desc.blocking;
  const int count = blocking.inner_nblks;
  const int channel_axis = ChannelAxis(desc, grouped);
  FilterFormat format;
  if (channel_axis == 1) {
    format.outer_ = desc.dims[0];
    format.outer_stride_ = blocking.strides[0];
  }
  format.channels_ = desc.dims[channel_axis];
  format.block_ = blocking.inner_blks[count - 1];
  format.blocks_ = desc.padded_dims[channel_axis] / format.block_;
  format.block_stride_ = blocking.strides[channel_axis];
  std::vector<Axis> axes;
  for (int i = channel_axis + 1; i < desc.ndims; ++i) {
    axes.push_back({.size = desc.dims[i], .stride = blocking.strides[i]});
  }
  if (count == 2) {
    axes[0].block = blocking.inner_blks[0];
    axes[0].inner = format.block_;
  }
  format.columns_ = OffsetsOver(axes);
  for (size_t i = 0; i < format.columns_.size(); ++i) {
    if (format.columns_[i] != static_cast<int64_t>(i) * format.block_) format.in_order_ = false;
  }
  return format;
}

void FilterFormat::Pack(const float* filter, absl::Span<const double> factors, int num_threads,
                        float* packed) const {
  const auto columns = static_cast<int64_t>(columns_.size());
  const int64_t grain = GrainFor(block_ * columns);
  ParallelFor(num_threads, outer_ * blocks_, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) PackBlock(i, filter, factors, packed);
  });
}

void FilterFormat::PackBlock(int64_t index, const float* filter, absl::Span<const double> factors,
                             float* packed) const {
  const int64_t outer = index / blocks_;
  const int64_t block = index % blocks_;
  const auto columns = static_cast<int64_t>(columns_.size());
  const int64_t first = outer * channels_ + block * block_;
  const int64_t rows = std::min(block_, channels_ - block * block_);
  float* const out = packed + outer * outer_stride_ + block * block_stride_;
  std::array<float, kMostBlock * kTile> scaled;
  std::array<float, kMostBlock * kTile> turned;
  if (rows < block_) scaled.fill(0);
  for (int64_t begin = 0; begin < columns; begin += kTile) {
    const int64_t size = std::min(kTile, columns - begin);
    for (int64_t row = 0; row < rows; ++row) {
      const float* const in = filter + (first + row) * columns + begin;
      float* const to = scaled.data() + row * kTile;
      const double factor = factors.empty() ? 1.0 : factors[first + row];
      for (int64_t i = 0; i < size; ++i) to[i] = static_cast<float>(in[i] * factor);
    }
    float* const target = in_order_ ? out + columns_[begin] : turned.data();
    TransposeMatrix(scaled.data(), kTile, target, block_, block_, size);
    if (in_order_) continue;
    for (int64_t i = 0; i < size; ++i) {
      std::copy_n(turned.data() + i * block_, block_, out + columns_[begin + i]);
    }
  }
}

}  // namespace interp::nn
