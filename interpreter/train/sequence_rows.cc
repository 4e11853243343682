#include "interpreter/train/sequence_rows.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/strip.h"
#include "core/attr_reader.h"
#include "core/each_argument.h"
#include "core/gradient.h"
#include "core/op_role.h"
#include "core/sub_blocks.h"
#include "interpreter/train/split_batch.h"
#include "passes/feed_fetch.h"
#include "passes/train/split_update.h"

namespace interp {
namespace {

bool IsOfForwardPart(const Op& op) {
  return !IsFeed(op) && !IsFetch(op) && !IsBackward(op) && !IsUpdate(op);
}

// Whether the op's output has a row for each sequence of its inputs.
bool LeavesOneRow(const Op& op, const Slot& output) {
  static const auto* const kPools = new absl::flat_hash_set<absl::string_view>{
      "edit_distance",         "fused_embedding_seq_pool",  "fused_seqpool_cvm",
      "fusion_seqpool_concat", "fusion_seqpool_cvm_concat", "sequence_pool"};
  if (op.type == "linear_chain_crf") return output.name == "LogLikelihood";
  if (op.type == "warpctc") return output.name == "Loss";
  // Shares that are padded to the longest of their own would differ.
  if (op.type == "sequence_pad") {
    AttrReader attrs(op);
    const bool fixed = attrs.Int("padded_length", -1) > 0 && attrs.status().ok();
    // Lengths count words: masks and means made of them are over rows.
    return fixed && output.name == "Out";
  }
  return kPools->contains(op.type);
}

// The losses, or where no op is marked what may be one.
std::vector<VarId> LossesOf(const Program& main) {
  std::vector<VarId> marked;
  std::vector<VarId> all;
  for (const Op& op : main.blocks[0].ops) {
    const bool starts = RoleOf(op) == (kBackwardRole | kLossRole);
    if (!starts && !IsOfForwardPart(op)) continue;
    for (const VarId id : EachArgument(op.outputs)) {
      if (!starts) all.push_back(id);
      if (RoleOf(op) == (kForwardRole | kLossRole)) marked.push_back(id);
      const VarId loss = main.Find(absl::StripSuffix(main.NameOf(id), kGradientSuffix));
      if (starts && loss >= 0) marked.push_back(loss);
    }
  }
  return marked.empty() ? all : marked;
}

// The losses, and fetches that become the mean of the shares'.
std::vector<VarId> MeansOf(const Program& main, const std::vector<std::string>& fetches) {
  std::vector<VarId> means = LossesOf(main);
  std::vector<bool> persistable(main.names.size(), false);
  for (const Var& var : main.blocks[0].vars) persistable[var.id] = var.persistable;
  for (const std::string& fetch : fetches) {
    const VarId id = main.Find(fetch);
    if (id >= 0 && !persistable[id] && MergeOf(main, fetch) == Merge::kMean) means.push_back(id);
  }
  return means;
}

// By variable of the forward part, the fewest ops from `feed` that leave a row for each sequence;
// `unused` for one that is not made of the feed.
class Pools {
 public:
  Pools(const Program& main, VarId feed, int unused)
      : main_(main), unused_(unused), pools_(main.names.size(), unused) {
    if (feed < 0) return;
    pools_[feed] = 0;
    for (const Op& op : main.blocks[0].ops) {
      if (IsOfForwardPart(op)) Follow(op);
    }
  }
  int of(VarId id) const { return pools_[id]; }

 private:
  void Follow(const Op& op) {
    int least = unused_;
    for (const VarId id : EachArgument(op.inputs)) least = std::min(least, pools_[id]);
    // What its blocks use need not be listed.
    if (HasSubBlock(op)) {
      least = *std::ranges::min_element(pools_);
      for (size_t block = 1; block < main_.blocks.size(); ++block) {
        for (const Op& inner : main_.blocks[block].ops) Write(inner, least, /*may_pool=*/false);
      }
    }
    Write(op, least, !HasSubBlock(op));
  }

  void Write(const Op& op, int least, bool may_pool) {
    for (const Slot& slot : op.outputs) {
      const bool pools = may_pool && least != unused_ && LeavesOneRow(op, slot);
      // It gives rows back that sequence_pad has joined.
      const bool unpads = op.type == "sequence_unpad" && least != unused_ && least > 0;
      for (const VarId id : slot.args) {
        if (main_.NameOf(id) == kEmptyVarName) continue;
        pools_[id] = least + (pools ? 1 : 0) - (unpads ? 1 : 0);
      }
    }
  }

  const Program& main_;
  const int unused_;
  std::vector<int> pools_;
};

// Once `pools` ops have left a row for each sequence. REQUIRES: fewer than LoD levels.
int64_t RowsAfter(const Tensor& tensor, int pools) {
  if (pools == 0) return tensor.shape[0];
  return std::ssize(tensor.lod[tensor.lod.size() - static_cast<size_t>(pools)]) - 1;
}

}  // namespace

SequenceRows::SequenceRows(const Program& main, const std::vector<std::string>& feeds,
                           const std::vector<std::string>& fetches) {
  const std::vector<VarId> means = MeansOf(main, fetches);
  for (const std::string& feed : feeds) {
    const Pools pools(main, main.Find(feed), kUnused);
    Use& use = uses_.emplace_back();
    for (const VarId mean : means) {
      if (pools.of(mean) < use.pools) use = {.pools = pools.of(mean), .mean = main.NameOf(mean)};
    }
  }
}

absl::Status SequenceRows::Check(absl::Span<const Tensor> batch, absl::Span<const FeedSpec> feeds,
                                 int count) const {
  const auto uses_rows = [&](size_t i) { return uses_[i].pools < std::ssize(batch[i].lod); };
  bool any = false;
  for (size_t i = 0; i < std::min(uses_.size(), batch.size()); ++i) any = any || uses_rows(i);
  if (!any) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(const std::vector<BatchShare> shares, SplitBatch(batch, feeds, count));
  int64_t samples = 0;
  for (const BatchShare& share : shares) samples += share.num_samples;
  for (size_t i = 0; i < uses_.size(); ++i) {
    if (!uses_rows(i)) continue;
    const int64_t rows = RowsAfter(batch[i], uses_[i].pools);
    for (const BatchShare& share : shares) {
      const int64_t own = RowsAfter(share.feeds[i], uses_[i].pools);
      if (own * samples == rows * share.num_samples) continue;
      return Unimplemented(
          "feed '", feeds[i].name, "' has ", rows, " rows of ", samples, " sequences, and a share ",
          own, " of ", share.num_samples, ": '", uses_[i].mean,
          "' may be a mean over rows, and shares are weighted by their sequences; leave the batch "
          "whole, make rows one for each sequence (sequence_pool), or feed sequences of one "
          "length");
    }
  }
  return absl::OkStatus();
}

}  // namespace interp
