// What disks and other people do to a spill file, and what becomes of the move
// that meets it.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/disk/file_lock.h"
#include "storage/engine/in_memory_engine.h"
#include "storage/spill/stale_spill_files.h"
#include "tests/storage/spill/spill_fixture.h"

namespace troupe {
namespace {

constexpr uint64_t kPage = kIoAlignment;
constexpr uint64_t kBytes = 16 * kPage;

SpillFileOptions In(const TempDir& dir, const SpillOwner& owner = {}) {
  return {.directory = dir.path(), .bytes = kBytes, .owner = owner};
}

// On a disk that a test makes fail.
class SpillOnFaultyDisk : public testing::Test {
 protected:
  TempDir dir_;
  SpillDiskInMemory engine_{4};
  Spill spill_ = MakeSpill(engine_, In(dir_));
  const SpillMemory out_{kBytes, 1};
  const SpillMemory in_{kBytes, 2};
};

TEST_F(SpillOnFaultyDisk, AFullDiskFailsTheWriteOnly) {
  ASSERT_TRUE(spill_.Write({0, 4 * kPage}, out_.data()).ok());
  engine_.set_faults({.disk_bytes = kSpillHeaderBytes + 7 * kPage});
  EXPECT_TRUE(Fails(spill_.Write({4 * kPage, 8 * kPage}, out_.data()),
                    absl::StatusCode::kResourceExhausted,
                    {spill_.path(), "write of 4096 bytes at offset 32768",
                     "ENOSPC", "free space"}));
  EXPECT_EQ(spill_.queue->in_flight(), 0);
  // What fitted was of a write that failed.
  EXPECT_TRUE(absl::IsFailedPrecondition(
      spill_.Read({4 * kPage, 2 * kPage}, in_.data())));
  EXPECT_TRUE(spill_.Read({0, 4 * kPage}, in_.data()).ok());
  EXPECT_EQ(memcmp(in_.data(), out_.data(), 4 * kPage), 0);
}

TEST_F(SpillOnFaultyDisk, AnErrorOfTheDeviceIsNamed) {
  ASSERT_TRUE(spill_.Write({0, kBytes}, out_.data()).ok());
  engine_.set_faults({.errors = {{8 + 3, EIO}}});  // after eight of the write
  EXPECT_TRUE(Fails(spill_.Read({0, kBytes}, in_.data()),
                    absl::StatusCode::kUnavailable,
                    {spill_.path(), "read of 8192 bytes at offset 28672", "EIO",
                     "distrust the disk"}));
  EXPECT_TRUE(spill_.Read({0, 8 * kPage}, in_.data()).ok());
  engine_.set_faults({.errors = {{8 + 8 + 4 + 5, EIO}}});
  EXPECT_TRUE(Fails(spill_.Write({0, kBytes}, out_.data()),
                    absl::StatusCode::kUnavailable, {"write of", "EIO"}));
  engine_.set_faults({});
  EXPECT_TRUE(spill_.Write({0, kBytes}, out_.data()).ok());
  EXPECT_TRUE(spill_.Read({0, kBytes}, in_.data()).ok());
  EXPECT_TRUE(in_ == out_);
}

TEST_F(SpillOnFaultyDisk, ShortAndInterruptedOperationsAreContinued) {
  engine_.set_faults({.operation_bytes_max = 1000,
                      .errors = {{2, EINTR}, {5, EAGAIN}, {100, EINTR}},
                      .shuffle_seed = 5});
  ASSERT_TRUE(spill_.Write({0, kBytes}, out_.data()).ok());
  ASSERT_TRUE(spill_.Read({0, kBytes}, in_.data()).ok());
  EXPECT_TRUE(in_ == out_);
}

TEST_F(SpillOnFaultyDisk, ALostWriteIsFound) {
  ASSERT_TRUE(spill_.Write({0, kBytes}, out_.data()).ok());
  const std::string before = engine_.Content(spill_.path());
  ASSERT_TRUE(spill_.Write({0, kBytes}, in_.data()).ok());
  // The disk said that it has written all, and one page is the old one.
  engine_.Content(spill_.path())
      .replace(kSpillHeaderBytes + 5 * kPage, kPage,
               before.substr(kSpillHeaderBytes + 5 * kPage, kPage));
  EXPECT_TRUE(Fails(spill_.Read({0, kBytes}, out_.data()),
                    absl::StatusCode::kDataLoss,
                    {spill_.path(), "bytes 24576 to 28672", "CRC-32C",
                     "or the disk lost a write"}));
}

// What follows is on the disk of the machine.
class SpillOfSeveral : public testing::Test {
 protected:
  // Writes past the engine, as another program would.
  static void Overwrite(const std::string& path, uint64_t offset,
                        const std::string& text) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file << text << std::flush;
    ASSERT_TRUE(file.good());
  }

  TempDir dir_;
  const std::unique_ptr<IoEngine> engine_ = SmallEngine();
  const SpillMemory out_{kBytes, 1};
  const SpillMemory in_{kBytes, 2};
};

TEST_F(SpillOfSeveral, AFileThatSomebodyChangedIsNamed) {
  Spill spill = MakeSpill(*engine_, In(dir_));
  ASSERT_TRUE(spill.Write({0, kBytes}, out_.data()).ok());
  Overwrite(spill.path(), kSpillHeaderBytes + 3 * kPage + 7, "hello");
  const absl::Status read = spill.Read({0, kBytes}, in_.data());
  EXPECT_TRUE(Fails(read, absl::StatusCode::kDataLoss,
                    {spill.path(), "bytes 16384 to 20480",
                     "somebody changed the file", "see who writes there"}));
  EXPECT_EQ(read.message().find("it now begins with"), std::string::npos);
  EXPECT_TRUE(spill.Read({4 * kPage, 12 * kPage}, in_.data()).ok())
      << "the rest is good";
  // It can be used again: what is written anew is right.
  EXPECT_TRUE(spill.Write({0, kBytes}, out_.data()).ok());
  EXPECT_TRUE(spill.Read({0, kBytes}, in_.data()).ok());
  EXPECT_TRUE(in_ == out_);
}

TEST_F(SpillOfSeveral, AForeignFileInItsPlaceIsNamed) {
  Spill spill = MakeSpill(*engine_, In(dir_));
  ASSERT_TRUE(spill.Write({0, kBytes}, out_.data()).ok());
  Overwrite(spill.path(), 0,
            SpillHeader({.cluster = "other", .job = "1"}) + "\n" +
                std::string(kSpillHeaderBytes, 'x'));
  EXPECT_TRUE(
      Fails(spill.Read({0, kBytes}, in_.data()), absl::StatusCode::kDataLoss,
            {"it now begins with: troupe spill file 1: cluster other, job 1"}));
}

TEST_F(SpillOfSeveral, AFileThatWasCutIsNamed) {
  Spill spill = MakeSpill(*engine_, In(dir_));
  ASSERT_TRUE(spill.Write({0, kBytes}, out_.data()).ok());
  std::filesystem::resize_file(spill.path(), kSpillHeaderBytes + 4 * kPage);
  EXPECT_TRUE(Fails(spill.Read({4 * kPage, 4 * kPage}, in_.data()),
                    absl::StatusCode::kDataLoss,
                    {spill.path(), "offset 20480", "somebody cut it"}));
}

TEST_F(SpillOfSeveral, TwoClustersShareADirectory) {
  const auto other_engine = SmallEngine();
  Spill one = MakeSpill(*engine_, In(dir_, {.cluster = "one", .job = "1"}));
  Spill two =
      MakeSpill(*other_engine, In(dir_, {.cluster = "two", .job = "1"}));
  EXPECT_EQ(NamesIn(dir_.path()).size(), 2u);
  ASSERT_TRUE(one.Write({0, kBytes}, out_.data()).ok());
  ASSERT_TRUE(two.Write({0, kBytes}, in_.data()).ok());
  // Neither cleans up after the other while that lives.
  EXPECT_EQ(RemoveStaleSpillFiles(dir_.path())->count, 0);
  const SpillMemory read(kBytes, 3);
  ASSERT_TRUE(one.Read({0, kBytes}, read.data()).ok());
  EXPECT_TRUE(read == out_);
  ASSERT_TRUE(two.Read({0, kBytes}, read.data()).ok());
  EXPECT_TRUE(read == in_);
  two.queue.reset();
  two.file.reset();
  EXPECT_EQ(NamesIn(dir_.path()).size(), 1u);
  ASSERT_TRUE(one.Read({0, kBytes}, read.data()).ok());
  EXPECT_TRUE(read == out_);
}

// A process of its own that writes without end. Tells `begun` when it does.
pid_t StartWriter(const SpillFileOptions& options, int begun) {
  const pid_t child = fork();
  CHECK_GE(child, 0);
  if (child != 0) return child;
  const auto engine = SmallEngine();
  Spill spill = MakeSpill(*engine, options);
  const SpillMemory data(kBytes, 1);
  int writes = 0;
  std::function<void(const absl::Status&)> again =
      [&](const absl::Status& status) {
        CHECK_OK(status);
        if (++writes == 10) CHECK_EQ(write(begun, "x", 1), 1);
        CHECK_OK(spill.queue->Start(IoKind::kWrite, {0, kBytes}, data.data(),
                                    again));
      };
  CHECK_OK(spill.queue->Start(IoKind::kWrite, {0, kBytes}, data.data(), again));
  spill.queue->Drain();  // does not return
  _exit(1);
}

TEST_F(SpillOfSeveral, TheNextStartRemovesWhatAKilledOneLeft) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = StartWriter(In(dir_, {.cluster = "c"}), pipe_ends[1]);
  char begun;
  ASSERT_EQ(read(pipe_ends[0], &begun, 1), 1);
  ASSERT_EQ(NamesIn(dir_.path()).size(), 1u);
  const std::string left = dir_.File(NamesIn(dir_.path())[0]);
  EXPECT_TRUE(FileLock::IsHeld(left));
  EXPECT_EQ(RemoveStaleSpillFiles(dir_.path())->count, 0) << "it lives";
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(NamesIn(dir_.path()).size(), 1u) << "nobody has removed it yet";
  EXPECT_TRUE(IsSpillHeader(ReadText(left)));
  {
    const Spill next = MakeSpill(*engine_, In(dir_));
    EXPECT_FALSE(std::filesystem::exists(left));
    EXPECT_EQ(NamesIn(dir_.path()).size(), 1u) << "its own";
  }
  EXPECT_EQ(NamesIn(dir_.path()), std::vector<std::string>());
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

}  // namespace
}  // namespace troupe
