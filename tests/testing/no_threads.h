// NoThreads: a system that gives no threads.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace interp::testing {

// While it lives, no thread can be started: its stack would be larger than all addresses.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t attr;
    pthread_getattr_default_np(&attr);
    pthread_attr_setstacksize(&attr, size_t{1} << 60);
    pthread_setattr_default_np(&attr);
    pthread_attr_destroy(&attr);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace interp::testing
