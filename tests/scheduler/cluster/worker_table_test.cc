#include "scheduler/cluster/worker_table.h"

#include "gtest/gtest.h"
#include "proto/protocol_version.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1000);

TEST(WorkerTable, RefusesWhoCannotBeAMember) {
  WorkerTable table({.workers_max = 2});
  ASSERT_TRUE(table.Add(RegisterOf("a"), kNow).ok());
  const auto twice = table.Add(RegisterOf("a"), kNow);
  EXPECT_TRUE(absl::IsAlreadyExists(twice.status())) << twice.status();
  Register old = RegisterOf("b");
  old.set_protocol_version(kProtocolVersion + 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(table.Add(old, kNow).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(table.Add(RegisterOf(""), kNow).status()));
  ASSERT_TRUE(table.Add(RegisterOf("b"), kNow).ok());
  EXPECT_TRUE(
      absl::IsResourceExhausted(table.Add(RegisterOf("c"), kNow).status()));
}

TEST(WorkerTable, SeatsAndReleases) {
  WorkerTable table({});
  const WorkerId id = *table.Add(RegisterOf("a"), kNow);
  EXPECT_EQ(table.Idle().size(), 1u);
  table.Seat(id, JobId(7), 3);
  EXPECT_EQ(table.Idle().size(), 0u);
  EXPECT_EQ(table.Find(id)->status.state(), WorkerStatus::BUSY);
  EXPECT_EQ(table.Find(id)->status.job(), 7);
  table.Release(id);
  EXPECT_EQ(table.Find(id)->status.state(), WorkerStatus::IDLE);
  EXPECT_EQ(table.Find(id)->status.job(), 0);
  table.SeatText(id, 4);
  EXPECT_EQ(table.Find(id)->status.text(), 4);
  EXPECT_DEATH(table.Seat(id, JobId(1), 0), "worker 1");
}

TEST(WorkerTable, ALostNameIsFreeAgainUnderANewId) {
  WorkerTable table({});
  const WorkerId first = *table.Add(RegisterOf("a"), kNow);
  table.Remove(first, WorkerStatus::LOST, "gone");
  EXPECT_EQ(table.Find(first)->status.reason(), "gone");
  const WorkerId second = *table.Add(RegisterOf("a"), kNow);
  EXPECT_NE(first, second);
  EXPECT_EQ(table.Find(first), nullptr) << "the new one takes its place";
}

TEST(WorkerTable, LeasesEnd) {
  WorkerTable table({.lease = absl::Seconds(5)});
  const WorkerId id = *table.Add(RegisterOf("a"), kNow);
  EXPECT_TRUE(table.Expired(kNow + absl::Seconds(5)).empty());
  EXPECT_EQ(table.Expired(kNow + absl::Milliseconds(5001)).size(), 1u);
  table.Find(id)->heard = kNow + absl::Seconds(5);
  EXPECT_TRUE(table.Expired(kNow + absl::Seconds(10)).empty());
}

TEST(WorkerTable, KeepsAFewOfTheGone) {
  WorkerTable table({.gone_workers_kept = 3});
  for (int i = 0; i < 10; ++i) {
    const WorkerId id = *table.Add(RegisterOf(absl::StrCat("w", i)), kNow);
    table.Remove(id, WorkerStatus::LEFT, "");
  }
  EXPECT_EQ(table.all().size(), 3u);
  EXPECT_EQ(table.all().begin()->second.name(), "w7");
}

TEST(WorkerTable, RefusesTextsThatNoWorkerHas) {
  WorkerTable table({});
  for (const std::string& name :
       {std::string("two\nlines"), std::string("\x1b[2J"),
        std::string(101, 'x')}) {
    const absl::Status status =
        table.Add(RegisterOf(name), absl::UnixEpoch()).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
    EXPECT_LT(status.message().size(), 300u);
  }
  Register large = RegisterOf("w");
  large.mutable_worker()->set_memory_domain(std::string(2 << 20, 'x'));
  EXPECT_TRUE(
      absl::IsInvalidArgument(table.Add(large, absl::UnixEpoch()).status()));
  const WorkerId id =
      *table.Add(RegisterOf("w", "host\nof two lines"), absl::UnixEpoch());
  EXPECT_EQ(table.Find(id)->status.description().host(), "host\\nof two lines");
}

}  // namespace
}  // namespace troupe
