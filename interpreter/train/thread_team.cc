#include "interpreter/train/thread_team.h"

#include <system_error>

namespace interp {

absl::StatusOr<std::unique_ptr<ThreadTeam>> ThreadTeam::Create(int size) {
  std::unique_ptr<ThreadTeam> team(new ThreadTeam());
  try {
    for (int i = 0; i < size; ++i) team->threads_.emplace_back([t = team.get(), i] { t->Work(i); });
  } catch (const std::system_error& e) {
    return ResourceExhausted("cannot start thread ", team->size(), " of ", size, ": ", e.what());
  }
  return team;
}

ThreadTeam::~ThreadTeam() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  begin_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::Run(const std::function<void(int)>& work) {
  std::unique_lock<std::mutex> lock(mutex_);
  work_ = &work;
  busy_ = size();
  ++round_;
  begin_.notify_all();
  end_.wait(lock, [this] { return busy_ == 0; });
}

void ThreadTeam::Work(int part) {
  uint64_t done = 0;
  while (true) {
    const std::function<void(int)>* work = nullptr;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      begin_.wait(lock, [&] { return stop_ || round_ != done; });
      if (stop_) return;
      done = round_;
      work = work_;
    }
    (*work)(part);
    std::lock_guard<std::mutex> lock(mutex_);
    if (--busy_ == 0) end_.notify_one();
  }
}

}  // namespace interp
