#include "interpreter/inspect/stall_watch.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/steady_clock.h"
#include "core/base/terminal_text.h"
#include "interpreter/plan/instruction_name.h"

namespace interp {
namespace {

constexpr size_t kMaxEdgesOfLine = 3;

std::string Duration(int64_t ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  return ns < kSecond ? absl::StrFormat("%d ms", ns / 1'000'000)
                      : absl::StrFormat("%.1f s", static_cast<double>(ns) / kSecond);
}

// "op #11 matmul_v2 -> y", with "block 2, " in front where it is not the main one.
std::string Describe(const InstrRef& ref) {
  const Plan& plan = *ref.plan;
  const Instruction& instruction = plan.instructions[ref.id];
  std::string text = plan.block == 0 ? "" : absl::StrCat("block ", plan.block, ", ");
  absl::StrAppend(&text, NameOf(instruction));
  for (const VarId var : instruction.outputs) {
    if (var < 0) continue;
    absl::StrAppend(&text, " -> ", plan.vars[var].name);
    break;
  }
  return text;
}

// A heading and at most `max_lines` of `lines`; nothing without lines.
std::string Section(const char* heading, const std::vector<std::string>& lines, int max_lines) {
  if (lines.empty()) return "";
  std::string text = absl::StrCat(heading, "\n");
  const size_t shown = std::min(lines.size(), static_cast<size_t>(std::max(1, max_lines)));
  for (size_t i = 0; i < shown; ++i) absl::StrAppend(&text, "  ", TerminalLine(lines[i]), "\n");
  if (shown < lines.size()) absl::StrAppend(&text, "  and ", lines.size() - shown, " more\n");
  return text;
}

}  // namespace

StallWatch::StallWatch(absl::Span<const Plan> plans, const StallWatchOptions& options)
    : plans_(plans),
      options_(options),
      count_(CountInstructions(plans)),
      progress_(std::make_unique<Progress[]>(static_cast<size_t>(count_))),
      thread_([this] { Watch(); }) {}

StallWatch::~StallWatch() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void StallWatch::OnRunStart(int64_t now_ns) {
  for (int32_t i = 0; i < count_; ++i) {
    progress_[i].state.store(State::kNotStarted, std::memory_order_relaxed);
  }
  last_wait_.state.store(State::kNotStarted, std::memory_order_relaxed);
  last_ns_.store(now_ns, std::memory_order_relaxed);
  running_.store(true, std::memory_order_release);  // what is above belongs to this run
}

void StallWatch::OnRunEnd(int64_t /*now_ns*/) { running_.store(false, std::memory_order_relaxed); }

void StallWatch::Note(int32_t instruction, State state, int worker, int32_t event, int64_t now_ns) {
  Progress& progress = instruction >= 0 ? progress_[instruction] : last_wait_;
  progress.worker.store(worker, std::memory_order_relaxed);
  progress.event.store(event, std::memory_order_relaxed);
  progress.since_ns.store(now_ns, std::memory_order_relaxed);
  progress.state.store(state, std::memory_order_release);  // after what it goes with
  last_ns_.store(now_ns, std::memory_order_relaxed);
}

void StallWatch::OnStart(int32_t instruction, int worker, int64_t now_ns) {
  Note(instruction, State::kRunning, worker, /*event=*/-1, now_ns);
}
void StallWatch::OnInstruction(int32_t instruction, int worker, int64_t /*start_ns*/,
                               int64_t end_ns) {
  Note(instruction, State::kDone, worker, /*event=*/-1, end_ns);
}
void StallWatch::OnWaitStart(int32_t instruction, int32_t event, int worker, int64_t now_ns) {
  Note(instruction, State::kWaitsForDevice, worker, event, now_ns);
}
void StallWatch::OnWaitEnd(int32_t instruction, int32_t event, int worker, int64_t /*start_ns*/,
                           int64_t end_ns) {
  Note(instruction, State::kNotStarted, worker, event, end_ns);
}

void StallWatch::Watch() {
  const int64_t after_ns = options_.after.count();
  int64_t reported_ns = -1;  // the progress after which a stall has been reported
  int64_t sleep_ns = after_ns;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::nanoseconds(sleep_ns), [this] { return stop_; })) {
    sleep_ns = after_ns;
    if (!running_.load(std::memory_order_acquire)) continue;
    const int64_t last_ns = last_ns_.load(std::memory_order_relaxed);
    const int64_t idle_ns = SteadyNowNs() - last_ns;
    if (idle_ns < after_ns) {
      sleep_ns = after_ns - idle_ns;
    } else if (last_ns != reported_ns) {
      reported_ns = last_ns;
      lock.unlock();  // reporting may take long
      const std::string report = Report(last_ns + idle_ns);
      if (options_.report != nullptr) {
        options_.report(report);
      } else {
        std::fputs(report.c_str(), stderr);
      }
      lock.lock();
    }
  }
}

StallWatch::Progress& StallWatch::ProgressOf(const InstrRef& ref) const {
  return progress_[ref.plan->first_number + ref.id];
}

StallWatch::State StallWatch::StateOf(const InstrRef& ref) const {
  return ProgressOf(ref).state.load(std::memory_order_acquire);
}

// Of the main block and of those whose op runs. An instruction of a loop that is done belongs to
// the trip in progress or to the one before: the report cannot tell.
std::vector<const Plan*> StallWatch::ActivePlans() const {
  std::vector<const Plan*> active = {&plans_[0]};
  for (size_t at = 0; at < active.size(); ++at) {
    const Plan& plan = *active[at];
    for (size_t i = 0; i < plan.instructions.size(); ++i) {
      const int32_t block = plan.instructions[i].sub_block;
      if (block < 0 || StateOf({&plan, static_cast<InstrId>(i)}) != State::kRunning) continue;
      active.push_back(&plans_[block]);
    }
  }
  return active;
}

std::string StallWatch::Report(int64_t now_ns) const {
  int done = 0;
  int running = 0;
  int count = 0;
  for (const Plan* plan : ActivePlans()) {
    for (InstrId id = 0; id < static_cast<InstrId>(plan->instructions.size()); ++id, ++count) {
      done += StateOf({plan, id}) == State::kDone ? 1 : 0;
      running += StateOf({plan, id}) == State::kRunning ? 1 : 0;
    }
  }
  return absl::StrCat("no instruction has started or ended for ",
                      Duration(now_ns - last_ns_.load(std::memory_order_relaxed)), ": ", done,
                      " of ", count, " done, ", running, " running, ", count - done - running,
                      " waiting\n", ReportRunning(now_ns), ReportDeviceWaits(now_ns),
                      ReportWaiting(), ReportReady());
}

// Those that most others wait for first.
std::string StallWatch::ReportRunning(int64_t now_ns) const {
  struct Blocker {
    InstrRef ref;
    int followers;
  };
  std::vector<Blocker> blockers;
  for (const Plan* plan : ActivePlans()) {
    for (InstrId id = 0; id < static_cast<InstrId>(plan->instructions.size()); ++id) {
      const InstrRef ref{plan, id};
      if (StateOf(ref) == State::kRunning) blockers.push_back({ref, CountFollowers(ref)});
    }
  }
  std::stable_sort(blockers.begin(), blockers.end(),
                   [](const Blocker& a, const Blocker& b) { return a.followers > b.followers; });
  std::vector<std::string> lines;
  for (const Blocker& blocker : blockers) {
    const Progress& progress = ProgressOf(blocker.ref);
    lines.push_back(absl::StrCat(Describe(blocker.ref), ", worker ", progress.worker.load(),
                                 ", for ", Duration(now_ns - progress.since_ns.load()), "; ",
                                 blocker.followers, " wait for it"));
  }
  return Section("running", lines, options_.max_lines);
}

// How many instructions of its block cannot start before `ref` has ended.
int StallWatch::CountFollowers(const InstrRef& ref) const {
  std::vector<bool> seen(ref.plan->instructions.size(), false);
  std::vector<InstrId> open = {ref.id};
  int count = 0;
  while (!open.empty()) {
    const InstrId at = open.back();
    open.pop_back();
    for (const InstrId next : ref.plan->successors[at]) {
      if (seen[next]) continue;
      seen[next] = true;
      open.push_back(next);
      ++count;
    }
  }
  return count;
}

std::string StallWatch::ReportDeviceWaits(int64_t now_ns) const {
  std::vector<std::string> lines;
  const auto add = [&](const Progress& progress, const Plan& plan, const std::string& who) {
    const int32_t event = progress.event.load();
    const InstrId recorder = event >= 0 ? plan.events[event].recorder : -1;
    const std::string what =
        recorder < 0
            ? "all work of the devices"
            : absl::StrCat("event ", event, ", recorded after ", Describe({&plan, recorder}),
                           " on ", Name(plan.instructions[recorder].place), " ",
                           plan.streams[plan.instructions[recorder].stream].name);
    lines.push_back(absl::StrCat(who, ", worker ", progress.worker.load(), ": for ", what, ", for ",
                                 Duration(now_ns - progress.since_ns.load())));
  };
  for (const Plan* plan : ActivePlans()) {
    for (InstrId id = 0; id < static_cast<InstrId>(plan->instructions.size()); ++id) {
      const InstrRef ref{plan, id};
      if (StateOf(ref) == State::kWaitsForDevice) add(ProgressOf(ref), *plan, Describe(ref));
    }
  }
  if (last_wait_.state.load(std::memory_order_acquire) == State::kWaitsForDevice) {
    add(last_wait_, plans_[0], "the end of the run");
  }
  return Section("waiting for a device", lines, options_.max_lines);
}

// By InstrId: edges from instructions that are not done to one that has not started.
std::vector<std::vector<const Edge*>> StallWatch::UnmetEdges(const Plan& plan) const {
  std::vector<std::vector<const Edge*>> unmet(plan.instructions.size());
  for (const Edge& edge : plan.edges) {
    if (edge.shrunk || StateOf({&plan, edge.to}) != State::kNotStarted) continue;
    if (StateOf({&plan, edge.from}) != State::kDone) unmet[edge.to].push_back(&edge);
  }
  return unmet;
}

// Those that wait only for what runs first: the others wait for them.
std::string StallWatch::ReportWaiting() const {
  std::vector<std::string> direct;
  std::vector<std::string> indirect;
  for (const Plan* plan : ActivePlans()) {
    const std::vector<std::vector<const Edge*>> unmet = UnmetEdges(*plan);
    for (size_t i = 0; i < unmet.size(); ++i) {
      if (unmet[i].empty()) continue;
      std::string line = absl::StrCat(Describe({plan, static_cast<InstrId>(i)}), ":");
      bool only_started = true;
      for (size_t k = 0; k < unmet[i].size(); ++k) {
        const Edge& edge = *unmet[i][k];
        only_started = only_started && StateOf({plan, edge.from}) != State::kNotStarted;
        if (k >= kMaxEdgesOfLine) continue;
        absl::StrAppend(&line, k == 0 ? " for " : ", ", NameOf(plan->instructions[edge.from]), " (",
                        Name(edge.kind), edge.var >= 0 ? " " : "",
                        edge.var >= 0 ? plan->vars[edge.var].name : "", ")");
      }
      if (unmet[i].size() > kMaxEdgesOfLine) {
        absl::StrAppend(&line, " and ", unmet[i].size() - kMaxEdgesOfLine, " more");
      }
      (only_started ? direct : indirect).push_back(std::move(line));
    }
  }
  direct.insert(direct.end(), std::make_move_iterator(indirect.begin()),
                std::make_move_iterator(indirect.end()));
  return Section("waiting", direct, options_.max_lines);
}

// Nothing is in their way but that no thread takes them: workers are busy, or the run is to stop.
std::string StallWatch::ReportReady() const {
  std::vector<std::string> lines;
  for (const Plan* plan : ActivePlans()) {
    const std::vector<std::vector<const Edge*>> unmet = UnmetEdges(*plan);
    for (size_t i = 0; i < unmet.size(); ++i) {
      const InstrRef ref{plan, static_cast<InstrId>(i)};
      if (unmet[i].empty() && StateOf(ref) == State::kNotStarted) lines.push_back(Describe(ref));
    }
  }
  return Section("ready, not started", lines, options_.max_lines);
}

}  // namespace interp
