#include "tools/interruption.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <future>

namespace interp {
namespace {

TEST(Interruption, CtrlCAndTerminationCallStop) {
  for (const int signal : {SIGINT, SIGTERM}) {
    std::promise<void> stopped;
    const Interruption interruption([&] { stopped.set_value(); });
    raise(signal);
    stopped.get_future().wait();
    EXPECT_TRUE(interruption.happened());
  }
}

TEST(Interruption, WhatIsIgnoredStaysIgnored) {
  ::signal(SIGTERM, SIG_IGN);
  {
    const Interruption interruption([] { FAIL(); });
    raise(SIGTERM);
    EXPECT_FALSE(interruption.happened());
  }
  struct sigaction now = {};
  ASSERT_EQ(sigaction(SIGTERM, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
  ::signal(SIGTERM, SIG_DFL);
}

}  // namespace
}  // namespace interp
