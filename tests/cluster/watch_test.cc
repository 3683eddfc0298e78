// Clients that watch a job while its scheduler dies (kill -9), with real
// daemons.

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_test_base.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class WatchTest : public ClusterTestBase {
 protected:
  // Whose lines begin with "step 12/600  ...".
  static std::vector<int> StepsOf(const std::string& output) {
    std::vector<int> steps;
    for (const absl::string_view line : absl::StrSplit(output, '\n')) {
      const std::vector<absl::string_view> words =
          absl::StrSplit(line, absl::ByAnyChar(" /"));
      int step = 0;
      if (words.size() < 3 || words[0] != "step") continue;
      if (absl::SimpleAtoi(words[1], &step)) steps.push_back(step);
    }
    return steps;
  }
};

TEST_F(WatchTest, GoesOnWhereItWasAndShowsEachStepOnce) {
  Up(2);
  constexpr int kSteps = 4000;
  const int job = Submit({absl::StrCat("training.steps=", kSteps)});
  TroupeProgram watch(Command({"watch", absl::StrCat(job)}));
  for (const char* const step : {"step 50/", "step 1500/"}) {
    ASSERT_NE(watch.WaitForLine(step), "");
    Kill("scheduler");
    absl::SleepFor(absl::Milliseconds(300));
    Up(2);
  }
  const Outcome outcome = watch.Wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("; looking for it again for 2m\n"));
  EXPECT_THAT(outcome.err, HasSubstr("troupe: found the scheduler at "));
  std::vector<int> all(kSteps);
  for (int step = 1; step <= kSteps; ++step) all[step - 1] = step;
  EXPECT_EQ(StepsOf(outcome.out), all);
}

TEST_F(WatchTest, GivesUpWhenItsPatienceEndsAndTheJobTrainsOn) {
  Up(2);
  const int job = Submit({kEndless});
  TroupeProgram watch(Command({"watch", absl::StrCat(job), "--patience", "1"}));
  ASSERT_NE(watch.WaitForLine("step 5/"), "");
  Kill("scheduler");
  const Outcome outcome = watch.Wait();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("looking for it again for 1s\n"));
  EXPECT_THAT(outcome.err,
              HasSubstr("the scheduler did not come back within 1s: "));
  EXPECT_THAT(outcome.err, HasSubstr(absl::StrCat("troupe watch ", job)));
  Up(2);
  EXPECT_EQ(Describe(job)["state"], "RUNNING");
}

}  // namespace
}  // namespace troupe
