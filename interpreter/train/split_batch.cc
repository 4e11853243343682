#include "interpreter/train/split_batch.h"

#include <algorithm>
#include <utility>

namespace interp {
namespace {

bool HoldsSamples(const Tensor& tensor, const FeedSpec& feed) {
  if (tensor.shape.rank() == 0) return false;
  return feed.shape.rank() == 0 || feed.shape[0] < 0;
}

// Rows, or where there is a LoD the sequences of its first level.
int64_t SamplesOf(const Tensor& tensor) {
  return tensor.lod.empty() ? tensor.shape[0] : std::ssize(tensor.lod[0]) - 1;
}

absl::StatusOr<int64_t> CountSamples(absl::Span<const Tensor> batch,
                                     absl::Span<const FeedSpec> feeds) {
  const FeedSpec* first = nullptr;
  int64_t count = 0;
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (!HoldsSamples(batch[i], feeds[i])) continue;
    const absl::Status fits = CheckLod(batch[i].lod, batch[i].shape);
    if (!fits.ok()) return Annotate(fits, absl::StrCat("feed '", feeds[i].name, "'"));
    const int64_t samples = SamplesOf(batch[i]);
    if (first != nullptr && samples != count) {
      return InvalidArgument("feed '", feeds[i].name, "' has ", samples, " samples, '", first->name,
                             "' has ", count);
    }
    first = &feeds[i];
    count = samples;
  }
  if (first == nullptr) {
    return InvalidArgument(
        "no feed is declared with -1 as its first dim: there are no samples to cut into shares");
  }
  if (count == 0) return InvalidArgument("feed '", first->name, "' has no samples");
  return count;
}

Tensor Rows(const Tensor& tensor, int64_t begin, int64_t end) {
  Tensor rows = tensor;
  rows.shape[0] = end - begin;
  if (!tensor.has_memory() || tensor.shape[0] == 0) return rows;
  const size_t row_bytes = tensor.size_bytes() / static_cast<size_t>(tensor.shape[0]);
  char* const data = static_cast<char*>(rows.mutable_raw_data());
  rows.SetMemory(tensor.buffer(), data + static_cast<size_t>(begin) * row_bytes);
  return rows;
}

// Samples [begin, end). REQUIRES: CheckLod.
Tensor Samples(const Tensor& tensor, int64_t begin, int64_t end) {
  Lod lod;
  for (const std::vector<int64_t>& offsets : tensor.lod) {
    std::vector<int64_t>& own =
        lod.emplace_back(offsets.begin() + begin, offsets.begin() + end + 1);
    begin = own.front();
    end = own.back();
    for (int64_t& offset : own) offset -= begin;
  }
  Tensor samples = Rows(tensor, begin, end);
  samples.lod = std::move(lod);
  return samples;
}

}  // namespace

absl::StatusOr<std::vector<BatchShare>> SplitBatch(absl::Span<const Tensor> batch,
                                                   absl::Span<const FeedSpec> feeds, int count) {
  if (batch.size() != feeds.size()) {
    return InvalidArgument("got ", batch.size(), " feeds, expected ", feeds.size());
  }
  INTERP_ASSIGN_OR_RETURN(const int64_t samples, CountSamples(batch, feeds));
  std::vector<BatchShare> shares(static_cast<size_t>(std::min<int64_t>(count, samples)));
  const auto begin_of = [&, n = std::ssize(shares)](int64_t share) {
    return samples / n * share + std::min(share, samples % n);
  };
  for (int64_t s = 0; s < std::ssize(shares); ++s) {
    const int64_t begin = begin_of(s);
    const int64_t end = begin_of(s + 1);
    shares[s].num_samples = end - begin;
    for (size_t i = 0; i < feeds.size(); ++i) {
      shares[s].feeds.push_back(HoldsSamples(batch[i], feeds[i]) ? Samples(batch[i], begin, end)
                                                                 : batch[i]);
    }
  }
  return shares;
}

}  // namespace interp
