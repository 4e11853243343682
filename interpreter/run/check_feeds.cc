#include "interpreter/run/check_feeds.h"

#include <algorithm>

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

}  // namespace interp
