#include "interpreter/train/evaluation.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/element_types.h"
#include "interpreter/train/batch_loader.h"

namespace interp {
namespace {

// A fetch over the batches so far.
struct FetchSum {
  Shape shape;                   // of the fetch in the first batch
  bool one_shape = true;         // it had that in all of them
  std::vector<double> elements;  // weighted by samples, while it has one shape
  double num_samples = 0;
  double total = 0;  // of all elements
  double num_elements = 0;
};

absl::StatusOr<std::vector<double>> ElementsOf(const Tensor& fetch) {
  std::vector<double> elements(fetch.numel());
  const bool real = WithNumber(fetch.dtype, [&]<typename T>() {
    const T* data = fetch.data<T>();
    for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<double>(data[i]);
  });
  if (!real) {
    return InvalidArgument("a fetch is ", DescribeType(fetch), ", expected real numbers");
  }
  return elements;
}

absl::Status AddFetch(const Tensor& fetch, double num_samples, FetchSum& sum) {
  INTERP_ASSIGN_OR_RETURN(const std::vector<double> elements, ElementsOf(fetch));
  sum.total = std::accumulate(elements.begin(), elements.end(), sum.total);
  sum.num_elements += static_cast<double>(elements.size());
  sum.num_samples += num_samples;
  // Elements of another shape have no partners in the batches before.
  sum.one_shape = sum.one_shape && fetch.shape == sum.shape;
  if (!sum.one_shape) return absl::OkStatus();
  for (size_t i = 0; i < elements.size(); ++i) sum.elements[i] += num_samples * elements[i];
  return absl::OkStatus();
}

Tensor MeanOf(FetchSum sum) {
  if (!sum.one_shape) return Tensor::Of<double>({}, {sum.total / sum.num_elements});
  for (double& element : sum.elements) element /= sum.num_samples;
  return Tensor::Of<double>(sum.shape, sum.elements);
}

absl::Status AddBatch(const InterpreterCore& core, const std::vector<Tensor>& fetched,
                      double num_samples, std::vector<FetchSum>& sums) {
  if (sums.empty()) {
    for (const Tensor& fetch : fetched) {
      sums.push_back({.shape = fetch.shape, .elements = std::vector<double>(fetch.numel(), 0.0)});
    }
  }
  for (size_t f = 0; f < fetched.size(); ++f) {
    const absl::Status added = AddFetch(fetched[f], num_samples, sums[f]);
    if (!added.ok()) return Annotate(added, absl::StrCat("'", core.plan().fetches[f], "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<EvaluationResult> EvaluateAll(InterpreterCore& core, BatchLoader& loader,
                                             DataPosition end, const EvaluationLimits& limits) {
  EvaluationResult result;
  std::vector<FetchSum> sums;
  for (DataPosition next; next < end;) {
    if (limits.stop.stop_requested()) return absl::CancelledError("the evaluation was cancelled");
    INTERP_ASSIGN_OR_RETURN(const Batch batch, loader.Next());
    next = batch.next;
    result.num_skipped += batch.num_skipped;
    if (batch.num_samples == 0) continue;
    INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> fetched,
                            core.Run(batch.feeds, {.timeout = limits.timeout}));
    const auto num_samples = static_cast<double>(batch.num_samples);
    INTERP_RETURN_IF_ERROR(AddBatch(core, fetched, num_samples, sums));
  }
  for (FetchSum& sum : sums) result.means.push_back(MeanOf(std::move(sum)));
  return result;
}

}  // namespace

absl::StatusOr<EvaluationResult> Evaluate(InterpreterCore& core,
                                          const std::shared_ptr<SampleSource>& source,
                                          int64_t batch_size, const EvaluationLimits& limits) {
  const BatchOptions options{.batch_size = batch_size, .shuffle = false};
  const DataPosition end = {.epoch = 1, .batch = 0};
  BatchLoader loader(source, options, {}, {.position = end});
  absl::StatusOr<EvaluationResult> result;
  {
    const std::stop_callback on_stop(limits.stop, [&core] { core.Cancel(); });
    result = EvaluateAll(core, loader, end, limits);
  }
  core.ForgetCancel();  // a stop may have come too late for a run
  return result;
}

}  // namespace interp
