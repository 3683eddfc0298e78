// A session on a machine whose wall clock steps; a program of its own, for the
// step is one of its whole process.
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "proto/base/steady_time.h"
#include "tests/proto/base/wall_clock_step.h"
#include "tests/worker/service/fake_scheduler.h"
#include "worker/service/session.h"

namespace troupe {
namespace {

// `more` more are heard soon.
void ExpectHeartbeats(FakeScheduler& scheduler, size_t more) {
  const auto count = [&scheduler] {
    return scheduler.Count([](const auto& m) { return m.has_heartbeat(); });
  };
  const size_t before = count();
  const absl::Time end = SteadyNow() + absl::Seconds(20);
  while (count() < before + more && SteadyNow() < end) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_GE(count(), before + more);
}

TEST(SessionClock, HeartsBeatWhateverTheWallClockDoes) {
  FakeScheduler scheduler;
  SessionOptions options = {.scheduler = scheduler.address(),
                            .trust = {.insecure = 1}};
  options.registration.mutable_worker()->set_name("ada");
  const auto session = Session::Open(options);
  ASSERT_TRUE(session.ok()) << session.status();
  ExpectHeartbeats(scheduler, 3);
  for (const absl::Duration by :
       {absl::Hours(1), -absl::Hours(1), -absl::Hours(1), absl::Hours(1)}) {
    StepWallClock(by);
    ExpectHeartbeats(scheduler, 3);
  }
}

}  // namespace
}  // namespace troupe
