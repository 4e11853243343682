#include "interpreter/run/scheduler_kind.h"

namespace interp {
namespace {

struct KindName {
  SchedulerKind kind;
  absl::string_view name;
};
constexpr KindName kKinds[] = {
    {SchedulerKind::kAuto, "auto"},     {SchedulerKind::kTrace, "trace"},
    {SchedulerKind::kSerial, "serial"}, {SchedulerKind::kAsync, "async"},
    {SchedulerKind::kEngine, "engine"}, {SchedulerKind::kShuffle, "shuffle"}};

}  // namespace

absl::string_view Name(SchedulerKind kind) { return kKinds[static_cast<int>(kind)].name; }

absl::StatusOr<SchedulerKind> SchedulerFromName(absl::string_view name) {
  for (const KindName& kind : kKinds) {
    if (kind.name == name) return kind.kind;
  }
  return InvalidArgument("no scheduler is named '", name,
                         "'; there are: auto trace serial async engine shuffle");
}

}  // namespace interp
