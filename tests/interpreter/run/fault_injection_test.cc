// Every instruction fails in turn, and every allocation: each failure is told, the core is as good
// as before, and nothing leaks.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "core/program_print.h"
#include "interpreter/interpreter_core.h"
#include "tests/testing/differential.h"
#include "tests/testing/matchers.h"
#include "tests/testing/probe.h"
#include "tests/testing/sample.h"

namespace interp::testing::fault_injection_test {
namespace {

const uint64_t kGraphs = SampleOf<uint64_t>(3, 12);

// A core whose runs start from the same parameters, so that one that fails half way does no harm.
class Rig {
 public:
  // Fails the allocation of that number, counted from 1 by runs; 0: none.
  static Rig Make(const Variant& variant, const DifferentialCase& test) {
    Rig rig(test);
    CoreOptions options = variant.options;
    options.fail_allocation = [plan = rig.plan_](size_t /*bytes*/) {
      return ++plan->allocations == plan->fail_at;
    };
    auto core = InterpreterCore::Create(test.program, {}, {}, rig.scope_, options);
    EXPECT_THAT(core, IsOk());
    if (core.ok()) rig.core_ = *std::move(core);
    return rig;
  }

  bool ok() const { return core_ != nullptr; }
  InterpreterCore& core() { return *core_; }

  absl::StatusOr<std::vector<Tensor>> Run(size_t run) {
    for (size_t i = 0; i < test_.params.size(); ++i) {
      scope_->Find(test_.params[i])->tensor = test_.initial[i];
    }
    plan_->allocations = 0;
    return core_->Run(test_.feeds[run], {.random = RandomState{}});  // as the reference
  }
  void FailAllocation(int64_t number) { plan_->fail_at = number; }
  // Whether the last run came to the allocation that fails.
  bool failed_allocation() const { return plan_->allocations >= plan_->fail_at; }

  // Bytes in use on the host and on devices.
  std::pair<size_t, size_t> Level() const {
    return {core_->memory().current_bytes, core_->device_memory().current_bytes};
  }
  // A collector's thread gives memory back a little later. Without garbage collection variables
  // hold what the runs before have left in them, so there is no one level.
  bool ComesBackTo(std::pair<size_t, size_t> level) const {
    if (!core_->plan().options.garbage_collection) return true;
    for (int tries = 0; tries < 10'000 && Level() != level; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return Level() == level;
  }

 private:
  struct AllocationPlan {
    std::atomic<int64_t> allocations{0};
    std::atomic<int64_t> fail_at{0};
  };

  explicit Rig(const DifferentialCase& test) : test_(test), scope_(test.MakeScope()) {}

  const DifferentialCase& test_;
  std::shared_ptr<AllocationPlan> plan_ = std::make_shared<AllocationPlan>();
  std::shared_ptr<Scope> scope_;
  std::unique_ptr<InterpreterCore> core_;
};

// What a run gives when nothing fails, from the parameters' initial values.
struct Healthy {
  std::vector<std::vector<Tensor>> fetches;       // by run
  std::vector<std::pair<size_t, size_t>> levels;  // by run
};

absl::StatusOr<Healthy> RunHealthy(Variant variant, const DifferentialCase& test) {
  variant.options.gc = {};  // which gives back at once what other policies do a little later
  Rig rig = Rig::Make(variant, test);
  if (!rig.ok()) return absl::InternalError("no core");
  Healthy healthy;
  for (size_t run = 0; run < test.feeds.size(); ++run) {
    DifferentialCase single = test;
    single.feeds = {test.feeds[run]};
    INTERP_ASSIGN_OR_RETURN(Expected expected, RunReference(single));
    healthy.fetches.push_back(std::move(expected.fetches[0]));
    INTERP_RETURN_IF_ERROR(rig.Run(run).status());
    healthy.levels.push_back(rig.Level());
  }
  return healthy;
}

// A run after a failure is like any other.
void ExpectRecovery(Rig& rig, size_t run, const Healthy& healthy) {
  {
    const auto fetched = rig.Run(run);
    ASSERT_THAT(fetched, IsOk());
    ASSERT_TRUE(SameBits(*fetched, healthy.fetches[run]));
  }
  ASSERT_TRUE(rig.ComesBackTo(healthy.levels[run]))
      << rig.Level().first << " and " << rig.Level().second << " bytes instead of "
      << healthy.levels[run].first << " and " << healthy.levels[run].second;
}

void FailEveryOp(const Variant& variant, const DifferentialCase& test) {
  Rig rig = Rig::Make(variant, test);
  ASSERT_TRUE(rig.ok());
  const auto healthy = RunHealthy(variant, test);
  ASSERT_THAT(healthy, IsOk());
  Probe probe;
  ASSERT_THAT(rig.Run(0), IsOk());  // computes what later runs do not compute again
  probe.TakeTrace();
  // What a run comes to depends on its feeds: branches and loops. The last run has no rows.
  std::array<std::set<int32_t>, 4> reached;
  for (size_t run = 0; run < reached.size(); ++run) {
    ASSERT_THAT(rig.Run(run), IsOk());
    const std::vector<int32_t> trace = probe.TakeTrace();
    reached[run].insert(trace.begin(), trace.end());
  }
  for (const int32_t tag : reached[0]) {
    SCOPED_TRACE(absl::StrCat("failing at tag ", tag));
    const size_t wanted = static_cast<size_t>(tag) % reached.size();
    const size_t run = reached[wanted].contains(tag) ? wanted : 0;
    probe.FailAt(tag);
    ASSERT_THAT(rig.Run(run),
                FailsWith(absl::StatusCode::kInternal, absl::StrCat("made to fail at tag ", tag)));
    probe.FailNowhere();
    ExpectRecovery(rig, run, *healthy);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

void FailEveryAllocation(const Variant& variant, const DifferentialCase& test) {
  Rig rig = Rig::Make(variant, test);
  ASSERT_TRUE(rig.ok());
  const auto healthy = RunHealthy(variant, test);
  ASSERT_THAT(healthy, IsOk());
  // Twice with the same rows: the first run infers shapes, the second knows them.
  for (int64_t number = 1;; ++number) {
    SCOPED_TRACE(absl::StrCat("failing allocation ", number));
    const size_t run = static_cast<size_t>(number / 2) % 4;
    rig.FailAllocation(number);
    const absl::Status status = rig.Run(run).status();
    const bool failed = rig.failed_allocation();
    rig.FailAllocation(0);
    if (!failed) {
      ASSERT_THAT(status, IsOk());
      ASSERT_GT(number, 1);
      return;
    }
    ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    ExpectRecovery(rig, run, *healthy);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

template <typename Check>
void ForAllVariants(Check check) {
  for (const uint64_t seed : Seeds(kGraphs)) {
    RandomGraphOptions options{.num_ops = 10 + static_cast<int>(seed * 5 % 20)};
    options.num_devices = static_cast<int>(seed % 3);
    options.max_depth = static_cast<int>(seed / 3 % 4);
    const DifferentialCase test = MakeCase(seed, options);
    for (const Variant& variant : seed % 3 == 0 ? HostVariants() : DeviceVariants(seed)) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", variant.name));
      check(variant, test);
      ASSERT_FALSE(::testing::Test::HasFailure()) << ToText(test.program);
    }
  }
}

// The device is lost at more and more of its work: the run and all later ones tell so, nothing
// hangs, and what lay on it is given back.
void LoseTheDevice(Variant variant, const DifferentialCase& test) {
  for (int64_t lose_at = 1; lose_at < 1000; lose_at += 1 + lose_at / 3) {
    SCOPED_TRACE(absl::StrCat("lost at ", lose_at));
    variant.options.sim.lose_at = lose_at;
    const std::shared_ptr<Scope> scope = test.MakeScope();
    const auto core = InterpreterCore::Create(test.program, {}, {}, scope, variant.options);
    ASSERT_THAT(core, IsOk());
    absl::Status status;
    for (size_t run = 0; run < test.feeds.size() && status.ok(); ++run) {
      status = (*core)->Run(test.feeds[run], {.random = RandomState{}}).status();
    }
    if (status.ok()) return;  // there is not that much work
    ASSERT_THAT(status, FailsWith(absl::StatusCode::kUnavailable, "is lost (as asked for"));
    ASSERT_THAT((*core)->Run(test.feeds[0], {.random = RandomState{}}),
                FailsWith(absl::StatusCode::kUnavailable, "is lost (as asked for"));
    ASSERT_THAT((*core)->Clone()->Run(test.feeds[0]),
                FailsWith(absl::StatusCode::kUnavailable, "is lost (as asked for"));
  }
}

TEST(FaultInjectionTest, ALostDevice) {
  for (const uint64_t seed : Seeds(kGraphs)) {
    RandomGraphOptions options{.num_ops = 10 + static_cast<int>(seed * 5 % 20)};
    options.num_devices = 1 + static_cast<int>(seed % 2);
    options.max_depth = static_cast<int>(seed / 3 % 4);
    const DifferentialCase test = MakeCase(seed, options);
    for (const Variant& variant : DeviceVariants(seed)) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", variant.name));
      LoseTheDevice(variant, test);
      ASSERT_FALSE(::testing::Test::HasFailure()) << ToText(test.program);
    }
  }
}

TEST(FaultInjectionTest, EveryInstructionInTurn) { ForAllVariants(FailEveryOp); }

TEST(FaultInjectionTest, EveryAllocationInTurn) { ForAllVariants(FailEveryAllocation); }

}  // namespace
}  // namespace interp::testing::fault_injection_test
