#include "interpreter/train/data_parallel.h"

#include <array>
#include <type_traits>
#include <utility>

#include "core/device/device_heap.h"
#include "core/storage/memory_source.h"
#include "interpreter/train/merge_values.h"

namespace interp {
namespace {

// A tensor but for its elements, as ranks tell each other.
struct TensorHeader {
  int32_t dtype = -1;  // -1: no value
  int32_t rank = 0;
  std::array<int64_t, kMaxRank> dims = {};
};
static_assert(std::is_trivially_copyable_v<TensorHeader>);

TensorHeader HeaderOf(const Tensor& tensor) {
  TensorHeader header;
  if (!tensor.has_memory()) return header;
  header.dtype = static_cast<int32_t>(tensor.dtype);
  header.rank = tensor.shape.rank();
  for (int i = 0; i < header.rank; ++i) header.dims[i] = tensor.shape[i];
  return header;
}

Tensor TensorOf(const TensorHeader& header) {
  Tensor tensor;
  tensor.dtype = static_cast<DType>(header.dtype);
  for (int i = 0; i < header.rank; ++i) tensor.shape.push_back(header.dims[i]);
  return tensor;
}

CommCall BroadcastOf(void* bytes, size_t size) {
  return {.kind = CommKind::kBroadcast,
          .count = static_cast<int64_t>(size),
          .in = bytes,
          .out = bytes,
          .name = "state of rank 0"};
}

// By rank.
absl::StatusOr<std::vector<TensorHeader>> GatherHeaders(Communicator& ring, const Tensor& value) {
  const TensorHeader header = HeaderOf(value);
  std::vector<TensorHeader> headers(ring.size());
  INTERP_RETURN_IF_ERROR(ring.Run({.kind = CommKind::kAllGather,
                                   .count = sizeof(header),
                                   .in = &header,
                                   .out = headers.data(),
                                   .name = "fetches"}));
  return headers;
}

}  // namespace

absl::Status BroadcastBytes(Communicator& ring, void* bytes, size_t size) {
  return ring.Run(BroadcastOf(bytes, size));
}

absl::StatusOr<AnyRank> AnyRank::Ask(Communicator& ring, bool own) {
  AnyRank any;
  any.value_ = Tensor::Of<int32_t>({1}, {own ? 1 : 0});
  INTERP_ASSIGN_OR_RETURN(any.request_, ring.Start({.kind = CommKind::kAllReduce,
                                                    .dtype = DType::kInt32,
                                                    .reduce = ReduceKind::kMax,
                                                    .count = 1,
                                                    .in = any.value_.raw_data(),
                                                    .out = any.value_.mutable_raw_data(),
                                                    .name = "whether to stop"},
                                                   {any.value_.buffer()}));
  return any;
}

absl::StatusOr<bool> AnyRank::Answer() const {
  INTERP_RETURN_IF_ERROR(request_->Wait());
  return *value_.data<int32_t>() != 0;
}

absl::StatusOr<std::unique_ptr<DataParallel>> DataParallel::Create(
    Program& main, const std::vector<std::string>& fetches, std::shared_ptr<Rings> rings,
    const DataParallelOptions& options) {
  std::unique_ptr<DataParallel> made(new DataParallel());
  made->rings_ = rings != nullptr ? std::move(rings) : Rings::Alone();
  INTERP_ASSIGN_OR_RETURN(made->ring_, made->rings_->Find(options.ring_id));
  if (made->ring_->size() != made->rings_->size()) {
    return InvalidArgument("ring ", options.ring_id, " has ", made->ring_->size(), " of ",
                           made->rings_->size(), " ranks, and data-parallel training needs all");
  }
  // What rank 0 of the ring has would go to all, and the checkpoint is in rank 0 of the launcher.
  if (made->ring_->members() != made->rings_->AllRanks()) {
    return InvalidArgument("ring ", options.ring_id, " (--ring ", options.ring_id,
                           "=...) has the ranks in another order than the launcher, and "
                           "data-parallel training begins as the launcher's rank 0 says");
  }
  INTERP_ASSIGN_OR_RETURN(DataParallelProgram rewritten, MakeDataParallel(main, options));
  for (const std::string& name : fetches) {
    made->fetches_.push_back({.name = name,
                              .merge = MergeOf(main, name),
                              .same_on_all_ranks = rewritten.same_on_all_ranks.contains(name)});
  }
  made->weight_ = std::move(rewritten.weight);
  made->num_buckets_ = rewritten.num_buckets;
  main = std::move(rewritten.program);
  return made;
}

absl::Status DataParallel::BroadcastTensors(const std::vector<ParamDecl>& params, Scope& scope) {
  for (const ParamDecl& param : params) {
    Variable* const variable = scope.FindOrCreate(param.name);
    const absl::Status sent = BroadcastTensor(variable->tensor);
    if (!sent.ok()) return Annotate(sent, absl::StrCat("'", param.name, "'"));
    ++variable->version;
  }
  return absl::OkStatus();
}

absl::Status DataParallel::BroadcastTensor(Tensor& tensor) {
  // As a startup program leaves it, perhaps on a device.
  INTERP_RETURN_IF_ERROR(MoveToHost(tensor));
  TensorHeader header = HeaderOf(tensor);
  INTERP_RETURN_IF_ERROR(BroadcastBytes(*ring_, &header, sizeof(header)));
  if (header.dtype < 0) return absl::OkStatus();
  if (ring_->rank() != 0) {
    tensor = TensorOf(header);
    INTERP_RETURN_IF_ERROR(tensor.Allocate(SystemAllocator()));
  }
  return ring_->Run(BroadcastOf(tensor.mutable_raw_data(), tensor.size_bytes()), {tensor.buffer()});
}

absl::Status DataParallel::BroadcastPosition(int64_t& num_steps, RandomState& random) {
  std::array<uint64_t, 4> position = {static_cast<uint64_t>(num_steps), random.seed, random.stream,
                                      random.step};
  INTERP_RETURN_IF_ERROR(BroadcastBytes(*ring_, position.data(), sizeof(position)));
  num_steps = static_cast<int64_t>(position[0]);
  random = {.seed = position[1], .stream = position[2], .step = position[3]};
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> DataParallel::MyShare(absl::Span<const Tensor> batch,
                                                          absl::Span<const FeedSpec> feeds) {
  INTERP_ASSIGN_OR_RETURN(std::vector<BatchShare> shares, SplitBatch(batch, feeds, ring_->size()));
  num_samples_ = 0;
  for (const BatchShare& share : shares) num_samples_ += share.num_samples;
  weights_.assign(ring_->size(), 0);
  for (size_t r = 0; r < shares.size(); ++r) {
    weights_[r] = static_cast<double>(shares[r].num_samples) / static_cast<double>(num_samples_);
  }
  const auto rank = static_cast<size_t>(ring_->rank());
  // The first share has one sample then.
  std::vector<Tensor> mine = std::move(shares[rank < shares.size() ? rank : 0].feeds);
  mine.push_back(Tensor::Of<double>({1}, {weights_[rank]}));
  return mine;
}

absl::Status DataParallel::MergeFetches(std::vector<Tensor>& fetched) {
  for (size_t i = 0; i < fetches_.size(); ++i) {
    if (fetches_[i].same_on_all_ranks || ring_->size() == 1) continue;
    const absl::Status merged = MergeFetch(fetches_[i], fetched[i]);
    if (!merged.ok()) return Annotate(merged, absl::StrCat("'", fetches_[i].name, "'"));
  }
  return absl::OkStatus();
}

absl::Status DataParallel::MergeFetch(const Fetch& fetch, Tensor& value) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<TensorHeader> headers, GatherHeaders(*ring_, value));
  std::vector<int64_t> counts;
  int64_t total = 0;
  for (const TensorHeader& of_rank : headers) {
    if (of_rank.dtype < 0) return InvalidArgument("has no value on one of the ranks");
    counts.push_back(static_cast<int64_t>(TensorOf(of_rank).size_bytes()));
    total += counts.back();
  }
  Tensor all;
  all.dtype = DType::kUInt8;
  all.shape = Shape{total};
  INTERP_RETURN_IF_ERROR(all.Allocate(SystemAllocator()));
  INTERP_RETURN_IF_ERROR(ring_->Run({.kind = CommKind::kAllGather,
                                     .counts = counts,
                                     .in = value.raw_data(),
                                     .out = all.mutable_raw_data(),
                                     .name = "fetches"},
                                    {value.buffer(), all.buffer()}));
  std::vector<Tensor> parts;
  std::vector<double> weights;
  char* data = static_cast<char*>(all.mutable_raw_data());
  for (size_t r = 0; r < headers.size(); ++r) {
    Tensor part = TensorOf(headers[r]);
    part.SetMemory(all.buffer(), data);
    data += counts[r];
    if (weights_[r] == 0) continue;  // a sample that another rank has
    parts.push_back(std::move(part));
    weights.push_back(weights_[r]);
  }
  MergedValue merged;
  INTERP_RETURN_IF_ERROR(merged.Begin(std::move(parts), fetch.merge, weights));
  merged.MergeSlice(0, 1);
  merged.Finish();
  value = merged.result();
  return absl::OkStatus();
}

}  // namespace interp
