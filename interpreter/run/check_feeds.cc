#include "interpreter/run/check_feeds.h"

#include <algorithm>
#include <cstdint>

namespace interp {
namespace {

// -1, as any negative dim, fits every size.
bool FitsDeclared(const Shape& shape, const Shape& declared) {
  return std::equal(shape.begin(), shape.end(), declared.begin(), declared.end(),
                    [](int64_t dim, int64_t want) { return want < 0 || dim == want; });
}

}  // namespace

absl::Status CheckFeeds(absl::Span<const Tensor> feeds, const std::vector<FeedSpec>& specs,
                        bool check_shapes) {
  if (feeds.size() != specs.size()) {
    return InvalidArgument("got ", feeds.size(), " feeds, expected ", specs.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    const Tensor& fed = feeds[i];
    const FeedSpec& spec = specs[i];
    const auto mismatch = [&](absl::string_view hint = "") {
      return InvalidArgument("feed '", spec.name, "' is ", DescribeType(fed), ", expected ",
                             Name(spec.dtype), ToString(spec.shape), hint);
    };
    if (spec.dtype != DType::kUndefined && fed.dtype != spec.dtype) return mismatch();
    if (fed.layout != Layout::kPlain || !fed.shape.CheckedNumel().has_value()) return mismatch();
    if (fed.numel() > 0 && !fed.has_memory()) {
      return InvalidArgument("feed '", spec.name, "' has no memory");
    }
    if (absl::Status lod = CheckLod(fed.lod, fed.shape); !lod.ok()) {
      return Annotate(lod, absl::StrCat("feed '", spec.name, "'"));
    }
    if (FitsDeclared(fed.shape, spec.shape)) continue;
    if (spec.check_shape) {
      return mismatch("; the program itself asks for this check (need_check_feed)");
    }
    // Programs also declare no dims where they know none.
    if (!check_shapes || spec.overwritten || spec.shape.rank() == 0) continue;
    return mismatch(
        "; if the program declares the wrong shape, turn this check off (check_feed_shapes, "
        "--no-check-shape)");
  }
  return absl::OkStatus();
}

bool HasOtherBools(const Tensor& fed) {
  if (fed.dtype != DType::kBool || !fed.has_memory() || !fed.place().on_host()) return false;
  const auto* bytes = static_cast<const uint8_t*>(fed.raw_data());
  uint8_t all = 0;
  for (int64_t i = 0; i < fed.numel(); ++i) all |= bytes[i];
  return all > 1;
}

absl::StatusOr<Tensor> WithBoolsOf0And1(const Tensor& fed) {
  INTERP_ASSIGN_OR_RETURN(Tensor copy, fed.Clone(SystemAllocator()));
  auto* const bytes = static_cast<uint8_t*>(copy.mutable_raw_data());
  for (int64_t i = 0; i < copy.numel(); ++i) bytes[i] = bytes[i] != 0 ? 1 : 0;
  return copy;
}

}  // namespace interp
