// Samples of MultiSlot text as feeds.
#pragma once

#include <memory>
#include <vector>

#include "core/io/multi_slot.h"
#include "core/status.h"
#include "interpreter/plan/plan.h"
#include "interpreter/train/sample_source.h"

namespace interp {

// What a slot gives a feed: as many values as a sample of it has, or, where `sparse`, any number
// with a LoD. InvalidArgument for a feed that is neither float32 nor int64, and for one that is not
// sparse and does not declare its dims.
absl::StatusOr<DataSlot> SlotFor(const FeedSpec& feed, bool sparse);

// `columns[i]` of the table goes to feed i. Sparse feeds get the values of all samples one after
// another, with one level of LoD; the others [samples, dims].
std::shared_ptr<SampleSource> SourceOf(SlotTable table, std::vector<DataSlot> slots,
                                       std::vector<FeedSpec> feeds, std::vector<size_t> columns);

}  // namespace interp
