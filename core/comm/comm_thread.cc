#include "core/comm/comm_thread.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/catching.h"
#include "core/comm/short_slice.h"

namespace interp {
namespace {

constexpr int kSpins = 200;
constexpr int kYields = 200;
constexpr int kShortestSleepUs = 50;
constexpr int kLongestSleepUs = 1000;
// Rounds beyond these, in which it sleeps the longest for long, are not counted: a thread that
// listens is idle for weeks.
constexpr int kMostIdleRounds = 1 << 20;

// A time as long as milliseconds can hold is no number of nanoseconds, in which clocks count.
CommOptions WithinTheClock(CommOptions options) {
  constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 365 * 100);
  options.timeout = std::clamp(options.timeout, std::chrono::milliseconds::zero(), kLongest);
  return options;
}

}  // namespace

absl::Status CommRequest::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done_; });
  return status_;
}

bool CommRequest::done() const {
  const std::scoped_lock lock(mutex_);
  return done_;
}

void CommRequest::Then(std::function<void(const absl::Status&)> then) {
  std::unique_lock lock(mutex_);
  if (!done_) {
    then_ = std::move(then);
    return;
  }
  lock.unlock();
  then(status_);
}

void CommRequest::Finish(absl::Status status) {
  std::unique_lock lock(mutex_);
  if (done_) return;
  done_ = true;
  status_ = std::move(status);
  changed_.notify_all();
  const auto then = std::exchange(then_, nullptr);
  lock.unlock();
  if (then != nullptr) then(status_);
}

// A piece of a transfer on its way.
struct CommThread::Flight {
  Transport::Id id = 0;
  int peer = 0;  // rank
};

struct CommThread::Lane {
  int number = -1;
  std::deque<CommJob> jobs;  // the first is under way
  size_t round = 0;          // of the first job
  bool posted = false;       // its round
  std::vector<Flight> flights;
  Clock::time_point since;
};

// What is behind messages that have not ended: the transport may touch it as long as the process
// lives.
void CommThread::KeepForEver(std::vector<std::unique_ptr<Lane>> lanes) {
  static std::mutex mutex;
  static auto* const kKept = new std::vector<std::unique_ptr<Lane>>();
  const std::scoped_lock lock(mutex);
  for (auto& lane : lanes) kKept->push_back(std::move(lane));
}

CommThread::CommThread(CommOptions options) : options_(WithinTheClock(options)) {}

absl::StatusOr<std::unique_ptr<CommThread>> CommThread::Start(MakeTransport make,
                                                              CommOptions options) {
  std::unique_ptr<CommThread> comm(new CommThread(options));
  INTERP_RETURN_IF_ERROR(Catching([&]() -> absl::Status {
    comm->thread_ = std::thread([raw = comm.get(), make = std::move(make)] { raw->Work(make); });
    return absl::OkStatus();
  }));
  std::unique_lock lock(comm->mutex_);
  const auto patience = std::max(comm->options_.timeout, CommOptions::kLeastMeeting);
  const bool met = comm->changed_.wait_for(lock, patience, [&] { return comm->ready_; });
  if (!met) {
    lock.unlock();
    // Nothing ends what waits for others to come: the thread keeps what it uses.
    comm->thread_.detach();
    static_cast<void>(comm.release());
    return absl::DeadlineExceededError(
        absl::StrCat("not all ranks have met within ", patience.count(),
                     " ms: at least one of them has not started, or stands still"));
  }
  const absl::Status error = comm->error_;
  lock.unlock();
  if (!error.ok()) return error;
  return comm;
}

CommThread::~CommThread() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  KeepForEver(std::move(abandoned_));
}

std::shared_ptr<CommRequest> CommThread::Submit(CommJob job) {
  auto request = std::make_shared<CommRequest>();
  job.request = request;
  const std::scoped_lock lock(mutex_);
  if (!error_.ok()) {
    request->Finish(error_);
    return request;
  }
  submitted_.push_back(std::move(job));
  changed_.notify_all();
  return request;
}

void CommThread::Fail(const absl::Status& error) {
  const std::scoped_lock lock(mutex_);
  if (error_.ok()) error_ = error;
  fail_ = true;
  changed_.notify_all();
}

absl::Status CommThread::CheckPeers(const std::vector<int>& ranks) {
  const std::scoped_lock lock(mutex_);
  if (!error_.ok()) return error_;
  // Rings that ask again and again take turns.
  if (peers_to_check_.empty()) peers_to_check_ = ranks;
  changed_.notify_all();
  return absl::OkStatus();
}

void CommThread::Abort(int exit_code) {
  std::unique_lock lock(mutex_);
  abort_code_ = exit_code;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !error_.ok() && !abort_code_.has_value(); });
}

void CommThread::StartTrace() {
  const std::scoped_lock lock(mutex_);
  traces_ = true;
  spans_.clear();
}

std::vector<CommSpan> CommThread::StopTrace() {
  const std::scoped_lock lock(mutex_);
  traces_ = false;
  return std::exchange(spans_, {});
}

bool CommThread::Open(const MakeTransport& make) {
  absl::StatusOr<std::unique_ptr<Transport>> transport = Catching([&] { return make(); });
  const std::scoped_lock lock(mutex_);
  if (transport.ok()) {
    transport_ = *std::move(transport);
  } else {
    error_ = transport.status();
  }
  ready_ = true;
  changed_.notify_all();
  return transport_ != nullptr;
}

void CommThread::Close() {
  const absl::Status ended = absl::CancelledError("the ranks' communication has ended");
  const bool whole = lanes_.empty();
  const absl::Status first = FailAll(ended);
  if (whole && first == ended) {
    transport_->Leave().IgnoreError();
  } else {
    transport_->GiveUp(first);
  }
}

void CommThread::Work(const MakeTransport& make) {
  AskForShortSlice();
  if (!Open(make)) return;
  int idle_rounds = 0;
  for (;;) {
    TakeJobs(/*may_sleep=*/lanes_.empty());
    std::optional<int> abort_code;
    bool fail = false;
    {
      const std::scoped_lock lock(mutex_);
      if (stop_) break;
      abort_code = std::exchange(abort_code_, std::nullopt);
      fail = std::exchange(fail_, false);
    }
    if (fail) transport_->GiveUp(FailAll(absl::OkStatus()));
    if (abort_code.has_value()) {
      transport_->Abort(*abort_code);
      FailAll(absl::AbortedError("the ranks' communication was aborted")).IgnoreError();
    }
    const absl::StatusOr<bool> moved = Catching([this]() -> absl::StatusOr<bool> {
      INTERP_RETURN_IF_ERROR(CheckAskedPeers());
      return Progress();
    });
    if (!moved.ok()) transport_->GiveUp(FailAll(moved.status()));
    idle_rounds = moved.ok() && *moved ? 0 : std::min(idle_rounds + 1, kMostIdleRounds);
    if (idle_rounds > 0 && !lanes_.empty()) BackOff(idle_rounds);
  }
  Close();
}

// REQUIRES: mutex_ is held.
bool CommThread::HasOrders() const {
  return stop_ || fail_ || abort_code_.has_value() || !submitted_.empty() ||
         !peers_to_check_.empty();
}

absl::Status CommThread::CheckAskedPeers() {
  std::vector<int> ranks;
  {
    const std::scoped_lock lock(mutex_);
    ranks.swap(peers_to_check_);
  }
  return ranks.empty() ? absl::OkStatus() : transport_->CheckPeers(ranks);
}

void CommThread::TakeJobs(bool may_sleep) {
  std::unique_lock lock(mutex_);
  if (may_sleep) changed_.wait(lock, [this] { return HasOrders(); });
  while (!submitted_.empty()) {
    CommJob job = std::move(submitted_.front());
    submitted_.pop_front();
    const auto same = [&](const auto& lane) { return job.lane >= 0 && lane->number == job.lane; };
    const auto it = std::find_if(lanes_.begin(), lanes_.end(), same);
    if (it != lanes_.end()) {
      (*it)->jobs.push_back(std::move(job));
      continue;
    }
    auto lane = std::make_unique<Lane>();
    lane->number = job.lane;
    lane->since = Clock::now();
    lane->jobs.push_back(std::move(job));
    lanes_.push_back(std::move(lane));
  }
}

absl::StatusOr<bool> CommThread::Progress() {
  bool moved = false;
  for (const auto& lane : lanes_) {
    INTERP_ASSIGN_OR_RETURN(const bool advanced, Advance(*lane));
    moved = moved || advanced;
  }
  std::erase_if(lanes_, [](const auto& lane) { return lane->jobs.empty(); });
  return moved;
}

// One round at most, so that no lane waits for a long one of another.
absl::StatusOr<bool> CommThread::Advance(Lane& lane) {
  CommJob& job = lane.jobs.front();
  bool moved = false;
  if (!lane.posted && lane.round < job.schedule.size()) {
    INTERP_RETURN_IF_ERROR(Annotate(Post(lane), job.what));
    moved = true;
  }
  if (lane.round < job.schedule.size()) {
    const absl::StatusOr<bool> polled = Poll(lane);
    if (!polled.ok()) return Annotate(polled.status(), job.what);
    moved = moved || *polled;
    if (!lane.flights.empty()) {
      const bool late = !job.patient && Clock::now() - lane.since > options_.timeout;
      if (!moved && late) return LateError(lane);
      return moved;
    }
    const Round& round = job.schedule[lane.round];
    if (round.then != nullptr) INTERP_RETURN_IF_ERROR(Annotate(round.then(), job.what));
    ++lane.round;
    lane.posted = false;
    if (lane.round < job.schedule.size()) return true;
  }
  Note(lane);
  const std::shared_ptr<CommRequest> request = std::move(job.request);
  lane.jobs.pop_front();
  lane.round = 0;
  lane.since = Clock::now();
  request->Finish(absl::OkStatus());
  return true;
}

absl::Status CommThread::Post(Lane& lane) {
  const CommJob& job = lane.jobs.front();
  for (const Transfer& transfer : job.schedule[lane.round].transfers) {
    for (size_t at = 0; at < transfer.bytes; at += transport_->max_bytes()) {
      const int peer = job.members[transfer.peer];
      const Message message{.send = transfer.send,
                            .peer = peer,
                            .tag = job.tag,
                            .data = static_cast<char*>(transfer.data) + at,
                            .bytes = std::min(transfer.bytes - at, transport_->max_bytes())};
      INTERP_ASSIGN_OR_RETURN(const Transport::Id id, transport_->Start(message));
      lane.flights.push_back({.id = id, .peer = peer});
    }
  }
  lane.posted = true;
  return absl::OkStatus();
}

// In their order: of those of one tag and peer the first comes first.
absl::StatusOr<bool> CommThread::Poll(Lane& lane) {
  const size_t before = lane.flights.size();
  absl::Status error;
  std::erase_if(lane.flights, [&](const Flight& flight) {
    const absl::StatusOr<bool> finished = transport_->Finished(flight.id);
    error.Update(finished.status());
    return finished.ok() && *finished;
  });
  if (!error.ok()) return error;
  return lane.flights.size() < before;
}

void CommThread::Note(const Lane& lane) {
  const auto ns = [](Clock::time_point at) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
  };
  const std::scoped_lock lock(mutex_);
  if (!traces_) return;
  spans_.push_back({.what = lane.jobs.front().what,
                    .ring = lane.number,
                    .start_ns = ns(lane.since),
                    .end_ns = ns(Clock::now())});
}

absl::Status CommThread::LateError(const Lane& lane) const {
  std::set<int> missing;
  for (const Flight& flight : lane.flights) missing.insert(flight.peer);
  return absl::DeadlineExceededError(absl::StrCat(lane.jobs.front().what, ": rank ", rank(),
                                                  " has waited ", options_.timeout.count(),
                                                  " ms for rank ", absl::StrJoin(missing, ", ")));
}

// With the first error, which it returns; `error` is that where there was none.
absl::Status CommThread::FailAll(const absl::Status& error) {
  std::deque<CommJob> jobs;
  absl::Status first;
  {
    const std::scoped_lock lock(mutex_);
    if (error_.ok()) error_ = error;
    first = error_;
    jobs.swap(submitted_);
    changed_.notify_all();
  }
  for (const CommJob& job : jobs) job.request->Finish(first);
  for (const auto& lane : lanes_) {
    for (const CommJob& job : lane->jobs) {
      if (job.request != nullptr) job.request->Finish(first);
    }
  }
  // Their memory may still be written to by messages under way.
  for (auto& lane : lanes_) abandoned_.push_back(std::move(lane));
  lanes_.clear();
  return first;
}

void CommThread::BackOff(int idle_rounds) {
  if (idle_rounds < kSpins) return;
  if (idle_rounds < kSpins + kYields) {
    std::this_thread::yield();
    return;
  }
  const int sleeps = idle_rounds - kSpins - kYields;
  const std::chrono::microseconds longest(
      std::min(kLongestSleepUs, kShortestSleepUs * (1 + sleeps / 20)));
  const bool listens = std::all_of(lanes_.begin(), lanes_.end(),
                                   [](const auto& lane) { return lane->jobs.front().patient; });
  if (!listens) return transport_->Idle(longest);
  // Jobs of this rank come at any time.
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, longest, [this] { return HasOrders(); });
}

}  // namespace interp
