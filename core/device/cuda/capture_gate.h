// CaptureGate: keeps events of other threads out of what one thread captures.
//
// An event that is recorded on a stream while it is captured becomes part of the graph, and whoever
// waits for it is drawn into the capture or breaks it (CUDA C++ Programming Guide, "Cross-stream
// Dependencies and Events"). Other cores record events on all streams of a device they share.
//
// Lock order: a thread that captures locks mutexes of its core's pools (StreamPool) while it holds
// the gate. Another thread that trims a pool, or frees memory of it that several streams have used,
// passes the gate with that pool locked. So no other thread may do that to the pools of a core
// during its runs (InterpreterCore::TrimMemory); to those of other cores it may.
#pragma once

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>

namespace interp::cuda {

// Of one device. Thread-safety: all methods from any thread.
class CaptureGate {
 public:
  // Around a capture, on one thread; another thread's capture is waited for.
  void BeginCapture() {
    mutex_.lock();
    capturer_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  void EndCapture() {
    capturer_.store(std::thread::id(), std::memory_order_relaxed);
    mutex_.unlock();
  }
  // Whether this thread is between the two.
  bool Captures() const {
    return capturer_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  // While it is held nobody captures but the calling thread.
  std::shared_lock<std::shared_mutex> Pass() {
    if (Captures()) return {};
    return std::shared_lock<std::shared_mutex>(mutex_);
  }

 private:
  std::shared_mutex mutex_;
  std::atomic<std::thread::id> capturer_{};
};

}  // namespace interp::cuda
