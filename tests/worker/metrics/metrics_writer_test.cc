#include "worker/metrics/metrics_writer.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/disk/errno_status.h"
#include "tests/storage/temp_dir.h"
#include "tests/worker/metrics/sample_row.h"
#include "worker/metrics/table_file.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A disk that a test turns full, or that hangs, and what it took. Shared with a
// writer's thread, which may outlive the writer.
class Disk {
 public:
  void Fill() { Set(full_, true); }
  void MakeRoom() { Set(full_, false); }
  void Hang() { Set(hangs_, true); }
  void GoOn() { Set(hangs_, false); }

  absl::Status Take(int64_t step) {
    absl::MutexLock lock(&mutex_);
    ++tries_;
    mutex_.Await(absl::Condition(
        +[](bool* hangs) { return !*hangs; }, &hangs_));
    if (full_) return ErrnoStatus(ENOSPC, "/disk/rows: write");
    if (step > 0) steps_.push_back(step);
    return absl::OkStatus();
  }
  void Sync() {
    absl::MutexLock lock(&mutex_);
    synced_ = steps_.size();
  }

  std::vector<int64_t> steps() const {
    absl::MutexLock lock(&mutex_);
    return steps_;
  }
  size_t synced() const {
    absl::MutexLock lock(&mutex_);
    return synced_;
  }
  // Waits until `tries` operations have begun.
  void AwaitTries(int tries) const {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&] { return tries_ >= tries; };
    mutex_.Await(absl::Condition(&enough));
  }
  int tries() const {
    absl::MutexLock lock(&mutex_);
    return tries_;
  }

 private:
  void Set(bool& flag, bool value) {
    absl::MutexLock lock(&mutex_);
    flag = value;
  }

  mutable absl::Mutex mutex_;
  bool full_ = false;
  bool hangs_ = false;
  int tries_ = 0;
  std::vector<int64_t> steps_;
  size_t synced_ = 0;
};

class FileOnDisk final : public MetricsFile {
 public:
  explicit FileOnDisk(std::shared_ptr<Disk> disk) : disk_(std::move(disk)) {}

  const std::string& path() const override { return path_; }
  absl::StatusOr<std::vector<std::string>> Start() override {
    const absl::Status taken = disk_->Take(0);
    if (!taken.ok()) return taken;
    return std::vector<std::string>{"has begun"};
  }
  absl::Status Append(const MetricsRow& row) override {
    return disk_->Take(row.record.step());
  }
  absl::Status Sync() override {
    disk_->Sync();
    return absl::OkStatus();
  }

 private:
  const std::string path_ = "/disk/rows";
  const std::shared_ptr<Disk> disk_;
};

// A writer on such a disk, and what the job's user hears.
struct Fixture {
  explicit Fixture(size_t rows_max = 1000, bool started = true)
      : writer(std::make_unique<FileOnDisk>(disk),
               {.notice = [this](const std::string& text) { Hear(text); },
                .started = started,
                .rows_max = rows_max,
                .retry_first = absl::Microseconds(100),
                .retry_max = absl::Milliseconds(1)}) {}

  void Hear(const std::string& text) {
    absl::MutexLock lock(&mutex);
    said.push_back(text);
  }
  std::vector<std::string> heard() {
    absl::MutexLock lock(&mutex);
    return said;
  }
  void AwaitWord(const std::string& word) {
    absl::MutexLock lock(&mutex);
    const auto there = [&] {
      return std::any_of(said.begin(), said.end(), [&](const auto& text) {
        return absl::StrContains(text, word);
      });
    };
    mutex.Await(absl::Condition(&there));
  }
  void Add(int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      writer.Add(std::make_shared<MetricsRow>(SampleRow(step)));
    }
  }

  absl::Mutex mutex;
  std::vector<std::string> said;
  const std::shared_ptr<Disk> disk = std::make_shared<Disk>();
  MetricsWriter writer;
};

std::vector<int64_t> Steps(int64_t first, int64_t last) {
  std::vector<int64_t> steps;
  for (int64_t step = first; step <= last; ++step) steps.push_back(step);
  return steps;
}

TEST(MetricsWriter, WritesAndSyncsAllRows) {
  Fixture test;
  test.Add(1, 100);
  test.writer.Close(absl::InfiniteDuration());
  EXPECT_EQ(test.disk->steps(), Steps(1, 100));
  EXPECT_EQ(test.disk->synced(), 100u);
  EXPECT_THAT(test.heard(), IsEmpty());
}

TEST(MetricsWriter, AFullDiskCostsNoRowThatHasRoomToWait) {
  Fixture test;
  test.Add(1, 3);
  test.disk->Fill();
  test.Add(4, 20);
  test.AwaitWord("ENOSPC");
  test.disk->AwaitTries(test.disk->tries() + 5);
  test.Add(21, 30);
  test.disk->MakeRoom();
  test.AwaitWord("no row is missing");
  test.Add(31, 40);
  test.writer.Close(absl::InfiniteDuration());
  EXPECT_EQ(test.disk->steps(), Steps(1, 40));
  EXPECT_THAT(
      test.heard(),
      ElementsAre("metrics cannot be written now, and training goes on: "
                  "/disk/rows: write: ENOSPC: the file system is full; free "
                  "space or choose another directory",
                  "/disk/rows is written again; no row is missing"));
}

TEST(MetricsWriter, PastItsBoundRowsAreLeftOutAndCounted) {
  Fixture test(/*rows_max=*/10);
  test.disk->Fill();
  test.Add(1, 1);
  test.AwaitWord("ENOSPC");
  test.Add(2, 25);
  test.disk->MakeRoom();
  test.AwaitWord("is written again");
  test.Add(26, 30);
  test.writer.Close(absl::InfiniteDuration());
  std::vector<int64_t> expected = Steps(1, 10);
  for (const int64_t step : Steps(26, 30)) expected.push_back(step);
  EXPECT_EQ(test.disk->steps(), expected);
  EXPECT_THAT(test.heard(),
              ElementsAre(HasSubstr("ENOSPC"),
                          HasSubstr("/disk/rows: 10 rows wait for the disk, "
                                    "and no more can; rows are left out from "
                                    "step 11 on"),
                          "/disk/rows is written again; 15 rows between step "
                          "11 and step 25 were left out"));
}

// Add returns though nothing is taken: here it would wait for ever.
TEST(MetricsWriter, AHungDiskDelaysNobody) {
  Fixture test(/*rows_max=*/10);
  test.disk->Hang();
  test.Add(1, 1);
  test.disk->AwaitTries(1);
  test.Add(2, 100);
  test.writer.Close(absl::ZeroDuration());
  EXPECT_THAT(test.disk->steps(), IsEmpty());
  EXPECT_THAT(test.heard(),
              ElementsAre(HasSubstr("left out from step 11 on"),
                          "/disk/rows is closed; 100 rows between step 1 and "
                          "step 100 were left out"));
  test.disk->GoOn();  // and the thread ends
}

TEST(MetricsWriter, AtTheEndAFullDiskIsTriedOnceMore) {
  Fixture test;
  test.disk->Fill();
  test.Add(1, 3);
  test.AwaitWord("ENOSPC");
  test.writer.Close(absl::InfiniteDuration());
  EXPECT_THAT(test.heard(),
              ElementsAre(HasSubstr("ENOSPC"),
                          "/disk/rows is closed; 3 rows between step 1 and "
                          "step 3 were left out"));
}

// A later attempt, whose file cannot be begun yet.
TEST(MetricsWriter, BeginsTheFileWhenTheDiskLetsIt) {
  Fixture test(/*rows_max=*/1000, /*started=*/false);
  test.AwaitWord("has begun");
  test.Add(1, 2);
  test.writer.Close(absl::InfiniteDuration());
  EXPECT_EQ(test.disk->steps(), Steps(1, 2));

  Fixture later(/*rows_max=*/1000, /*started=*/false);
  later.disk->Fill();
  later.Add(1, 2);
  later.AwaitWord("ENOSPC");
  later.disk->MakeRoom();
  later.AwaitWord("no row is missing");
  later.writer.Close(absl::InfiniteDuration());
  EXPECT_EQ(later.disk->steps(), Steps(1, 2));
}

TEST(MetricsWriter, ClosesAFileThatWasNeverBegun) {
  const auto disk = std::make_shared<Disk>();
  disk->Fill();
  std::vector<std::string> said;
  {
    MetricsWriter writer(
        std::make_unique<FileOnDisk>(disk),
        {.notice = [&](const std::string& text) { said.push_back(text); }});
    disk->AwaitTries(1);
    writer.Close(absl::InfiniteDuration());
  }
  EXPECT_THAT(said, ElementsAre(HasSubstr("ENOSPC")));
}

TEST(MetricsWriter, WritesATable) {
  const TempDir dir;
  {
    MetricsWriter writer(
        std::make_unique<TableFile>(dir.path(), CsvFormat(), MetricsStart()),
        {.notice = [](const std::string& text) { ADD_FAILURE() << text; }});
    for (int64_t step = 1; step <= 2; ++step) {
      writer.Add(std::make_shared<MetricsRow>(SampleRow(step)));
    }
    writer.Close(absl::InfiniteDuration());
  }
  EXPECT_EQ(ReadText(dir.path() + "/metrics.csv"),
            CsvFormat().header() + CsvFormat().line(SampleRow(1)) +
                CsvFormat().line(SampleRow(2)));
}

}  // namespace
}  // namespace troupe
