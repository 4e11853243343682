// The C API: what comes in is checked, becomes a call of Predictor, and its Status becomes a code.
// Long because it holds all functions of interp.h.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/base/annotate.h"
#include "core/base/catching.h"
#include "interp/interp.h"
#include "interpreter/load_cuda.h"
#include "interpreter/predictor.h"

struct interp_predictor {
  std::unique_ptr<interp::Predictor> predictor;
};

struct interp_result {
  struct Output {
    interp::Tensor tensor;
    std::vector<const int64_t*> lod;
    std::vector<size_t> lod_sizes;
  };
  std::vector<Output> outputs;
};

struct interp_cancel_token {
  std::stop_source source;
};

namespace interp {
namespace {

// Of the last call in this thread that failed.
thread_local std::string last_error;

interp_status Report(const absl::Status& status) {
  if (status.ok()) return INTERP_OK;
  try {
    last_error = std::string(status.message());
  } catch (const std::exception&) {
    last_error.clear();
  }
  return static_cast<interp_status>(status.code());
}

template <typename Function>
interp_status Guard(const Function& function) {
  try {
    return Report(Catching(function));
  } catch (...) {
    last_error.clear();
    return INTERP_INTERNAL;
  }
}

absl::Status NullPointer(absl::string_view what) { return InvalidArgument(what, " is NULL"); }

// That of this header.
template <typename Struct>
absl::Status CheckSize(const Struct& given, absl::string_view what) {
  if (given.struct_size == sizeof(Struct)) return absl::OkStatus();
  return InvalidArgument(what, ".struct_size is ", given.struct_size, ", expected ", sizeof(Struct),
                         "; set it to the sizeof of the struct, and use header and library ",
                         INTERP_VERSION_STRING, " together");
}

// A count that nobody means would have its loop read whatever follows the caller's memory.
absl::Status CheckCount(absl::string_view what, size_t count, size_t most) {
  if (count <= most) return absl::OkStatus();
  return InvalidArgument(what, " is ", count, ", expected 0 to ", most);
}

absl::Status ReadNames(const char* const* names, size_t count, absl::string_view what,
                       std::vector<std::string>& read) {
  constexpr size_t kMostNames = size_t{1} << 20;
  INTERP_RETURN_IF_ERROR(CheckCount(absl::StrCat("the count of ", what), count, kMostNames));
  if (count > 0 && names == nullptr) return NullPointer(what);
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == nullptr) return NullPointer(absl::StrCat(what, "[", i, "]"));
    read.emplace_back(names[i]);
  }
  return absl::OkStatus();
}

// What older headers end with is all there is; the rest stays 0.
absl::StatusOr<interp_options> ReadAllSizes(const interp_options& given) {
  constexpr size_t kFirst = offsetof(interp_options, place);
  if (given.struct_size != kFirst) INTERP_RETURN_IF_ERROR(CheckSize(given, "options"));
  interp_options whole = {};
  std::memcpy(&whole, &given, given.struct_size);
  return whole;
}

// Options of devices.
absl::Status ReadPlace(const interp_options& given, CoreOptions& core) {
  core.tf32 = given.tf32 != 0;
  core.cuda_graphs = given.cuda_graphs != 0;
  if (given.place == nullptr) return absl::OkStatus();
  INTERP_ASSIGN_OR_RETURN(core.plan.place, Annotate(LoadPlace(given.place), "options.place"));
  return absl::OkStatus();
}

absl::StatusOr<PredictorOptions> ReadOptions(const interp_options* pointer) {
  PredictorOptions options;
  if (pointer == nullptr) return options;
  INTERP_ASSIGN_OR_RETURN(const interp_options whole, ReadAllSizes(*pointer));
  const interp_options* const given = &whole;
  const std::pair<const char*, int32_t> counts[] = {{"num_streams", given->num_streams},
                                                    {"num_threads", given->num_threads},
                                                    {"num_workers", given->num_workers}};
  for (const auto& [name, count] : counts) {
    if (count < 0 || count > kMaxThreads) {
      return InvalidArgument("options.", name, " is ", count, ", expected 0 to ", kMaxThreads);
    }
  }
  options.num_streams = std::max(given->num_streams, 1);
  options.core.num_threads = given->num_threads;
  options.core.num_workers = std::max(given->num_workers, 1);
  options.core.check_nan_inf = given->check_nan_inf != 0;
  options.core.max_memory_bytes = given->max_memory_bytes;
  options.core.random_seed = given->random_seed;
  if (given->scheduler != nullptr) {
    INTERP_ASSIGN_OR_RETURN(options.core.scheduler, SchedulerFromName(given->scheduler));
  }
  if (given->algorithms != nullptr) {
    INTERP_ASSIGN_OR_RETURN(options.core.algorithms, AlgorithmsFromName(given->algorithms));
  }
  if (given->file_folder != nullptr) options.core.file_folder = given->file_folder;
  INTERP_RETURN_IF_ERROR(ReadPlace(*given, options.core));
  INTERP_RETURN_IF_ERROR(ReadNames(given->feeds, given->num_feeds, "options.feeds", options.feeds));
  INTERP_RETURN_IF_ERROR(
      ReadNames(given->fetches, given->num_fetches, "options.fetches", options.fetches));
  return options;
}

absl::StatusOr<PredictOptions> ReadRunOptions(const interp_run_options* given) {
  PredictOptions options;
  if (given == nullptr) return options;
  INTERP_RETURN_IF_ERROR(CheckSize(*given, "options"));
  if (given->timeout_ns < 0) {
    return InvalidArgument("options.timeout_ns is ", given->timeout_ns, ", expected 0 or more");
  }
  // Later than this is never, and the clock's sums do not overflow.
  constexpr int64_t kLongest = int64_t{1} << 60;
  if (given->timeout_ns > 0 && given->timeout_ns < kLongest) {
    options.timeout = std::chrono::nanoseconds(given->timeout_ns);
  }
  if (given->cancel != nullptr) options.stop = given->cancel->source.get_token();
  return options;
}

absl::StatusOr<Shape> ReadShape(const interp_tensor& feed) {
  if (feed.rank < 0 || feed.rank > kMaxRank) {
    return InvalidArgument("rank is ", feed.rank, ", expected 0 to ", kMaxRank);
  }
  if (feed.rank > 0 && feed.dims == nullptr) return NullPointer("dims");
  Shape shape(absl::MakeConstSpan(feed.dims, static_cast<size_t>(feed.rank)));
  if (!shape.CheckedNumel().has_value()) {
    return InvalidArgument("dims are ", ToString(shape), ", expected sizes that memory can have");
  }
  return shape;
}

absl::StatusOr<Lod> ReadLod(const interp_tensor& feed) {
  constexpr size_t kMostLevels = 64;
  constexpr size_t kMostOffsets = size_t{1} << 40;
  Lod lod;
  if (feed.num_lod_levels == 0) return lod;
  INTERP_RETURN_IF_ERROR(CheckCount("num_lod_levels", feed.num_lod_levels, kMostLevels));
  if (feed.lod == nullptr) return NullPointer("lod");
  if (feed.lod_sizes == nullptr) return NullPointer("lod_sizes");
  for (size_t i = 0; i < feed.num_lod_levels; ++i) {
    if (feed.lod[i] == nullptr) return NullPointer(absl::StrCat("lod[", i, "]"));
    INTERP_RETURN_IF_ERROR(
        CheckCount(absl::StrCat("lod_sizes[", i, "]"), feed.lod_sizes[i], kMostOffsets));
    lod.emplace_back(feed.lod[i], feed.lod[i] + feed.lod_sizes[i]);
  }
  return lod;
}

absl::StatusOr<Tensor> ReadFeed(const interp_tensor& feed) {
  INTERP_RETURN_IF_ERROR(CheckSize(feed, "tensor"));
  const std::optional<DType> dtype = DTypeFromCode(feed.dtype);
  if (!dtype.has_value()) return InvalidArgument("dtype ", feed.dtype, " is none");
  INTERP_ASSIGN_OR_RETURN(const Shape shape, ReadShape(feed));
  const size_t size_bytes = static_cast<size_t>(shape.numel()) * SizeOf(*dtype);
  if (feed.size_bytes != size_bytes) {
    return InvalidArgument("size_bytes is ", feed.size_bytes, ", but ", Name(*dtype),
                           ToString(shape), " takes ", size_bytes);
  }
  // A tensor without elements has memory, too: null is how a Tensor says that it has none.
  static constexpr int64_t kNothing = 0;
  const void* const data = size_bytes == 0 ? &kNothing : feed.data;
  if (data == nullptr) return NullPointer("data");
  const size_t alignment = std::min(SizeOf(*dtype), alignof(int64_t));
  if (reinterpret_cast<uintptr_t>(data) % alignment != 0) {
    return InvalidArgument("data is not aligned to ", alignment, " bytes, as ", Name(*dtype),
                           " has to be");
  }
  Tensor tensor = Tensor::Borrow(*dtype, shape, data);
  INTERP_ASSIGN_OR_RETURN(tensor.lod, ReadLod(feed));
  INTERP_RETURN_IF_ERROR(CheckLod(tensor.lod, tensor.shape));
  return tensor;
}

absl::StatusOr<std::vector<Tensor>> ReadFeeds(const Predictor& predictor,
                                              const interp_tensor* feeds, size_t num_feeds) {
  const std::vector<PredictorVar>& inputs = predictor.inputs();
  if (num_feeds != inputs.size()) {
    return InvalidArgument("there are ", num_feeds, " feeds, expected ", inputs.size());
  }
  if (num_feeds > 0 && feeds == nullptr) return NullPointer("feeds");
  std::vector<Tensor> read;
  for (size_t i = 0; i < num_feeds; ++i) {
    absl::StatusOr<Tensor> feed = ReadFeed(feeds[i]);
    if (!feed.ok()) {
      return Annotate(feed.status(), absl::StrCat("feed ", i, " ('", inputs[i].name, "')"));
    }
    read.push_back(*std::move(feed));
  }
  return read;
}

absl::StatusOr<std::vector<OutputMemory>> ReadMemory(const Predictor& predictor,
                                                     const interp_memory* outputs, size_t count) {
  if (count != predictor.outputs().size()) {
    return InvalidArgument("there is memory for ", count, " outputs, expected ",
                           predictor.outputs().size());
  }
  if (count > 0 && outputs == nullptr) return NullPointer("outputs");
  std::vector<OutputMemory> read;
  for (size_t i = 0; i < count; ++i) {
    if (outputs[i].data == nullptr && outputs[i].size_bytes > 0) {
      return NullPointer(absl::StrCat("outputs[", i, "].data"));
    }
    read.push_back({outputs[i].data, outputs[i].size_bytes});
  }
  return read;
}

std::unique_ptr<interp_result> MakeResult(std::vector<Tensor> fetched) {
  auto result = std::make_unique<interp_result>();
  for (Tensor& tensor : fetched) {
    interp_result::Output& output = result->outputs.emplace_back();
    output.tensor = std::move(tensor);
    for (const std::vector<int64_t>& level : output.tensor.lod) {
      output.lod.push_back(level.data());
      output.lod_sizes.push_back(level.size());
    }
  }
  return result;
}

absl::Status Describe(const std::vector<PredictorVar>& vars, size_t index, interp_var_info* info) {
  if (info == nullptr) return NullPointer("info");
  INTERP_RETURN_IF_ERROR(CheckSize(*info, "info"));
  if (index >= vars.size()) {
    return InvalidArgument("index is ", index, ", expected less than ", vars.size());
  }
  const PredictorVar& var = vars[index];
  info->name = var.name.c_str();
  info->dims = var.dims.data();
  info->rank = static_cast<int32_t>(var.dims.size());
  info->dtype = static_cast<interp_dtype>(var.dtype);
  return absl::OkStatus();
}

}  // namespace
}  // namespace interp

using interp::Guard;
using interp::NullPointer;

const char* interp_version() { return INTERP_VERSION_STRING; }
const char* interp_last_error() { return interp::last_error.c_str(); }

const char* interp_status_name(interp_status status) {
  switch (status) {
    case INTERP_OK:
      return "ok";
    case INTERP_CANCELLED:
      return "cancelled";
    case INTERP_INVALID_ARGUMENT:
      return "invalid argument";
    case INTERP_DEADLINE_EXCEEDED:
      return "deadline exceeded";
    case INTERP_NOT_FOUND:
      return "not found";
    case INTERP_ALREADY_EXISTS:
      return "already exists";
    case INTERP_PERMISSION_DENIED:
      return "permission denied";
    case INTERP_RESOURCE_EXHAUSTED:
      return "resource exhausted";
    case INTERP_FAILED_PRECONDITION:
      return "failed precondition";
    case INTERP_UNIMPLEMENTED:
      return "unimplemented";
    case INTERP_INTERNAL:
      return "internal";
    case INTERP_DATA_LOSS:
      return "data loss";
    default:
      return "unknown";
  }
}

const char* interp_dtype_name(interp_dtype dtype) {
  const std::optional<interp::DType> known = interp::DTypeFromCode(dtype);
  return known.has_value() ? interp::Name(*known).data() : "unknown";  // of a literal
}

size_t interp_dtype_size(interp_dtype dtype) {
  const std::optional<interp::DType> known = interp::DTypeFromCode(dtype);
  return known.has_value() ? interp::SizeOf(*known) : 0;
}

interp_status interp_predictor_load(const char* model, const char* params,
                                    const interp_options* options, interp_predictor** predictor) {
  if (predictor != nullptr) *predictor = nullptr;
  return Guard([&]() -> absl::Status {
    if (model == nullptr) return NullPointer("model");
    if (predictor == nullptr) return NullPointer("predictor");
    INTERP_ASSIGN_OR_RETURN(const interp::PredictorOptions read, interp::ReadOptions(options));
    std::optional<std::string> params_path;
    if (params != nullptr) params_path = params;
    auto made = std::make_unique<interp_predictor>();
    INTERP_ASSIGN_OR_RETURN(made->predictor, interp::Predictor::Load(model, params_path, read));
    *predictor = made.release();
    return absl::OkStatus();
  });
}

void interp_predictor_free(interp_predictor* predictor) { delete predictor; }

size_t interp_predictor_num_inputs(const interp_predictor* predictor) {
  return predictor != nullptr ? predictor->predictor->inputs().size() : 0;
}

size_t interp_predictor_num_outputs(const interp_predictor* predictor) {
  return predictor != nullptr ? predictor->predictor->outputs().size() : 0;
}

interp_status interp_predictor_input(const interp_predictor* predictor, size_t index,
                                     interp_var_info* info) {
  return Guard([&]() -> absl::Status {
    if (predictor == nullptr) return NullPointer("predictor");
    return interp::Describe(predictor->predictor->inputs(), index, info);
  });
}

interp_status interp_predictor_output(const interp_predictor* predictor, size_t index,
                                      interp_var_info* info) {
  return Guard([&]() -> absl::Status {
    if (predictor == nullptr) return NullPointer("predictor");
    return interp::Describe(predictor->predictor->outputs(), index, info);
  });
}

interp_status interp_predictor_run(interp_predictor* predictor, const interp_tensor* feeds,
                                   size_t num_feeds, const interp_run_options* options,
                                   interp_result** result) {
  if (result != nullptr) *result = nullptr;
  return Guard([&]() -> absl::Status {
    if (predictor == nullptr) return NullPointer("predictor");
    if (result == nullptr) return NullPointer("result");
    interp::Predictor& runs = *predictor->predictor;
    INTERP_ASSIGN_OR_RETURN(const interp::PredictOptions read, interp::ReadRunOptions(options));
    INTERP_ASSIGN_OR_RETURN(const auto tensors, interp::ReadFeeds(runs, feeds, num_feeds));
    INTERP_ASSIGN_OR_RETURN(auto fetched, runs.Run(tensors, read));
    *result = interp::MakeResult(std::move(fetched)).release();
    return absl::OkStatus();
  });
}

interp_status interp_predictor_run_into(interp_predictor* predictor, const interp_tensor* feeds,
                                        size_t num_feeds, const interp_memory* outputs,
                                        size_t num_outputs, const interp_run_options* options,
                                        interp_result** result) {
  if (result != nullptr) *result = nullptr;
  return Guard([&]() -> absl::Status {
    if (predictor == nullptr) return NullPointer("predictor");
    interp::Predictor& runs = *predictor->predictor;
    INTERP_ASSIGN_OR_RETURN(const interp::PredictOptions read, interp::ReadRunOptions(options));
    INTERP_ASSIGN_OR_RETURN(const auto tensors, interp::ReadFeeds(runs, feeds, num_feeds));
    INTERP_ASSIGN_OR_RETURN(const auto memory, interp::ReadMemory(runs, outputs, num_outputs));
    INTERP_ASSIGN_OR_RETURN(auto fetched, runs.RunInto(tensors, memory, read));
    if (result != nullptr) *result = interp::MakeResult(std::move(fetched)).release();
    return absl::OkStatus();
  });
}

size_t interp_result_size(const interp_result* result) {
  return result != nullptr ? result->outputs.size() : 0;
}

interp_status interp_result_get(const interp_result* result, size_t index, interp_tensor* tensor) {
  return Guard([&]() -> absl::Status {
    if (result == nullptr) return NullPointer("result");
    if (tensor == nullptr) return NullPointer("tensor");
    INTERP_RETURN_IF_ERROR(interp::CheckSize(*tensor, "tensor"));
    if (index >= result->outputs.size()) {
      return interp::InvalidArgument("index is ", index, ", expected less than ",
                                     result->outputs.size());
    }
    const interp_result::Output& output = result->outputs[index];
    tensor->data = output.tensor.raw_data();
    tensor->size_bytes = output.tensor.size_bytes();
    tensor->dims = output.tensor.shape.begin();
    tensor->rank = output.tensor.shape.rank();
    tensor->dtype = static_cast<interp_dtype>(output.tensor.dtype);
    tensor->lod = output.lod.data();
    tensor->lod_sizes = output.lod_sizes.data();
    tensor->num_lod_levels = output.lod.size();
    return absl::OkStatus();
  });
}

void interp_result_free(interp_result* result) { delete result; }

interp_status interp_cancel_token_create(interp_cancel_token** token) {
  if (token != nullptr) *token = nullptr;
  return Guard([&]() -> absl::Status {
    if (token == nullptr) return NullPointer("token");
    *token = std::make_unique<interp_cancel_token>().release();
    return absl::OkStatus();
  });
}

interp_status interp_cancel_token_cancel(interp_cancel_token* token) {
  return Guard([&]() -> absl::Status {
    if (token == nullptr) return NullPointer("token");
    token->source.request_stop();
    return absl::OkStatus();
  });
}

void interp_cancel_token_free(interp_cancel_token* token) { delete token; }
