#include "interpreter/train/evaluation.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/element_types.h"
#include "interpreter/train/batch_loader.h"

namespace interp {
namespace {

// A fetch over the batches so far.
struct WeightedSum {
  Shape shape;
  std::vector<double> elements;
};

double MeanOf(const std::vector<double>& elements) {
  return std::accumulate(elements.begin(), elements.end(), 0.0) /
         static_cast<double>(elements.size());
}

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

// Adds the elements of `fetch`, times `weight`, to `sum`. Those of another shape than before have
// no partners: from then on the sum is that of the means of batches.
absl::Status AddWeighted(const Tensor& fetch, double weight, WeightedSum& sum) {
  INTERP_ASSIGN_OR_RETURN(std::vector<double> elements, ElementsOf(fetch));
  if (fetch.shape != sum.shape) {
    elements = {MeanOf(elements)};
    sum.elements = {MeanOf(sum.elements)};
    sum.shape = Shape{};
  }
  for (size_t i = 0; i < elements.size(); ++i) sum.elements[i] += weight * elements[i];
  return absl::OkStatus();
}

absl::Status AddBatch(const InterpreterCore& core, const std::vector<Tensor>& fetched,
                      double weight, std::vector<WeightedSum>& sums) {
  if (sums.empty()) {
    for (const Tensor& fetch : fetched) {
      sums.push_back({fetch.shape, std::vector<double>(fetch.numel(), 0.0)});
    }
  }
  for (size_t f = 0; f < fetched.size(); ++f) {
    const absl::Status added = AddWeighted(fetched[f], weight, sums[f]);
    if (!added.ok()) return Annotate(added, absl::StrCat("'", core.plan().fetches[f], "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<EvaluationResult> EvaluateAll(InterpreterCore& core, BatchLoader& loader,
                                             DataPosition end, const EvaluationLimits& limits) {
  EvaluationResult result;
  std::vector<WeightedSum> sums;
  double num_samples = 0;
  for (DataPosition next; next < end;) {
    if (limits.stop.stop_requested()) return absl::CancelledError("the evaluation was cancelled");
    INTERP_ASSIGN_OR_RETURN(const Batch batch, loader.Next());
    next = batch.next;
    result.num_skipped += batch.num_skipped;
    if (batch.num_samples == 0) continue;
    INTERP_ASSIGN_OR_RETURN(const std::vector<Tensor> fetched,
                            core.Run(batch.feeds, {.timeout = limits.timeout}));
    const auto weight = static_cast<double>(batch.num_samples);
    num_samples += weight;
    INTERP_RETURN_IF_ERROR(AddBatch(core, fetched, weight, sums));
  }
  for (WeightedSum& sum : sums) {
    for (double& element : sum.elements) element /= num_samples;
    result.means.push_back(Tensor::Of<double>(sum.shape, sum.elements));
  }
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
