#include "worker/doctor/storage.h"

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "storage/engine/in_memory_engine.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kGiB = 1 << 30;

TEST(IoUring, IsReplacedWhereTheKernelRefusesIt) {
  EXPECT_EQ(JudgeIoUring(absl::OkStatus()).state, FindingState::kOk);
  const Finding refused =
      JudgeIoUring(absl::UnavailableError("io_uring is forbidden here"));
  EXPECT_EQ(refused.state, FindingState::kFail);
  EXPECT_EQ(refused.text,
            "io_uring is forbidden here; the thread pool is used instead, "
            "which is slower");
  EXPECT_FALSE(CheckIoUring().text.empty());
}

TEST(WriteAndReadBack, ComparesWhatItReads) {
  InMemoryEngine engine(4);
  EXPECT_EQ(WriteAndReadBack(engine, "file"), absl::OkStatus());
  EXPECT_EQ(engine.Content("file").size(), 1 << 20);
  EXPECT_EQ(engine.in_flight(), 0);
}

TEST(WriteAndReadBack, HandsErrorsOn) {
  InMemoryEngine full(4, {.disk_bytes = 4096});
  EXPECT_TRUE(absl::IsResourceExhausted(WriteAndReadBack(full, "file")));
  InMemoryEngine unread(4, {.errors = {{1, EIO}}});
  EXPECT_TRUE(absl::IsUnavailable(WriteAndReadBack(unread, "file")));
  InMemoryEngine unsynced(4, {.sync_error = EIO});
  EXPECT_FALSE(WriteAndReadBack(unsynced, "file").ok());
}

TEST(StateFolder, SaysWhatWasTried) {
  StateFolder folder = {
      .path = "/state", .engine = "io_uring", .free_bytes = 9 * kGiB};
  EXPECT_EQ(JudgeStateFolder(folder).state, FindingState::kOk);
  EXPECT_EQ(JudgeStateFolder(folder).text,
            "/state: io_uring wrote 1 MiB and read it back; 9.0 GiB free");
  folder.free_bytes = kGiB;
  EXPECT_EQ(JudgeStateFolder(folder).state, FindingState::kWarn);
  folder.trial = absl::PermissionDeniedError("open /state/x: EACCES");
  EXPECT_EQ(JudgeStateFolder(folder).state, FindingState::kFail);
  EXPECT_EQ(JudgeStateFolder(folder).text, "open /state/x: EACCES");
}

TEST(NvmeTier, SaysHowFastItIs) {
  const Finding found = JudgeNvme("/nvme", "io_uring",
                                  SpillRates{.write_bytes_per_second = 2e9,
                                             .read_bytes_per_second = 3e9,
                                             .write_latency_us = 20,
                                             .read_latency_us = 80});
  EXPECT_EQ(found.state, FindingState::kOk);
  EXPECT_EQ(found.text,
            "/nvme: io_uring writes 2.00 GB/s, reads 3.00 GB/s, 4 KiB in 20 us "
            "and 80 us");
}

TEST(NvmeTier, IsTriedWhereItIsNamed) {
  EXPECT_EQ(CheckNvme("").state, FindingState::kNone);
  const Finding missing = CheckNvme("/no/such/folder");
  EXPECT_EQ(missing.state, FindingState::kFail);
  EXPECT_EQ(missing.text.rfind("/no/such/folder: ", 0), 0) << missing.text;
  EXPECT_FALSE(missing.advice.empty());
}

TEST(StateFolder, IsTriedWithoutATrace) {
  const fs::path above = fs::path(testing::TempDir()) / "doctor_state";
  fs::remove_all(above);
  fs::create_directories(above);
  // Not there yet: the folder above it is tried.
  const Finding finding = CheckStateFolder((above / "deep" / "er").string());
  EXPECT_NE(finding.state, FindingState::kFail) << finding.text;
  EXPECT_EQ(finding.text.rfind(above.string() + ": ", 0), 0) << finding.text;
  EXPECT_TRUE(fs::is_empty(above));
  // Where a file stands nothing can be written, by any user.
  std::ofstream(above / "file") << "x";
  EXPECT_EQ(CheckStateFolder((above / "file").string()).state,
            FindingState::kFail);
}

}  // namespace
}  // namespace troupe
