#include "interpreter/stall_watch.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/steady_clock.h"
#include "interpreter/instruction_name.h"

namespace interp {
namespace {

constexpr size_t kMaxEdgesOfLine = 3;

std::string Duration(int64_t ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  return ns < kSecond ? absl::StrFormat("%d ms", ns / 1'000'000)
                      : absl::StrFormat("%.1f s", static_cast<double>(ns) / kSecond);
}

// "op #11 matmul_v2 -> y"
std::string Describe(const Plan& plan, InstrId id) {
  const Instruction& instruction = plan.instructions[id];
  std::string text = NameOf(instruction);
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
  for (size_t i = 0; i < shown; ++i) absl::StrAppend(&text, "  ", lines[i], "\n");
  if (shown < lines.size()) absl::StrAppend(&text, "  and ", lines.size() - shown, " more\n");
  return text;
}

}  // namespace

StallWatch::StallWatch(const Plan& plan, const StallWatchOptions& options)
    : plan_(plan),
      options_(options),
      progress_(std::make_unique<Progress[]>(plan.instructions.size())),
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
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    progress_[i].state.store(State::kNotStarted, std::memory_order_relaxed);
  }
  last_wait_.state.store(State::kNotStarted, std::memory_order_relaxed);
  last_ns_.store(now_ns, std::memory_order_relaxed);
  running_.store(true, std::memory_order_release);  // what is above belongs to this run
}

void StallWatch::OnRunEnd(int64_t /*now_ns*/) { running_.store(false, std::memory_order_relaxed); }

void StallWatch::Note(InstrId instruction, State state, int worker, int32_t event, int64_t now_ns) {
  Progress& progress = instruction >= 0 ? progress_[instruction] : last_wait_;
  progress.worker.store(worker, std::memory_order_relaxed);
  progress.event.store(event, std::memory_order_relaxed);
  progress.since_ns.store(now_ns, std::memory_order_relaxed);
  progress.state.store(state, std::memory_order_release);  // after what it goes with
  last_ns_.store(now_ns, std::memory_order_relaxed);
}

void StallWatch::OnStart(InstrId instruction, int worker, int64_t now_ns) {
  Note(instruction, State::kRunning, worker, /*event=*/-1, now_ns);
}
void StallWatch::OnInstruction(InstrId instruction, int worker, int64_t /*start_ns*/,
                               int64_t end_ns) {
  Note(instruction, State::kDone, worker, /*event=*/-1, end_ns);
}
void StallWatch::OnWaitStart(InstrId instruction, int32_t event, int worker, int64_t now_ns) {
  Note(instruction, State::kWaitsForDevice, worker, event, now_ns);
}
void StallWatch::OnWaitEnd(InstrId instruction, int32_t event, int worker, int64_t /*start_ns*/,
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

StallWatch::State StallWatch::StateOf(InstrId id) const {
  return progress_[id].state.load(std::memory_order_acquire);
}

std::string StallWatch::Report(int64_t now_ns) const {
  int done = 0;
  int running = 0;
  const auto count = static_cast<int>(plan_.instructions.size());
  for (InstrId id = 0; id < count; ++id) {
    done += StateOf(id) == State::kDone ? 1 : 0;
    running += StateOf(id) == State::kRunning ? 1 : 0;
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
    InstrId id;
    int followers;
  };
  std::vector<Blocker> blockers;
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    const auto id = static_cast<InstrId>(i);
    if (StateOf(id) == State::kRunning) blockers.push_back({id, CountFollowers(id)});
  }
  std::stable_sort(blockers.begin(), blockers.end(),
                   [](const Blocker& a, const Blocker& b) { return a.followers > b.followers; });
  std::vector<std::string> lines;
  for (const Blocker& blocker : blockers) {
    const Progress& progress = progress_[blocker.id];
    lines.push_back(absl::StrCat(Describe(plan_, blocker.id), ", worker ", progress.worker.load(),
                                 ", for ", Duration(now_ns - progress.since_ns.load()), "; ",
                                 blocker.followers, " wait for it"));
  }
  return Section("running", lines, options_.max_lines);
}

// How many instructions cannot start before `id` has ended.
int StallWatch::CountFollowers(InstrId id) const {
  std::vector<bool> seen(plan_.instructions.size(), false);
  std::vector<InstrId> open = {id};
  int count = 0;
  while (!open.empty()) {
    const InstrId at = open.back();
    open.pop_back();
    for (const InstrId next : plan_.successors[at]) {
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
  const auto add = [&](const Progress& progress, const std::string& who) {
    const int32_t event = progress.event.load();
    const InstrId recorder = event >= 0 ? plan_.events[event].recorder : -1;
    const std::string what =
        recorder < 0 ? "all work of the devices"
                     : absl::StrCat("event ", event, ", recorded after ", Describe(plan_, recorder),
                                    " on ", Name(plan_.instructions[recorder].place), " ",
                                    plan_.streams[plan_.instructions[recorder].stream].name);
    lines.push_back(absl::StrCat(who, ", worker ", progress.worker.load(), ": for ", what, ", for ",
                                 Duration(now_ns - progress.since_ns.load())));
  };
  for (size_t i = 0; i < plan_.instructions.size(); ++i) {
    const auto id = static_cast<InstrId>(i);
    if (StateOf(id) == State::kWaitsForDevice) add(progress_[id], Describe(plan_, id));
  }
  if (last_wait_.state.load(std::memory_order_acquire) == State::kWaitsForDevice) {
    add(last_wait_, "the end of the run");
  }
  return Section("waiting for a device", lines, options_.max_lines);
}

// By InstrId: edges from instructions that are not done to one that has not started.
std::vector<std::vector<const Edge*>> StallWatch::UnmetEdges() const {
  std::vector<std::vector<const Edge*>> unmet(plan_.instructions.size());
  for (const Edge& edge : plan_.edges) {
    if (edge.shrunk || StateOf(edge.to) != State::kNotStarted) continue;
    if (StateOf(edge.from) != State::kDone) unmet[edge.to].push_back(&edge);
  }
  return unmet;
}

// Those that wait only for what runs first: the others wait for them.
std::string StallWatch::ReportWaiting() const {
  const std::vector<std::vector<const Edge*>> unmet = UnmetEdges();
  std::vector<std::string> direct;
  std::vector<std::string> indirect;
  for (size_t i = 0; i < unmet.size(); ++i) {
    if (unmet[i].empty()) continue;
    std::string line = absl::StrCat(Describe(plan_, static_cast<InstrId>(i)), ":");
    bool only_started = true;
    for (size_t k = 0; k < unmet[i].size(); ++k) {
      const Edge& edge = *unmet[i][k];
      only_started = only_started && StateOf(edge.from) != State::kNotStarted;
      if (k >= kMaxEdgesOfLine) continue;
      absl::StrAppend(&line, k == 0 ? " for " : ", ", NameOf(plan_.instructions[edge.from]), " (",
                      Name(edge.kind));
      absl::StrAppend(&line, edge.var >= 0 ? " " : "",
                      edge.var >= 0 ? plan_.vars[edge.var].name : "", ")");
    }
    if (unmet[i].size() > kMaxEdgesOfLine) {
      absl::StrAppend(&line, " and ", unmet[i].size() - kMaxEdgesOfLine, " more");
    }
    (only_started ? direct : indirect).push_back(std::move(line));
  }
  direct.insert(direct.end(), std::make_move_iterator(indirect.begin()),
                std::make_move_iterator(indirect.end()));
  return Section("waiting", direct, options_.max_lines);
}

// Nothing is in their way but that no thread takes them: workers are busy, or the run is to stop.
std::string StallWatch::ReportReady() const {
  const std::vector<std::vector<const Edge*>> unmet = UnmetEdges();
  std::vector<std::string> lines;
  for (size_t i = 0; i < unmet.size(); ++i) {
    const auto id = static_cast<InstrId>(i);
    if (unmet[i].empty() && StateOf(id) == State::kNotStarted) {
      lines.push_back(Describe(plan_, id));
    }
  }
  return Section("ready, not started", lines, options_.max_lines);
}

}  // namespace interp
