#include "worker/metrics/event_file.h"

#include <filesystem>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"
#include "tests/worker/metrics/read_events.h"
#include "tests/worker/metrics/sample_row.h"

namespace troupe {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'767'225'600);

void RunAttempt(const std::string& folder, int64_t first, int64_t last,
                int attempt = 1, absl::Time now = kNow) {
  EventFile file(folder, first, now);
  ASSERT_TRUE(file.Start().ok());
  for (int64_t step = first; step <= last; ++step) {
    ASSERT_TRUE(file.Append(SampleRow(step, attempt)).ok());
  }
  ASSERT_TRUE(file.Sync().ok());
}

// What tensorboard.summary.writer.record_writer.RecordWriter (2.20) makes of
// b"troupe" and of b"".
TEST(FramedRecord, IsTFRecords) {
  EXPECT_EQ(absl::BytesToHexString(FramedRecord("troupe")),
            "06000000000000007369d53774726f757065b7bb1deb");
  EXPECT_EQ(absl::BytesToHexString(FramedRecord("")),
            "000000000000000029039807d8ea82a2");
}

TEST(EventFile, HasAScalarForEachNumberOfAStep) {
  const TempDir dir;
  const std::string folder = dir.path() + "/tb/run";
  RunAttempt(folder, 1, 3);
  ASSERT_EQ(EventFilesIn(folder).size(), 1u);
  const auto events =
      ReadEvents(absl::StrCat(folder, "/", EventFilesIn(folder)[0]));
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].wall_time(), 1'767'225'600.0);
  EXPECT_EQ(events[1].session_log().status(), tensorboard::SessionLog::START);
  EXPECT_EQ(events[1].step(), 1);
  EXPECT_EQ(events[3].step(), 2);
  EXPECT_DOUBLE_EQ(events[3].wall_time(), 1'767'225'600.002);
  const Curves curves = ReadCurves(folder);
  EXPECT_EQ(curves.at("loss").at(2), 1 + 2 / 1024.0f);
  EXPECT_EQ(curves.at("learning_rate").at(3), 1e-5f);
  for (const char* none : {"step", "unix_ms", "attempt", "validation_loss"}) {
    EXPECT_EQ(curves.count(none), 0u) << none;
  }
}

// Even if it begins within the same second, or on a machine whose clock is
// slow.
TEST(EventFile, ALaterAttemptMakesItsStepsVoidInEarlierOnes) {
  const TempDir dir;
  RunAttempt(dir.path(), 1, 9, 1);
  RunAttempt(dir.path(), 6, 8, 2);
  RunAttempt(dir.path(), 8, 9, 3, kNow - absl::Hours(1));
  EXPECT_EQ(EventFilesIn(dir.path()).size(), 3u);
  const std::map<int64_t, float> loss = ReadCurves(dir.path()).at("loss");
  ASSERT_EQ(loss.size(), 9u);
  for (const auto& [step, value] : loss) {
    const int attempt = step < 6 ? 1 : step < 8 ? 2 : 3;
    EXPECT_EQ(value, attempt + static_cast<float>(step) / 1024) << step;
  }
}

// A start that a full disk broke off is made good in the same file.
TEST(EventFile, MayBeStartedAgain) {
  const TempDir dir;
  EventFile file(dir.path(), 4, kNow);
  ASSERT_TRUE(file.Start().ok());
  ASSERT_TRUE(file.Start().ok());
  ASSERT_TRUE(file.Append(SampleRow(4)).ok());
  ASSERT_EQ(EventFilesIn(dir.path()).size(), 1u);
  EXPECT_EQ(ReadEvents(file.path()).size(), 3u);
}

}  // namespace
}  // namespace troupe
