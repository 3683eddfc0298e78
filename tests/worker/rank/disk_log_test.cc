#include "worker/rank/disk_log.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(DiskLog, SaysHowFarTheDiskIs) {
  const RealClock clock;
  DiskLog log(clock);
  EXPECT_FALSE(log.Progress().has_value());
  {
    const DiskLog::Entry entry(log, {.writes = true, .step = 7, .bytes = 100});
    const OnBytesMoved moved = entry.moved();
    EXPECT_TRUE(moved(30).ok());
    EXPECT_TRUE(moved(20).ok());
    const absl::optional<DiskProgress> progress = log.Progress();
    ASSERT_TRUE(progress.has_value());
    EXPECT_TRUE(progress->writes());
    EXPECT_EQ(progress->step(), 7);
    EXPECT_EQ(progress->bytes(), 50);
    EXPECT_EQ(progress->bytes_total(), 100);
  }
  EXPECT_FALSE(log.Progress().has_value());
  const DiskLog::Entry next(log, {.bytes = 5});
  EXPECT_EQ(log.Progress()->bytes(), 0);
}

TEST(DiskLog, AnAbortEndsWhatMovesAndWhatFollows) {
  const RealClock clock;
  DiskLog log(clock);
  const absl::Status why = absl::CancelledError("its user changed his mind");
  {
    const DiskLog::Entry entry(log, {.bytes = 100});
    EXPECT_TRUE(entry.moved()(30).ok());
    log.Abort(why);
    EXPECT_EQ(entry.moved()(30), why);
  }
  log.Abort(absl::UnavailableError("later"));
  const DiskLog::Entry entry(log, {.bytes = 100});
  EXPECT_EQ(entry.moved()(30), why);
}

}  // namespace
}  // namespace troupe
