#include "passes/train/split_stages.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/each_argument.h"
#include "core/gradient.h"
#include "core/op_role.h"
#include "core/program_print.h"
#include "passes/feed_fetch.h"
#include "passes/train/job_schedule.h"

namespace interp {
namespace {

constexpr int32_t kUnknown = -1;

const std::string* DeviceText(const Op& op) {
  const Attr* const attr = op.FindAttr(kDeviceAttr);
  return attr == nullptr ? nullptr : std::get_if<std::string>(&attr->value);
}

// The number of "gpu:1", of any kind of device but the host.
std::optional<int32_t> DeviceOf(const Op& op) {
  const std::string* const text = DeviceText(op);
  if (text == nullptr || IsPutOnHost(op)) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(*text, absl::MaxSplits(':', 1));
  int32_t number = 0;
  if (!absl::SimpleAtoi(parts.second, &number) || number < 0) return std::nullopt;
  return std::min(number, kMaxSegments);
}

class StageSplitter {
 public:
  StageSplitter(const Program& main, int32_t num_segments, const OpRegistry& ops)
      : main_(main),
        ops_(main.blocks[0].ops),
        registry_(ops),
        by_cost_(num_segments > 0),
        made_by_(main.names.size(), kUnknown),
        used_by_(main.names.size(), kUnknown),
        home_(main.names.size(), kUnknown),
        written_in_(main.names.size(), kUnknown),
        read_in_(main.names.size(), kUnknown) {
    split_.num_segments = by_cost_ ? num_segments : CountDeviceSegments(main);
    split_.segment_of.assign(ops_.size(), kUnknown);
    split_.job_of.assign(ops_.size(), kUnknown);
  }

  absl::StatusOr<StageSplit> Run() {
    if (split_.num_segments == 0) {
      return InvalidArgument(
          "no op has an attribute op_device with a number, as in \"gpu:1\": nothing says which "
          "stage computes what; give the number of stages");
    }
    INTERP_RETURN_IF_ERROR(by_cost_ ? CutByCost() : FollowDevices());
    FindForwardOps();
    AssignBackward();
    INTERP_RETURN_IF_ERROR(KeepOrder());
    AssignUpdate();
    return std::move(split_);
  }

 private:
  bool IsForward(size_t i) const {
    const Op& op = ops_[i];
    return !IsFeed(op) && !IsFetch(op) && !IsUpdate(op) && !IsBackward(op);
  }
  int32_t& segment(size_t i) { return split_.segment_of[i]; }
  auto Named(const std::vector<Slot>& slots) const { return EachNamedArgument(main_, slots); }

  // -1 counts as `batch`; 0 for what is not declared.
  double ElementsOf(VarId id) const {
    constexpr double kBatch = 64;
    const int32_t at = positions_[id];
    if (at < 0) return 0;
    double elements = 1;
    for (const int64_t dim : main_.blocks[0].vars[at].dims) {
      elements *= dim < 0 ? kBatch : static_cast<double>(dim);
    }
    return elements;
  }

  double CostOf(const Op& op) const {
    constexpr double kOperationsPerElement = 40;  // in the time that moving one takes
    double out = 0;
    for (const VarId id : Named(op.outputs)) out = std::max(out, ElementsOf(id));
    const OpDef* const def = registry_.Find(op.type);
    std::vector<double> in;
    for (const VarId id : Named(op.inputs)) in.push_back(ElementsOf(id));
    const bool product = def != nullptr && def->precision == PrecisionRule::kReduced;
    if (!product || in.size() < 2 || out == 0) return kOperationsPerElement * std::max(out, 1.0);
    // [m,k] times [k,n] is [m,n].
    std::partial_sort(in.begin(), in.begin() + 2, in.end(), std::greater<>());
    return 2 * out * std::sqrt(in[0] * in[1] / out) + kOperationsPerElement;
  }

  absl::Status CutByCost() {
    positions_ = VarPositions(main_, main_.blocks[0]);
    std::vector<size_t> forward;
    std::vector<double> costs;
    double total = 0;
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!IsForward(i)) continue;
      forward.push_back(i);
      costs.push_back(CostOf(ops_[i]));
      total += costs.back();
    }
    const auto count = static_cast<int64_t>(forward.size());
    if (count < split_.num_segments && split_.num_segments > 1) {
      return InvalidArgument("the forward part has ", count,
                             " ops, expected one or more for each of ", split_.num_segments,
                             " parts of the pipeline");
    }
    double before = 0;
    int32_t now = 0;
    int64_t in_segment = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t segments_left = split_.num_segments - 1 - now;
      // The middle of the op decides where it belongs.
      const double end_of_segment = total * (now + 1) / split_.num_segments;
      const bool full = before + costs[i] / 2 > end_of_segment;
      if (segments_left > 0 && in_segment > 0 && (full || count - i <= segments_left)) {
        ++now;
        in_segment = 0;
      }
      segment(forward[i]) = now;
      ++in_segment;
      before += costs[i];
    }
    return absl::OkStatus();
  }

  absl::Status FollowDevices() {
    std::vector<bool> seen(split_.num_segments, false);
    std::vector<int32_t> made_in(main_.names.size(), kUnknown);
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!IsForward(i)) continue;
      if (const std::optional<int32_t> device = DeviceOf(ops_[i])) {
        segment(i) = *device;
      } else {
        for (const VarId id : Named(ops_[i].inputs)) segment(i) = std::max(segment(i), made_in[id]);
      }
      if (segment(i) < 0) continue;
      seen[segment(i)] = true;
      for (const VarId id : Named(ops_[i].outputs)) made_in[id] = segment(i);
    }
    const auto missing = std::find(seen.begin(), seen.end(), false);
    if (missing != seen.end()) {
      return InvalidArgument("attribute op_device goes up to device ", split_.num_segments - 1,
                             ", but puts no op of the forward part on device ",
                             missing - seen.begin());
    }
    // What nothing comes before goes where it is needed first.
    std::vector<int32_t> needed_in(main_.names.size(), kUnknown);
    for (size_t i = ops_.size(); i-- > 0;) {
      if (!IsForward(i)) continue;
      if (segment(i) < 0) {
        for (const VarId id : Named(ops_[i].outputs))
          segment(i) = std::max(segment(i), needed_in[id]);
        segment(i) = std::max(segment(i), 0);
      }
      for (const VarId id : Named(ops_[i].inputs)) {
        needed_in[id] = needed_in[id] < 0 ? segment(i) : std::min(needed_in[id], segment(i));
      }
    }
    return absl::OkStatus();
  }

  // The forward op that writes a variable first, or of a parameter the first that reads it.
  void FindForwardOps() {
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!IsForward(i)) continue;
      const auto note = [i](std::vector<int32_t>& by, VarId id) {
        if (by[id] < 0) by[id] = static_cast<int32_t>(i);
      };
      for (const VarId id : Named(ops_[i].inputs)) note(used_by_, id);
      for (const VarId id : Named(ops_[i].outputs)) note(made_by_, id);
    }
  }

  // The forward op that `id`, or what it is the gradient of, comes from; -1: none.
  int32_t ForwardOpOf(VarId id) const {
    const absl::string_view name = main_.NameOf(id);
    const size_t end = name.find(kGradientSuffix);
    if (end != absl::string_view::npos) id = main_.Find(name.substr(0, end));
    if (id < 0) return kUnknown;
    return made_by_[id] >= 0 ? made_by_[id] : used_by_[id];
  }

  void AssignBackward() {
    std::vector<int32_t> made_in(main_.names.size(), kUnknown);  // of the backward part
    int32_t last = split_.num_segments - 1;
    for (size_t i = 0; i < ops_.size(); ++i) {
      const Op& op = ops_[i];
      if (IsFeed(op) || IsFetch(op) || IsUpdate(op) || !IsBackward(op)) continue;
      const std::optional<int32_t> device = by_cost_ ? std::nullopt : DeviceOf(op);
      if (device.has_value()) {
        segment(i) = *device;
      } else {
        int32_t of = kUnknown;
        int32_t follows = kUnknown;
        for (const VarId id : Named(op.inputs)) {
          of = std::max(of, ForwardOpOf(id));
          if (made_in[id] < 0) continue;
          follows = follows < 0 ? made_in[id] : std::min(follows, made_in[id]);
        }
        if (op.inputs.empty()) {
          for (const VarId id : Named(op.outputs)) of = ForwardOpOf(id);
        }
        segment(i) = of >= 0 ? segment(of) : follows >= 0 ? follows : last;
      }
      last = segment(i);
      for (const VarId id : Named(op.outputs)) made_in[id] = last;
    }
  }

  // The number of a job of one micro-batch, in their order.
  int32_t JobOf(const Op& op, int32_t segment) const {
    return IsBackward(op) ? Mirrored(segment) : segment;
  }
  // The backward job of a segment, and the segment of a backward job.
  int32_t Mirrored(int32_t number) const { return 2 * split_.num_segments - 1 - number; }

  // Moves ops to the first job after what they need and overwrite.
  absl::Status KeepOrder() {
    for (size_t i = 0; i < ops_.size(); ++i) {
      const Op& op = ops_[i];
      if (IsFeed(op) || IsFetch(op) || IsUpdate(op)) continue;
      const int32_t own = JobOf(op, segment(i));
      int32_t job = own;
      VarId because = kUnknown;
      const auto after = [&](VarId id, int32_t other) {
        if (other > job) job = other, because = id;
      };
      for (const VarId id : Named(op.inputs)) after(id, written_in_[id]);
      for (const VarId id : Named(op.outputs)) after(id, std::max(written_in_[id], read_in_[id]));
      if (job > own && !by_cost_ && DeviceOf(op).has_value()) {
        // Its device has one later job, if any: that of the backward part.
        const int32_t backward = Mirrored(segment(i));
        if (job < split_.num_segments || job > backward) return IsTooEarly(i, because);
        job = backward;
      }
      split_.job_of[i] = job;
      segment(i) = job < split_.num_segments ? job : Mirrored(job);
      for (const VarId id : Named(op.inputs)) read_in_[id] = std::max(read_in_[id], job);
      for (const VarId id : Named(op.outputs)) written_in_[id] = std::max(written_in_[id], job);
    }
    return absl::OkStatus();
  }

  absl::Status IsTooEarly(size_t op, VarId because) {
    return InvalidArgument(DescribeOp(main_, 0, op), ": attribute op_device puts it into segment ",
                           segment(op), " of the network, but it needs '", main_.NameOf(because),
                           "', with which a later job of the pipeline is not done yet");
  }

  // Where the parameter of an op of the update is used, else where the first is that it reads.
  void AssignUpdate() {
    std::vector<bool> persistable(main_.names.size(), false);
    for (const Var& var : main_.blocks[0].vars) persistable[var.id] = var.persistable;
    const auto place = [&](size_t i) {
      for (const VarId id : Named(ops_[i].outputs)) home_[id] = segment(i);
      for (const VarId id : Named(ops_[i].inputs)) {
        if (persistable[id] && home_[id] < 0) home_[id] = segment(i);
      }
    };
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (segment(i) >= 0) place(i);
    }
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (IsFeed(ops_[i]) || IsFetch(ops_[i]) || !IsUpdate(ops_[i])) continue;
      int32_t first = kUnknown;
      int32_t of_parameter = kUnknown;
      for (const VarId id : Named(ops_[i].inputs)) {
        if (home_[id] < 0) continue;
        if (first < 0) first = home_[id];
        if (of_parameter < 0 && persistable[id] && (used_by_[id] >= 0)) of_parameter = home_[id];
      }
      segment(i) = of_parameter >= 0 ? of_parameter : std::max(first, 0);
      place(i);
    }
  }

  const Program& main_;
  const std::vector<Op>& ops_;
  const OpRegistry& registry_;
  const bool by_cost_;
  std::vector<int32_t> positions_;   // by VarId: of declarations
  std::vector<int32_t> made_by_;     // by VarId: forward op, or -1
  std::vector<int32_t> used_by_;     // likewise
  std::vector<int32_t> home_;        // by VarId: segment
  std::vector<int32_t> written_in_;  // by VarId: the last job that writes it
  std::vector<int32_t> read_in_;     // likewise
  StageSplit split_;
};

}  // namespace

bool IsPutOnHost(const Op& op) {
  const std::string* const text = DeviceText(op);
  return text != nullptr && (*text == "cpu" || absl::StartsWith(*text, "cpu:"));
}

int32_t CountDeviceSegments(const Program& main) {
  int32_t count = 0;
  for (const Op& op : main.blocks[0].ops) {
    if (IsFeed(op) || IsFetch(op) || IsUpdate(op)) continue;
    count = std::max(count, DeviceOf(op).value_or(-1) + 1);
  }
  return count;
}

absl::StatusOr<StageSplit> SplitStages(const Program& main, int32_t num_segments,
                                       const OpRegistry& ops) {
  return StageSplitter(main, num_segments, ops).Run();
}

}  // namespace interp
