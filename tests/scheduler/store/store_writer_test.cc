#include "scheduler/store/store_writer.h"

#include <filesystem>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

class StoreWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/writer-" +
                 testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    store_ = *Store::Open(directory_);
  }

  static Actions JobIn(JobState state) {
    auto row = std::make_shared<JobRow>();
    row->status.set_id(1);
    row->status.set_state(state);
    return {PersistJob{row}};
  }

  static absl::Status FlushAndWait(StoreWriter& writer) {
    absl::Notification done;
    absl::Status result;
    writer.Flush([&](const absl::Status& status) {
      result = status;
      done.Notify();
    });
    done.WaitForNotification();
    return result;
  }

  // As another reader of the file sees it.
  std::vector<StoredJob> OnDisk() const {
    return (*Store::Open(directory_))->Load({})->jobs;
  }

  std::string directory_;
  std::unique_ptr<Store> store_;
};

TEST_F(StoreWriterTest, FlushedIsOnTheDisk) {
  StoreWriter writer(*store_);
  for (int i = 0; i < 20; ++i) {
    writer.Add(JobIn(i % 2 == 0 ? QUEUED : RUNNING));
    ASSERT_TRUE(FlushAndWait(writer).ok());
    const auto jobs = OnDisk();
    ASSERT_EQ(jobs.size(), 1u);
    EXPECT_EQ(jobs[0].row.status.state(), i % 2 == 0 ? QUEUED : RUNNING);
  }
}

TEST_F(StoreWriterTest, TheEndWritesWhatIsQueued) {
  {
    StoreWriter writer(*store_);
    writer.Add(JobIn(RUNNING));
    Actions steps;
    for (int step = 1; step <= 100; ++step) {
      PersistStep row{JobId(1), {}};
      row.step.set_step(step);
      steps.push_back(row);
    }
    writer.Add(steps);
  }
  ASSERT_EQ(OnDisk().size(), 1u);
  EXPECT_EQ(OnDisk()[0].steps.size(), 100u);
}

TEST_F(StoreWriterTest, AFailureIsToldAndTriedAgain) {
  // Another process writes and does not end: this one cannot.
  auto other = Database::Open(directory_ + "/troupe.db");
  ASSERT_TRUE(other->Execute("BEGIN IMMEDIATE").ok());
  StoreWriter writer(*store_);
  writer.Add(JobIn(QUEUED));
  EXPECT_FALSE(FlushAndWait(writer).ok());
  EXPECT_FALSE(writer.health().ok());
  writer.Add(JobIn(RUNNING));
  ASSERT_TRUE(other->Execute("ROLLBACK").ok());
  ASSERT_TRUE(FlushAndWait(writer).ok());
  EXPECT_TRUE(writer.health().ok());
  EXPECT_EQ(OnDisk()[0].row.status.state(), RUNNING) << "the newest row wins";
}

// A client that submits to a full disk again and again, and cancels.
TEST_F(StoreWriterTest, JobsThatAreForgottenTakeNoRoom) {
  auto other = Database::Open(directory_ + "/troupe.db");
  ASSERT_TRUE(other->Execute("BEGIN IMMEDIATE").ok());
  StoreWriter writer(*store_);
  for (int job = 1; job <= 100; ++job) {
    Actions actions = JobIn(CANCELLED);
    auto row = std::make_shared<JobRow>(*std::get<PersistJob>(actions[0]).row);
    row->status.set_id(job);
    actions = {PersistJob{row}};
    if (job > 3) actions.push_back(ForgetJob{JobId(job - 3)});
    writer.Add(actions);
  }
  EXPECT_FALSE(FlushAndWait(writer).ok());
  EXPECT_EQ(writer.jobs_queued(), 3u);
  ASSERT_TRUE(other->Execute("ROLLBACK").ok());
  ASSERT_TRUE(FlushAndWait(writer).ok());
  EXPECT_EQ(OnDisk().size(), 3u);
}

}  // namespace
}  // namespace troupe
