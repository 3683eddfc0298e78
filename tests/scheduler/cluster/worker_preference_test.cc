#include "scheduler/cluster/worker_preference.h"

#include "gtest/gtest.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

std::string NamesOf(const std::vector<const Worker*>& workers) {
  std::string names;
  for (const Worker* worker : workers) absl::StrAppend(&names, worker->name());
  return names;
}

TEST(WorkerPreference, DoubtedOnesAreLeftOutWhereThereAreEnoughOthers) {
  WorkerTable table({});
  const absl::Time now = absl::FromUnixSeconds(1);
  for (const char* name : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(table.Add(RegisterOf(name), now).ok());
  }
  table.Doubt("b");
  table.AddLocalFailure("a", JobId(1), "its disk is full");
  table.AddLocalFailure("a", JobId(2), "its disk is full");
  EXPECT_EQ(NamesOf(LeastDoubted(table.Idle(), 1)), "cd");
  EXPECT_EQ(NamesOf(LeastDoubted(table.Idle(), 2)), "cd");
  EXPECT_EQ(NamesOf(LeastDoubted(table.Idle(), 3)), "bcd");
  EXPECT_EQ(NamesOf(LeastDoubted(table.Idle(), 4)), "abcd");
  EXPECT_EQ(NamesOf(LeastDoubted(table.Idle(), 9)), "abcd");
  EXPECT_EQ(NamesOf(LeastDoubted(table.Idle(), 0)), "abcd");
  const FailedStarts failed = {{"c", "x"}, {"e", "y"}};
  EXPECT_EQ(NamesOf(Without(table.Idle(), failed)), "abd");
  const std::set<std::string> names = {"a", "d"};
  EXPECT_EQ(NamesOf(Without(table.Idle(), names)), "bc");
  table.DidWell("b");
  EXPECT_EQ(NamesOf(LeastDoubted(table.Idle(), 3)), "bcd");
}

TEST(WorkerPreference, NeverMoreThanHalfOfTheWorkersAreSetAside) {
  for (int alive = 1; alive <= 9; ++alive) {
    WorkerTable table({.local_failures_max = 2});
    const absl::Time now = absl::FromUnixSeconds(1);
    for (int w = 0; w < alive; ++w) {
      ASSERT_TRUE(table.Add(RegisterOf(absl::StrCat("w", w)), now).ok());
    }
    for (int w = 0; w < alive; ++w) {
      const std::string name = absl::StrCat("w", w);
      EXPECT_FALSE(table.AddLocalFailure(name, JobId(1), "x"));
      EXPECT_FALSE(table.AddLocalFailure(name, JobId(1), "once a job"));
      EXPECT_EQ(table.AddLocalFailure(name, JobId(2), "x"), w < alive / 2);
    }
    EXPECT_EQ(table.in_service_count(), alive - alive / 2);
    EXPECT_EQ(table.idle_count(), alive - alive / 2);
    EXPECT_EQ(table.alive_count(), alive);
  }
}

TEST(WorkerPreference, WhereOthersLeaveThoseSetAsideAreInServiceAgain) {
  WorkerTable table({.local_failures_max = 1});
  const absl::Time now = absl::FromUnixSeconds(1);
  std::vector<WorkerId> ids;
  for (const char* name : {"a", "b", "c", "d"}) {
    ids.push_back(*table.Add(RegisterOf(name), now));
  }
  ASSERT_TRUE(table.AddLocalFailure("a", JobId(1), "x"));
  ASSERT_TRUE(table.AddLocalFailure("b", JobId(1), "x"));
  table.AddLocalFailure("a", JobId(2), "x");
  table.ReviewSetAside();
  EXPECT_EQ(NamesOf(table.InService()), "cd");
  table.Leave(ids[2]);
  EXPECT_EQ(NamesOf(table.InService()), "d") << "others may come";
  table.ReviewSetAside();
  EXPECT_EQ(NamesOf(table.InService()), "bd") << "a failed twice";
  table.Remove(ids[3], WorkerStatus::LOST, "killed");
  table.ReviewSetAside();
  EXPECT_EQ(NamesOf(table.InService()), "b");
  ASSERT_TRUE(table.Cordon("b", "its fan is broken").ok());
  table.ReviewSetAside();
  EXPECT_EQ(NamesOf(table.InService()), "a");
  EXPECT_EQ(table.in_service_count(), 1);
  EXPECT_EQ(table.idle_count(), 1);
  for (const char* name : {"e", "f"}) {
    ASSERT_TRUE(table.Add(RegisterOf(name), now).ok());
  }
  table.ReviewSetAside();
  EXPECT_EQ(NamesOf(table.InService()), "ef") << "a is not needed any more";
}

// A person takes them out for another reason.
TEST(WorkerPreference, CordonedWorkersDoNotBringBackBadOnes) {
  WorkerTable table({.local_failures_max = 1});
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    ASSERT_TRUE(table.Add(RegisterOf(name), absl::FromUnixSeconds(1)).ok());
  }
  ASSERT_TRUE(table.AddLocalFailure("a", JobId(1), "x"));
  for (const char* name : {"b", "c", "d"}) {
    ASSERT_TRUE(table.Cordon(name, "maintenance").ok());
  }
  table.ReviewSetAside();
  EXPECT_EQ(NamesOf(table.InService()), "e");
}

TEST(WorkerRecords, TellOnlyWhatIsToBeStored) {
  WorkerRecords records;
  records.Doubt("a");
  EXPECT_TRUE(records.TakeChanged().empty());
  EXPECT_TRUE(records.AddFailure("a", JobId(3), "ENOSPC"));
  ASSERT_EQ(records.TakeChanged().size(), 1u);
  records.ForgetFailures("a");
  std::vector<WorkerRecord> changed = records.TakeChanged();
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_TRUE(changed[0].empty());
  EXPECT_EQ(changed[0].name, "a");
  records.Cordon("b", "its fan is broken");
  records.ForgetFailures("b");
  changed = records.TakeChanged();
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0].WhySetAside(), "cordoned: its fan is broken");
  for (int job = 0; job < 100; ++job) records.AddFailure("c", JobId(job), "x");
  EXPECT_EQ(records.Of("c").failures.size(), WorkerRecords::kFailuresMax);
}

}  // namespace
}  // namespace troupe
