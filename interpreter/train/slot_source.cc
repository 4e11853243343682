#include "interpreter/train/slot_source.h"

#include <algorithm>
#include <utility>

namespace interp {
namespace {

class SlotSource : public SampleSource {
 public:
  SlotSource(SlotTable table, std::vector<DataSlot> slots, std::vector<FeedSpec> feeds,
             std::vector<size_t> columns)
      : table_(std::move(table)),
        slots_(std::move(slots)),
        feeds_(std::move(feeds)),
        columns_(std::move(columns)) {}

  int64_t num_samples() const override { return NumSamples(table_); }

  absl::StatusOr<Gathered> Gather(absl::Span<const int64_t> samples, int64_t /*epoch*/) override {
    Gathered batch;
    for (size_t i = 0; i < feeds_.size(); ++i) {
      const SlotColumn& column = table_[columns_[i]];
      const DataSlot& slot = slots_[columns_[i]];
      INTERP_ASSIGN_OR_RETURN(Tensor tensor, MakeFeed(feeds_[i], slot, column, samples));
      if (slot.is_float) {
        Copy(column.floats, column.begins, samples, tensor.mutable_data<float>());
      } else {
        Copy(column.ids, column.begins, samples, tensor.mutable_data<int64_t>());
      }
      batch.feeds.push_back(std::move(tensor));
    }
    return batch;
  }

 private:
  static absl::StatusOr<Tensor> MakeFeed(const FeedSpec& feed, const DataSlot& slot,
                                         const SlotColumn& column,
                                         absl::Span<const int64_t> samples) {
    Tensor tensor;
    tensor.dtype = feed.dtype;
    tensor.shape = feed.shape;
    if (slot.width > 0) {
      tensor.shape[0] = std::ssize(samples);
    } else {
      std::vector<int64_t> offsets = {0};
      for (const int64_t sample : samples) {
        offsets.push_back(offsets.back() + column.begins[sample + 1] - column.begins[sample]);
      }
      for (int d = 1; d < tensor.shape.rank(); ++d) tensor.shape[d] = 1;
      tensor.shape[0] = offsets.back();
      tensor.lod = {std::move(offsets)};
    }
    INTERP_RETURN_IF_ERROR(tensor.Allocate(SystemAllocator()));
    return tensor;
  }

  template <typename T>
  static void Copy(const std::vector<T>& values, const std::vector<int64_t>& begins,
                   absl::Span<const int64_t> samples, T* to) {
    for (const int64_t sample : samples) {
      to = std::copy(values.begin() + begins[sample], values.begin() + begins[sample + 1], to);
    }
  }

  const SlotTable table_;
  const std::vector<DataSlot> slots_;  // by column
  const std::vector<FeedSpec> feeds_;
  const std::vector<size_t> columns_;  // by feed
};

}  // namespace

absl::StatusOr<DataSlot> SlotFor(const FeedSpec& feed, bool sparse) {
  if (feed.dtype != DType::kFloat32 && feed.dtype != DType::kInt64) {
    return InvalidArgument("feed '", feed.name, "' is ", Name(feed.dtype),
                           ", a slot holds float32 or int64");
  }
  if (feed.shape.rank() == 0) {
    return InvalidArgument("feed '", feed.name, "' is declared without a shape");
  }
  DataSlot slot{.name = feed.name, .is_float = feed.dtype == DType::kFloat32};
  if (sparse) return slot;
  slot.width = 1;
  for (int d = 1; d < feed.shape.rank(); ++d) {
    if (feed.shape[d] <= 0) {
      return InvalidArgument("feed '", feed.name, "' ", ToString(feed.shape),
                             " does not say how many values a sample has");
    }
    slot.width *= feed.shape[d];
  }
  return slot;
}

std::shared_ptr<SampleSource> SourceOf(SlotTable table, std::vector<DataSlot> slots,
                                       std::vector<FeedSpec> feeds, std::vector<size_t> columns) {
  return std::make_shared<SlotSource>(std::move(table), std::move(slots), std::move(feeds),
                                      std::move(columns));
}

}  // namespace interp
