#include "interpreter/train/micro_batches.h"

#include <algorithm>
#include <utility>

#include "interpreter/compile/random_ops.h"
#include "interpreter/train/merge_values.h"
#include "interpreter/train/split_batch.h"
#include "passes/verify.h"

namespace interp {

absl::StatusOr<std::unique_ptr<MicroBatches>> MicroBatches::Create(
    Program& main, const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
    const MicroBatchOptions& options, const OpRegistry& ops) {
  INTERP_RETURN_IF_ERROR(VerifyProgram(main, ops));
  NumberRandomOps(main, ops);
  INTERP_ASSIGN_OR_RETURN(MicroBatchProgram rewritten, MakeMicroBatches(main, feeds, options, ops));
  std::unique_ptr<MicroBatches> made(new MicroBatches());
  made->schedule_ = rewritten.schedule;
  made->jobs_ = std::move(rewritten.jobs);
  made->states_ = rewritten.states;
  for (const std::string& fetch : fetches) {
    if (MergeOf(main, fetch) != Merge::kRows) continue;
    if (std::find(made->states_.begin(), made->states_.end(), fetch) == made->states_.end())
      continue;
    return Unimplemented("fetch '", fetch,
                         "' is persistable and has rows of samples: it keeps those of the last "
                         "micro-batch, not the batch's; fetch what it is made of");
  }
  const auto add = [&](const std::string& name, std::vector<std::string>& names) {
    Column column{.first = names.size(),
                  .many = !rewritten.fetched_once.contains(name),
                  .merge = MergeOf(main, name),
                  .name = name};
    const int32_t count = column.many ? made->schedule_.micro_batches : 1;
    for (int32_t m = 0; m < count; ++m) names.push_back(NameInMicroBatch(name, m));
    return column;
  };
  for (const std::string& feed : feeds) made->batch_feeds_.push_back(add(feed, made->feeds_));
  for (const std::string& name : rewritten.weights) made->feeds_.push_back(name);
  for (const std::string& fetch : fetches) {
    made->batch_fetches_.push_back(add(fetch, made->fetches_));
  }
  const VarId weight = rewritten.program.Find(rewritten.weights[0]);
  for (const Var& var : rewritten.program.blocks[0].vars) {
    if (var.id == weight) made->weight_dtype_ = var.dtype;
  }
  main = std::move(rewritten.program);
  return made;
}

std::vector<FeedSpec> MicroBatches::FeedsOfBatch(const std::vector<FeedSpec>& specs) const {
  std::vector<FeedSpec> of_batch;
  for (const Column& column : batch_feeds_) of_batch.push_back(specs[column.first]);
  return of_batch;
}

absl::Status MicroBatches::CheckSamples(int64_t samples, int ranks) const {
  const int32_t count = schedule_.micro_batches;
  // A rank without samples computes one of another rank's.
  if (states_.empty() || std::max<int64_t>(samples / ranks, 1) >= count) return absl::OkStatus();
  return InvalidArgument("a batch has ", samples, " samples for ", count, " micro-batches",
                         ranks > 1 ? absl::StrCat(" on each of ", ranks, " ranks") : "",
                         ": those without samples would change '", states_[0],
                         "', which goes from one to the next, once more; leave out a last batch "
                         "that is not full (--drop-last) or take fewer micro-batches");
}

absl::StatusOr<std::vector<Tensor>> MicroBatches::Split(absl::Span<const Tensor> batch,
                                                        absl::Span<const FeedSpec> feeds) {
  const int32_t count = schedule_.micro_batches;
  INTERP_ASSIGN_OR_RETURN(std::vector<BatchShare> shares, SplitBatch(batch, feeds, count));
  int64_t samples = 0;
  for (const BatchShare& share : shares) samples += share.num_samples;
  INTERP_RETURN_IF_ERROR(CheckSamples(samples, /*ranks=*/1));
  weights_.clear();
  for (const BatchShare& share : shares) {
    weights_.push_back(static_cast<double>(share.num_samples) / static_cast<double>(samples));
  }
  std::vector<Tensor> values;
  values.reserve(feeds_.size());
  for (size_t i = 0; i < batch_feeds_.size(); ++i) {
    const int32_t columns = batch_feeds_[i].many ? count : 1;
    for (int32_t m = 0; m < columns; ++m) {
      values.push_back(shares[m < std::ssize(shares) ? m : 0].feeds[i]);
    }
  }
  for (int32_t m = 0; m < count; ++m) {
    const double weight = m < std::ssize(weights_) ? weights_[m] : 0;
    values.push_back(weight_dtype_ == DType::kFloat64
                         ? Tensor::Of<double>({1}, {weight})
                         : Tensor::Of<float>({1}, {static_cast<float>(weight)}));
  }
  return values;
}

absl::StatusOr<std::vector<Tensor>> MicroBatches::Join(std::vector<Tensor> fetched) const {
  std::vector<Tensor> joined;
  for (const Column& column : batch_fetches_) {
    if (!column.many) {
      joined.push_back(std::move(fetched[column.first]));
      continue;
    }
    const auto first = fetched.begin() + static_cast<int64_t>(column.first);
    std::vector<Tensor> parts(std::make_move_iterator(first),
                              std::make_move_iterator(first + std::ssize(weights_)));
    MergedValue merged;
    const absl::Status begun = merged.Begin(std::move(parts), column.merge, weights_);
    if (!begun.ok()) return Annotate(begun, absl::StrCat("'", column.name, "'"));
    merged.MergeSlice(0, 1);
    merged.Finish();
    joined.push_back(merged.result());
  }
  return joined;
}

}  // namespace interp
