// RunOrder: what a run of a plan orders for certain, whatever threads and streams do.
//
// An instruction of the host happens at one moment. One of a device has two: a thread issues it,
// and later it completes on its stream. Certain is only what a run obeys:
//   - a kept edge a -> b: b is issued (or happens, on the host) after a is issued (or has
//   happened);
//   - an instruction completes after it is issued;
//   - of two instructions of one stream, the one issued first for certain completes first;
//   - a wait for an event: what the waiter does comes after the recorder has completed. That is the
//     waiter's completion where only its stream waits, else its issue. Events hold their latest
//     record: a wait counts only when the recorder is issued before it for certain;
//   - all that the host does in one run comes before all it does in the next. Work of devices may
//     still be under way: it reaches the next run through the order of its stream, or through a
//     wait for the previous run's record.
// Everything is worked out from successors, streams, waits and records alone; Edge::shrunk and the
// trace order prove nothing here.
#pragma once

#include <string>
#include <vector>

#include "interpreter/plan/plan.h"
#include "interpreter/verify/reachability.h"

namespace interp::verify {

// When an instruction does something, in one of two consecutive runs.
struct Moment {
  InstrId id = -1;
  bool completion = false;  // of an instruction of a device; else its issue
  bool next_run = false;
  bool operator==(const Moment&) const = default;
};

struct BadWait {
  InstrId waiter = -1;
  InstrId recorder = -1;
  std::string why;  // it waits for nothing
};

class RunOrder {
 public:
  // `plan` must outlive the object. REQUIRES: CheckPlanStructure has passed.
  explicit RunOrder(const Plan& plan);

  bool has_devices() const { return has_devices_; }

  // Whether `a` comes before `b` for certain; a moment comes before itself. kUnknown: the plan is
  // so large and so badly ordered that looking on would take too long.
  Answer Before(const Moment& a, const Moment& b);
  // The same for the issue of two instructions in one run.
  Answer IssuedBefore(InstrId a, InstrId b) { return issues_.Reaches(a, b); }

  // Waits that order nothing, and those that do.
  const std::vector<BadWait>& bad_waits() const { return bad_waits_; }
  int64_t num_waits() const { return static_cast<int64_t>(waits_.size()); }

  // How many kept edges, or waits, others imply: all of them could go at once. At least as many
  // when
  // `*all` becomes false.
  int64_t CountRedundantEdges(bool* all);
  int64_t CountRedundantWaits(bool* all);

 private:
  using NodeId = Reachability::NodeId;
  struct Wait {
    Moment recorded;
    Moment waits;  // of the next run
  };

  NodeId NodeOf(const Moment& moment) const;
  bool OnDevice(InstrId id) const { return !plan_.instructions[id].place.on_host(); }
  std::string WhyBad(InstrId waiter, const EventWait& wait);
  void CheckWaits();
  std::vector<Reachability::Edge> CompletionEdges();
  void AddEdgesWithinRun(bool next_run, std::vector<Reachability::Edge>& edges) const;
  void AddEdgesBetweenRuns(std::vector<Reachability::Edge>& edges) const;
  void OrderStreams();
  void OrderStream(const std::vector<InstrId>& on_stream, int64_t& budget);
  InstrId LastIssuedBefore(absl::Span<const InstrId> chain, InstrId id);

  const Plan& plan_;
  const bool has_devices_;
  Reachability issues_;  // by InstrId
  std::vector<BadWait> bad_waits_;
  std::vector<Wait> waits_;
  std::vector<std::pair<InstrId, InstrId>> on_one_stream_;  // completions in order
  bool streams_incomplete_ = false;                         // there may be more of these
  // Of both moments of all instructions in two runs; without devices `issues_` tells all.
  Reachability completions_;
};

}  // namespace interp::verify
