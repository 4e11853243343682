#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "interpreter/verify/checks.h"
#include "interpreter/verify/conflicts.h"

namespace interp::verify {
namespace {

constexpr absl::string_view kGaveUp =
    "no order was found, and looking on would have taken too long";

ViolationKind KindOf(EdgeKind hazard) {
  switch (hazard) {
    case EdgeKind::kWriteAfterRead:
      return ViolationKind::kWriteAfterRead;
    case EdgeKind::kWriteAfterWrite:
      return ViolationKind::kWriteAfterWrite;
    default:
      return ViolationKind::kReadAfterWrite;
  }
}

// "stream 'h2d' of sim:0"
std::string StreamText(const Plan& plan, InstrId id) {
  const PlanStream& stream = plan.streams[plan.instructions[id].stream];
  return absl::StrCat("stream '", stream.name, "' of ", Name(stream.place));
}

// What is missing between the two. REQUIRES: Before() is not kYes.
std::string MissingOrder(const Plan& plan, RunOrder& order, const Conflict& conflict) {
  const Moment& first = conflict.first;
  const Moment& second = conflict.second;
  const std::string sharing =
      conflict.first_var == conflict.second_var
          ? ""
          : absl::StrCat("; '", plan.vars[conflict.first_var].name, "' and '",
                         plan.vars[conflict.second_var].name, "' may share memory");
  if (order.Before(first, second) == Answer::kUnknown) return absl::StrCat(kGaveUp, sharing);
  if (!second.next_run && order.IssuedBefore(first.id, second.id) != Answer::kYes) {
    return absl::StrCat("no kept edge or path of kept edges makes #", second.id, " run after #",
                        first.id, sharing);
  }
  return absl::StrCat("#", first.id, " is issued first, but nothing makes ",
                      second.completion ? StreamText(plan, second.id) : "the host", " wait until ",
                      StreamText(plan, first.id), " has completed it", sharing);
}

}  // namespace

void CheckConflicts(const Plan& plan, RunOrder& order, VerifyReport& report) {
  // Two instructions often meet in several things; one of them says enough.
  absl::flat_hash_set<std::tuple<InstrId, InstrId, bool>> reported;
  const ConflictCounts counts =
      ForEachConflict(plan, order.has_devices(), [&](const Conflict& conflict) {
        if (order.Before(conflict.first, conflict.second) == Answer::kYes) return;
        const InstrId first = conflict.first.id;
        const InstrId second = conflict.second.id;
        if (!reported.emplace(first, second, conflict.second.next_run).second) return;
        std::string detail;
        if (report.violations.size() < kMaxReportedViolations) {
          detail = MissingOrder(plan, order, conflict);
        }
        Add(report, {KindOf(conflict.kind), first, second, conflict.second_var,
                     conflict.second.next_run, std::move(detail)});
      });
  report.pairs = counts.pairs;
  report.pairs_between_runs = counts.pairs_between_runs;
  report.variables = counts.variables;
  report.shared_storages = counts.shared_storages;
}

}  // namespace interp::verify
