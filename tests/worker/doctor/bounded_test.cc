#include "worker/doctor/bounded.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

// Long enough for a machine that is busy.
constexpr absl::Duration kLimit = absl::Seconds(30);

TEST(RunBounded, HandsTheFindingThrough) {
  // More than a pipe holds.
  const std::string text(1 << 18, 'x');
  const Finding finding = RunBounded(
      [&] {
        return Finding{
            .state = FindingState::kNone, .text = text, .advice = "do\nit"};
      },
      kLimit);
  EXPECT_EQ(finding.state, FindingState::kNone);
  EXPECT_EQ(finding.text, text);
  EXPECT_EQ(finding.advice, "do\nit");
}

TEST(RunBounded, GivesUpOnWhatHangs) {
  const absl::Time start = absl::Now();
  const Finding finding = RunBounded(
      []() -> Finding {
        while (true) pause();
      },
      absl::Milliseconds(50));
  EXPECT_EQ(finding.state, FindingState::kFail);
  EXPECT_EQ(finding.text, "no answer within 50ms");
  EXPECT_LT(absl::Now() - start, kLimit);
}

TEST(RunBounded, OutlivesACrash) {
  const Finding crashed = RunBounded(
      []() -> Finding {
        const rlimit no_core = {};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGABRT, SIG_DFL);
        abort();
      },
      kLimit);
  EXPECT_EQ(crashed.state, FindingState::kFail);
  EXPECT_EQ(crashed.text, "the check crashed (SIGABRT)");
  const Finding left = RunBounded([]() -> Finding { _exit(0); }, kLimit);
  EXPECT_EQ(left.text, "the check ended without an answer");
}

}  // namespace
}  // namespace troupe
