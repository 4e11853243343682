#include "tools/feed_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <type_traits>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "core/io/array_elements.h"
#include "core/io/file.h"
#include "core/io/npy.h"
#include "tools/image_feed.h"
#include "tools/model.h"
#include "tools/sizes.h"

namespace interp {
namespace {

constexpr int64_t kMaxFeedElements = int64_t{1} << 32;

// Calls body.template operator()<T>() for the C++ type of `dtype`.
template <typename Body>
absl::Status WithNumbers(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kFloat32:
      return body.template operator()<float>();
    case DType::kFloat64:
      return body.template operator()<double>();
    case DType::kFloat16:
      return body.template operator()<float16>();
    case DType::kBFloat16:
      return body.template operator()<bfloat16>();
    case DType::kInt64:
      return body.template operator()<int64_t>();
    case DType::kInt32:
      return body.template operator()<int32_t>();
    case DType::kInt16:
      return body.template operator()<int16_t>();
    case DType::kInt8:
      return body.template operator()<int8_t>();
    case DType::kUInt8:
      return body.template operator()<uint8_t>();
    case DType::kBool:
      return body.template operator()<bool>();
    default:
      return Unimplemented("no feed of dtype ", Name(dtype), " can be made up");
  }
}

// FNV-1a, so that a feed's values do not depend on what else is fed.
uint64_t HashName(absl::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

absl::StatusOr<DType> DeclaredDType(const FeedTarget& target) {
  if (target.var == nullptr || target.var->dtype == DType::kUndefined) {
    return InvalidArgument("the program does not tell the dtype of '", target.name,
                           "'; feed it from a file");
  }
  return target.var->dtype;
}

// The dims that `text` gives, or the declared ones without. `example` shows how to give them.
absl::StatusOr<std::vector<int64_t>> DimsOf(const FeedTarget& target,
                                            const std::optional<absl::string_view>& text,
                                            absl::string_view example) {
  if (text.has_value()) return ParseDims(*text);
  if (target.var == nullptr || std::any_of(target.var->dims.begin(), target.var->dims.end(),
                                           [](int64_t dim) { return dim < 0; })) {
    return InvalidArgument("'", target.name, "' has unknown dims, ", DescribeVar(target.var),
                           "; give them as in ", example, ":1x3x224x224");
  }
  return target.var->dims;
}

// Splits at the first ':'.
std::pair<absl::string_view, std::optional<absl::string_view>> SplitColon(absl::string_view text) {
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

absl::StatusOr<Tensor> RandomFeed(const FeedTarget& target,
                                  const std::optional<absl::string_view>& dims_text,
                                  uint64_t seed) {
  INTERP_ASSIGN_OR_RETURN(const DType dtype, DeclaredDType(target));
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, DimsOf(target, dims_text, "random"));
  INTERP_ASSIGN_OR_RETURN(Tensor tensor, MakeFeed(dtype, dims));
  std::mt19937_64 engine(seed ^ HashName(target.name));
  std::normal_distribution<float> normal;
  INTERP_RETURN_IF_ERROR(WithNumbers(dtype, [&]<typename T>() {
    T* const data = tensor.mutable_data<T>();
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        data[i] = static_cast<T>(static_cast<int>(engine() & 1));
      } else {
        data[i] = static_cast<T>(normal(engine));
      }
    }
    return absl::OkStatus();
  }));
  return tensor;
}

// `text` as a T, which holds it exactly unless T is a floating-point type.
template <typename T>
absl::StatusOr<T> ParseValue(absl::string_view text) {
  if constexpr (std::is_integral_v<T>) {
    int64_t value = 0;
    const bool fits = absl::SimpleAtoi(text, &value) &&
                      value >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
                      value <= static_cast<int64_t>(std::numeric_limits<T>::max());
    if (!fits) return InvalidArgument("'", text, "' is no ", Name(DTypeOf<T>));
    return static_cast<T>(value);
  } else {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    double value = 0;
    const bool is_number = absl::SimpleAtod(text, &value);
    const T converted = T(static_cast<Wide>(value));
    // What is too large becomes an infinity, which is spelt without digits.
    const bool too_large =
        std::isinf(static_cast<Wide>(converted)) && absl::c_any_of(text, absl::ascii_isdigit);
    if (!is_number || too_large) return InvalidArgument("'", text, "' is no ", Name(DTypeOf<T>));
    return converted;
  }
}

absl::StatusOr<Tensor> FilledFeed(const FeedTarget& target, absl::string_view text) {
  const auto [value_text, dims_text] = SplitColon(text);
  INTERP_ASSIGN_OR_RETURN(const DType dtype, DeclaredDType(target));
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                          DimsOf(target, dims_text, absl::StrCat("fill:", value_text)));
  INTERP_ASSIGN_OR_RETURN(Tensor tensor, MakeFeed(dtype, dims));
  INTERP_RETURN_IF_ERROR(
      WithNumbers(dtype, [&, &value_text = value_text]<typename T>() -> absl::Status {
        INTERP_ASSIGN_OR_RETURN(const T value, ParseValue<T>(value_text));
        std::fill_n(tensor.mutable_data<T>(), tensor.numel(), value);
        return absl::OkStatus();
      }));
  return tensor;
}

// What follows "raw:": a path, which may hold colons, dtype and dims.
struct RawDescription {
  std::string path;
  std::optional<DType> dtype = std::nullopt;
  std::optional<absl::string_view> dims = std::nullopt;
};

absl::StatusOr<RawDescription> SplitRaw(absl::string_view text) {
  const RawDescription whole = {.path = std::string(text)};
  std::error_code ignored;
  if (std::filesystem::is_regular_file(whole.path, ignored)) return whole;
  const size_t before_dims = text.rfind(':');
  if (before_dims == absl::string_view::npos || before_dims == 0) return whole;
  const size_t before_dtype = text.rfind(':', before_dims - 1);
  if (before_dtype == absl::string_view::npos) return whole;
  const absl::string_view name = text.substr(before_dtype + 1, before_dims - before_dtype - 1);
  const std::optional<DType> dtype = DTypeFromName(name);
  if (!dtype.has_value()) {
    return InvalidArgument("'", name, "' is no dtype, expected FILE:DTYPE:DIMS, as in ",
                           "x.bin:float32:1x3x224x224");
  }
  return RawDescription{std::string(text.substr(0, before_dtype)), dtype,
                        text.substr(before_dims + 1)};
}

absl::StatusOr<Tensor> RawFeed(const FeedTarget& target, absl::string_view text, size_t max_bytes) {
  INTERP_ASSIGN_OR_RETURN(const RawDescription raw, SplitRaw(text));
  DType dtype = DType::kUndefined;
  if (raw.dtype.has_value()) {
    dtype = *raw.dtype;
  } else {
    INTERP_ASSIGN_OR_RETURN(dtype, DeclaredDType(target));
  }
  if (SizeOf(dtype) == 0) return InvalidArgument("a feed has no dtype ", Name(dtype));
  const std::string example = absl::StrCat("raw:", raw.path, ":", Name(dtype));
  INTERP_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, DimsOf(target, raw.dims, example));
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(raw.path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return InvalidArgument("'", raw.path, "' is not a regular file");
  }
  const uintmax_t file_bytes = std::filesystem::file_size(raw.path, error);
  if (error) return NotFound("cannot read '", raw.path, "': ", error.message());
  if (file_bytes > max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("'", raw.path, "' holds ", file_bytes,
                                                     " bytes, and at most ", max_bytes,
                                                     " are read (--max-file-memory)"));
  }
  INTERP_ASSIGN_OR_RETURN(Tensor tensor, MakeFeed(dtype, dims));
  if (tensor.size_bytes() != file_bytes) {
    return InvalidArgument("'", raw.path, "' holds ", file_bytes, " bytes, but ",
                           DescribeType(tensor), " needs ", tensor.size_bytes());
  }
  INTERP_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(raw.path, max_bytes));
  if (bytes.size() != tensor.size_bytes()) {
    return InvalidArgument("'", raw.path, "' was changed while it was read");
  }
  char* const data = static_cast<char*>(tensor.mutable_raw_data());
  std::copy(bytes.begin(), bytes.end(), data);
  if (dtype == DType::kBool) NormalizeBools(data, bytes.size());
  return tensor;
}

}  // namespace

absl::StatusOr<Tensor> MakeFeed(DType dtype, const std::vector<int64_t>& dims) {
  if (dims.size() > kMaxRank) {
    return InvalidArgument("a tensor has at most ", kMaxRank, " dims, got ", dims.size());
  }
  Tensor tensor;
  tensor.shape = Shape(dims);
  tensor.dtype = dtype;
  const std::optional<int64_t> count = tensor.shape.CheckedNumel();
  if (!count.has_value() || *count > kMaxFeedElements) {
    return InvalidArgument("feeds that are made up have at most ", kMaxFeedElements,
                           " elements, got ", ToString(tensor.shape));
  }
  INTERP_RETURN_IF_ERROR(tensor.Allocate(SystemAllocator()));
  return tensor;
}

absl::StatusOr<Tensor> ReadFeedValue(const FeedTarget& target, const std::string& description,
                                     uint64_t seed, size_t max_bytes,
                                     std::vector<FedPicture>* pictures) {
  const auto [kind, rest] = SplitColon(description);
  if (kind == "random") return RandomFeed(target, rest, seed);
  if (rest.has_value() && kind == "fill") return FilledFeed(target, *rest);
  if (rest.has_value() && kind == "raw") return RawFeed(target, *rest, max_bytes);
  if (rest.has_value() && kind == "image") return ReadImageFeed(target, *rest, max_bytes, pictures);
  return ReadNpy(description, max_bytes);
}

std::string FileOfFeed(const std::string& description) {
  const auto [kind, rest] = SplitColon(description);
  if (kind == "random" || (rest.has_value() && kind == "fill")) return "";
  if (rest.has_value() && kind == "raw") {
    const absl::StatusOr<RawDescription> raw = SplitRaw(*rest);
    return raw.ok() ? raw->path : "";
  }
  if (rest.has_value() && kind == "image") return FileOfImageFeed(*rest);
  return description;
}

}  // namespace interp
