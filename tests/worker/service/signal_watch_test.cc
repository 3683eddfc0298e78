#include "worker/service/signal_watch.h"

#include <signal.h>
#include <unistd.h>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(SignalWatch, TellsTheFirstSignal) {
  SignalWatch watch;
  for (const auto& [signal, name] :
       {std::make_pair(SIGTERM, "SIGTERM"), std::make_pair(SIGINT, "SIGINT")}) {
    absl::Notification told;
    std::string heard;
    watch.OnSignal([&](const std::string& text) {
      heard = text;
      told.Notify();
    });
    ASSERT_EQ(kill(getpid(), signal), 0);
    told.WaitForNotification();
    EXPECT_EQ(heard, name);
  }
}

TEST(SignalWatchDeathTest, WithoutAHandlerTheProcessEnds) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        SignalWatch watch;
        kill(getpid(), SIGTERM);
        pause();
      },
      testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST(SignalWatchDeathTest, ASecondSignalEndsItInAnyCase) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        SignalWatch watch;
        watch.OnSignal([](const std::string&) { kill(getpid(), SIGINT); });
        kill(getpid(), SIGTERM);
        pause();
      },
      testing::ExitedWithCode(128 + SIGINT), "");
}

}  // namespace
}  // namespace troupe
