#include "tools/interruption.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

namespace interp {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};
constexpr char kInterrupted = 'i';
constexpr char kEnd = 'e';

// Where the handler writes to: of all there is, little more than write() is allowed in it.
std::atomic<int> handler_pipe{-1};

void OnSignal(int /*signal*/) {
  const int saved = errno;
  [[maybe_unused]] const ssize_t put = write(handler_pipe.load(), &kInterrupted, 1);
  errno = saved;
}

}  // namespace

Interruption::Interruption(std::function<void()> stop) : stop_(std::move(stop)) {
  if (pipe2(pipe_, O_CLOEXEC) != 0) return;
  handler_pipe.store(pipe_[1]);
  waiter_ = std::thread([this] { Wait(); });
  ignores_pipes_ = std::signal(SIGPIPE, SIG_IGN) == SIG_DFL;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (const int signal : kSignals) {
    struct sigaction old;
    if (sigaction(signal, nullptr, &old) != 0 || old.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
    watched_.push_back(signal);
  }
}

Interruption::~Interruption() {
  if (pipe_[0] < 0) return;
  for (const int signal : watched_) ::signal(signal, SIG_DFL);
  if (ignores_pipes_) std::signal(SIGPIPE, SIG_DFL);
  [[maybe_unused]] const ssize_t put = write(pipe_[1], &kEnd, 1);
  waiter_.join();
  handler_pipe.store(-1);
  close(pipe_[0]);
  close(pipe_[1]);
}

void Interruption::Wait() {
  char byte = kEnd;
  while (read(pipe_[0], &byte, 1) < 0 && errno == EINTR) {
  }
  if (byte != kInterrupted) return;
  happened_.store(true);
  stop_();
}

}  // namespace interp
