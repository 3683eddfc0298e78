#include "storage/spill/spill_preflight.h"

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/storage/disk/as_nobody.h"
#include "tests/storage/spill/spill_fixture.h"

namespace troupe {
namespace {

absl::StatusOr<SpillRates> Try(const std::string& directory,
                               uint64_t bytes = 1 << 20) {
  const auto engine = SmallEngine();
  const RealClock clock;
  return TrySpillDirectory(
      *engine, clock,
      {.directory = directory, .bytes = bytes, .each = absl::Milliseconds(1)});
}

TEST(SpillPreflight, MeasuresAndLeavesNothing) {
  TempDir dir;
  const auto found = ReadSpillFileSystem(dir.path());
  ASSERT_TRUE(found.ok()) << found.status();
  if (!found->memory.empty()) GTEST_SKIP() << found->memory;
  for (const uint64_t bytes : {uint64_t{4096}, uint64_t{3} << 20}) {
    const auto rates = Try(dir.path(), bytes);
    ASSERT_TRUE(rates.ok()) << rates.status();
    EXPECT_GT(rates->write_bytes_per_second, 0);
    EXPECT_GT(rates->read_bytes_per_second, 0);
    EXPECT_GT(rates->write_latency_us, 0);
    EXPECT_GT(rates->read_latency_us, 0);
  }
  EXPECT_EQ(NamesIn(dir.path()), std::vector<std::string>());
}

// Sees which others have files open when a trial opens its own.
class LonelyEngine final : public SpillDiskInMemory {
 public:
  LonelyEngine(std::atomic<int>& open, std::atomic<int>& most)
      : SpillDiskInMemory(4), open_(open), most_(most) {}

  absl::StatusOr<IoFile> Open(const std::string& path, IoMode mode) override {
    const int now = ++open_;
    for (int most = most_; now > most;) {
      if (most_.compare_exchange_weak(most, now)) break;
    }
    return SpillDiskInMemory::Open(path, mode);
  }
  absl::Status Close(IoFile file) override {
    --open_;
    return SpillDiskInMemory::Close(file);
  }

 private:
  std::atomic<int>& open_;
  std::atomic<int>& most_;
};

// Else each would say how fast a part of the disk is.
TEST(SpillPreflight, WhoStartsAtOnceTakesTurns) {
  TempDir dir;
  const RealClock clock;
  std::atomic<int> open = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      LonelyEngine engine(open, most);
      const auto rates = TrySpillDirectory(engine, clock,
                                           {.directory = dir.path(),
                                            .bytes = 1 << 20,
                                            .each = absl::Milliseconds(20)});
      EXPECT_TRUE(rates.ok()) << rates.status();
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(NamesIn(dir.path()), std::vector<std::string>());
}

TEST(SpillPreflight, SaysRatesInOneLine) {
  EXPECT_EQ(SpillRatesText({.write_bytes_per_second = 2.414e9,
                            .read_bytes_per_second = 1.2e9,
                            .write_latency_us = 85.4,
                            .read_latency_us = 90}),
            "writes 2.41 GB/s, reads 1.20 GB/s, 4 KiB in 85 us and 90 us");
}

TEST(SpillPreflight, RefusesWhatIsNoDirectory) {
  TempDir dir;
  WriteText(dir.File("file"), "x");
  EXPECT_TRUE(Fails(Try(dir.File("none")).status(), absl::StatusCode::kNotFound,
                    {dir.File("none"), "make it"}));
  EXPECT_TRUE(Fails(Try(dir.File("file")).status(),
                    absl::StatusCode::kFailedPrecondition,
                    {dir.File("file"), "is not a directory"}));
}

TEST(SpillPreflight, RefusesMemory) {
  const auto found = ReadSpillFileSystem("/dev/shm");
  if (!found.ok() || found->memory.empty()) GTEST_SKIP() << "no tmpfs here";
  EXPECT_TRUE(Fails(Try("/dev/shm").status(),
                    absl::StatusCode::kFailedPrecondition,
                    {"/dev/shm: is tmpfs, which is memory and no disk"}));
}

TEST(SpillPreflight, RefusesAFileSystemThatIsReadOnly) {
  EXPECT_TRUE(
      Fails(JudgeSpillFileSystem({.directory = "/cdrom", .read_only = true}),
            absl::StatusCode::kPermissionDenied,
            {"/cdrom: the file system is read-only"}));
  EXPECT_TRUE(JudgeSpillFileSystem({.directory = "/nvme"}).ok());
}

TEST(SpillPreflight, RefusesADiskThatIsTooSmall) {
  TempDir dir;
  EXPECT_TRUE(Fails(Try(dir.path(), uint64_t{1} << 50).status(),
                    absl::StatusCode::kResourceExhausted,
                    {dir.path(), "GiB are wanted", "are free"}));
}

TEST(SpillPreflight, RefusesADirectoryOfOthers) {
  TempDir dir(kEverybodysDirectory);
  std::filesystem::permissions(dir.path(),
                               std::filesystem::perms::owner_all |
                                   std::filesystem::perms::others_read |
                                   std::filesystem::perms::others_exec);
  if (geteuid() != 0) {
    std::filesystem::permissions(dir.path(),
                                 std::filesystem::perms::owner_read |
                                     std::filesystem::perms::owner_exec);
  }
  const AsNobody nobody;
  EXPECT_TRUE(Fails(Try(dir.path()).status(),
                    absl::StatusCode::kPermissionDenied,
                    {dir.path(), "permission denied; check owner and mode"}));
}

TEST(SpillPreflight, HandsOnWhatTheDiskSays) {
  TempDir dir;
  const RealClock clock;
  SpillDiskInMemory full(4, {.disk_bytes = 100'000});
  EXPECT_TRUE(
      Fails(TrySpillDirectory(full, clock,
                              {.directory = dir.path(), .bytes = 1 << 20})
                .status(),
            absl::StatusCode::kResourceExhausted, {dir.path(), "ENOSPC"}));
  EXPECT_EQ(NamesIn(dir.path()), std::vector<std::string>());
}

}  // namespace
}  // namespace troupe
