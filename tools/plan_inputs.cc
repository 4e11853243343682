#include "tools/plan_inputs.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"

namespace interp {

absl::StatusOr<std::vector<NamedTensor>> OrderFeeds(const Plan& plan,
                                                    const std::vector<NamedTensor>& feeds) {
  std::vector<NamedTensor> ordered;
  std::vector<std::string> missing;
  for (const FeedSpec& spec : plan.feeds) {
    const auto found = std::find_if(feeds.begin(), feeds.end(),
                                    [&](const NamedTensor& f) { return f.first == spec.name; });
    if (found == feeds.end()) {
      missing.push_back(spec.name);
    } else {
      ordered.push_back(*found);
    }
  }
  if (!missing.empty()) {
    return InvalidArgument("the plan needs feeds that are missing: ", absl::StrJoin(missing, " "));
  }
  for (const NamedTensor& feed : feeds) {
    const bool known = std::any_of(plan.feeds.begin(), plan.feeds.end(),
                                   [&](const FeedSpec& spec) { return spec.name == feed.first; });
    if (!known) {
      return InvalidArgument("the plan does not feed '", feed.first,
                             "': feeds are decided when a plan is compiled");
    }
  }
  return ordered;
}

PlaceKind DeviceKindOf(const Model& model, const CoreOptions& options) {
  if (!model.compiled.has_value()) return options.plan.place.kind;
  PlaceKind kind = PlaceKind::kCpu;
  for (const PlanStream& stream : model.compiled->main().streams) {
    if (kind != PlaceKind::kCuda && !stream.place.on_host()) kind = stream.place.kind;
  }
  return kind;
}

absl::Status CheckFetched(const Plan& plan, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (absl::c_linear_search(plan.fetches, name)) continue;
    return InvalidArgument("the plan does not fetch '", name,
                           "', only: ", absl::StrJoin(plan.fetches, " "),
                           "; fetches are decided when a plan is compiled");
  }
  return absl::OkStatus();
}

}  // namespace interp
