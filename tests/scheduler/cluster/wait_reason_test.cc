#include "scheduler/cluster/wait_reason.h"

#include "gtest/gtest.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

TEST(WaitReason, SaysWhoIsThereAndWhatTheyDo) {
  WorkerTable table({});
  EXPECT_EQ(WaitReasons(table).For(1),
            "waits for 1 worker; none is registered");
  std::vector<WorkerId> ids;
  for (int i = 0; i < 5; ++i) {
    ids.push_back(
        *table.Add(RegisterOf(absl::StrCat("worker-", i)), absl::UnixEpoch()));
  }
  EXPECT_EQ(WaitReasons(table).For(8),
            "waits for 8 workers; only 5 are registered: worker-0, worker-1, "
            "worker-2, worker-3, worker-4");
  table.Seat(ids[3], JobId(7), 0);
  table.SeatText(ids[4], 12);
  EXPECT_EQ(WaitReasons(table).For(4),
            "waits for 4 workers; 3 are idle: worker-0, worker-1, worker-2; "
            "1 is busy with text 12; 1 is busy with job 7");
  for (int i = 0; i < 3; ++i) table.Seat(ids[i], JobId(7), i + 1);
  EXPECT_EQ(WaitReasons(table).For(2),
            "waits for 2 workers; none is idle; 1 is busy with text 12; 4 are "
            "busy with job 7");
  table.Release(ids[3]);
  table.SeatText(ids[3], 11);
  EXPECT_EQ(WaitReasons(table).For(2),
            "waits for 2 workers; none is idle; 2 are busy with texts; 3 are "
            "busy with job 7");
}

TEST(NameList, IsBounded) {
  WorkerTable table({});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(
        table.Add(RegisterOf(absl::StrCat("w", i)), absl::UnixEpoch()).ok());
  }
  EXPECT_EQ(NameList(table.Alive()),
            "w0, w1, w2, w3, w4, w5, w6, w7 and 992 more");
}

}  // namespace
}  // namespace troupe
