#include "interpreter/array_run.h"

#include <utility>

namespace interp {
namespace {

absl::Status Check(const std::vector<Array>& arrays, size_t expected, absl::string_view what,
                   const ArrayRuntime& runtime) {
  if (arrays.size() != expected) {
    return InvalidArgument("a run has ", arrays.size(), " ", what, ", expected ", expected);
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Array& array = arrays[i];
    if (!array || &array.runtime() != &runtime || !array.place().on_host() || array.is_rows()) {
      return InvalidArgument("number ", i, " of the ", what, " is ",
                             array ? DescribeArray(array) : "no array",
                             ", expected an array of this runtime on cpu");
    }
  }
  return absl::OkStatus();
}

// Gives an array what a run has fetched.
absl::Status Take(const Array& array, const Tensor& fetched, size_t i) {
  if (fetched.shape != array.shape() || fetched.dtype != array.dtype()) {
    return InvalidArgument("fetch ", i, " is ", DescribeType(fetched), ", but its array is ",
                           DescribeArray(array));
  }
  if (fetched.layout != Layout::kPlain || !fetched.lod.empty()) {
    return InvalidArgument("fetch ", i, " has another layout than plain, or a LoD");
  }
  ArrayAccess::chunk(array)->value.tensor.ShareMemory(fetched);
  return absl::OkStatus();
}

absl::Status RunOnce(InterpreterCore& core, const std::vector<Array>& feeds,
                     const std::vector<Array>& fetches) {
  std::vector<Tensor> fed;
  for (const Array& feed : feeds) {
    INTERP_ASSIGN_OR_RETURN(fed.emplace_back(), ArrayAccess::Readable(feed));
  }
  INTERP_ASSIGN_OR_RETURN(std::vector<Tensor> fetched, core.Run(fed));
  for (size_t i = 0; i < fetches.size(); ++i) {
    INTERP_RETURN_IF_ERROR(Take(fetches[i], fetched[i], i));
  }
  return absl::OkStatus();
}

}  // namespace

CoreOnArrays::CoreOnArrays(ArrayRuntime& runtime, InterpreterCore& core,
                           std::vector<engine::Variable> shared)
    : runtime_(runtime),
      core_(core),
      shared_(std::move(shared)),
      variable_(runtime.engine().NewVariable("core")) {}

CoreOnArrays::~CoreOnArrays() { (void)runtime_.engine().DeleteVariable(variable_); }

absl::Status CoreOnArrays::Run(std::vector<Array> feeds, std::vector<Array> fetches,
                               int32_t priority) {
  INTERP_RETURN_IF_ERROR(Check(feeds, core_.plan().feeds.size(), "feeds", runtime_));
  INTERP_RETURN_IF_ERROR(Check(fetches, core_.plan().fetches.size(), "fetches", runtime_));
  std::vector<engine::Variable> reads;
  for (const Array& feed : feeds) reads.push_back(feed.variable());
  // A core is not spoilt by a run that failed, so it counts as overwritten.
  std::vector<engine::Variable> writes = shared_;
  writes.push_back(variable_);
  for (const Array& fetch : fetches) {
    if (!ArrayAccess::IsWhole(fetch)) {
      return InvalidArgument("a fetch goes into a view of a part, ", DescribeArray(fetch));
    }
    writes.push_back(fetch.variable());
  }
  for (const Array& fetch : fetches) ArrayAccess::CountWrite(fetch);
  return runtime_.engine().Push(
      [core = &core_, feeds = std::move(feeds), fetches = std::move(fetches)] {
        return RunOnce(*core, feeds, fetches);
      },
      {.reads = reads, .writes = writes}, {.name = "run", .priority = priority});
}

}  // namespace interp
