#include "worker/doctor/fitness.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "storage/disk/roots.h"
#include "worker/doctor/bounded.h"
#include "worker/doctor/device_answers.h"
#include "worker/doctor/memory.h"
#include "worker/doctor/storage.h"

namespace troupe {
namespace {

TEST(Fitness, SaysWhichChecksFailAndNothingOfTheOthers) {
  const auto finds = [](FindingState state) {
    return [state](const CheckSubject& subject) {
      return Finding{.state = state, .text = subject.nvme_dir + " is odd"};
    };
  };
  Fitness fitness({.nvme_dir = "/s"}, {{"ok", finds(FindingState::kOk)},
                                       {"warn", finds(FindingState::kWarn)},
                                       {"disk", finds(FindingState::kFail)},
                                       {"none", finds(FindingState::kNone)}});
  for (int look = 0; look < 3; ++look) {
    EXPECT_EQ(fitness.Look(), std::vector<std::string>{"disk: /s is odd"});
  }
}

TEST(Fitness, ADiskThatHangsIsUnfitUntilItAnswers) {
  auto hangs = std::make_shared<absl::Notification>();
  auto looks = std::make_shared<std::atomic<int>>(0);
  Fitness fitness({},
                  {{"disk",
                    [=](const CheckSubject&) {
                      if (++*looks == 1) hangs->WaitForNotification();
                      return Finding();
                    }}},
                  absl::Milliseconds(5));
  for (int look = 0; look < 3; ++look) {
    EXPECT_EQ(fitness.Look(),
              std::vector<std::string>{"disk: no answer within 5ms"});
  }
  while (*looks == 0) std::this_thread::yield();
  EXPECT_EQ(*looks, 1) << "no second thread hangs with it";
  hangs->Notify();
  while (!fitness.Look().empty()) {
  }
}

TEST(FastChecks, TryWhatMayChangeWhileAWorkerRuns) {
  const std::string dir = absl::StrCat(testing::TempDir(), "/fitness");
  std::filesystem::create_directories(dir);
  const auto roots = Roots::Install({absl::StrCat("data=", dir)});
  ASSERT_TRUE(roots.ok()) << roots.status();
  EXPECT_TRUE(Fitness({.nvme_dir = dir, .roots = {"data"}}).Look().empty());
  EXPECT_TRUE(std::filesystem::is_empty(dir)) << "something is left";
  EXPECT_TRUE(Fitness({}).Look().empty());
  const auto unfit =
      Fitness({.nvme_dir = dir + "/gone", .roots = {"data"}}).Look();
  ASSERT_EQ(unfit.size(), 1u);
  EXPECT_TRUE(absl::StrContains(unfit[0], "nvme tier: ")) << unfit[0];
  EXPECT_TRUE(absl::StrContains(unfit[0], "ENOENT")) << unfit[0];
}

// Mounts a disk of this size there, for this process and its children; false:
// it may not.
bool MountSmallDisk(const std::string& dir, const char* size = "size=512k") {
  const auto uid = geteuid();
  const auto gid = getegid();
  if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0) {
    return false;
  }
  if (uid != 0) {
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << "0 " << uid << " 1";
    std::ofstream("/proc/self/gid_map") << "0 " << gid << " 1";
  }
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", dir.c_str(), "tmpfs", 0, size) == 0;
}

TEST(FastChecks, FindAnNvmeTierUnfitThatIsFull) {
  const std::string dir = absl::StrCat(testing::TempDir(), "/full");
  std::filesystem::create_directories(dir);
  const Finding found = RunBounded(
      [&dir]() -> Finding {
        if (!MountSmallDisk(dir)) return {.state = FindingState::kNone};
        return {.state = FindingState::kFail,
                .text = absl::StrJoin(Fitness({.nvme_dir = dir}).Look(), "; ")};
      },
      absl::Minutes(1));
  if (found.state == FindingState::kNone) {
    GTEST_SKIP() << "this machine lets no test mount a disk";
  }
  EXPECT_TRUE(absl::StartsWith(found.text, "nvme tier: ")) << found.text;
  for (const absl::string_view part : {"/full/", "ENOSPC", "free space"}) {
    EXPECT_TRUE(absl::StrContains(found.text, part)) << found.text;
  }
}

TEST(FastChecks, FindAnNvmeTierUnfitThatHasAlmostNoRoom) {
  const std::string dir = absl::StrCat(testing::TempDir(), "/narrow");
  std::filesystem::create_directories(dir);
  const Finding found = RunBounded(
      [&dir]() -> Finding {
        if (!MountSmallDisk(dir, "size=8m")) {
          return {.state = FindingState::kNone};
        }
        return {.text = absl::StrJoin(Fitness({.nvme_dir = dir}).Look(), "; ")};
      },
      absl::Minutes(1));
  if (found.state == FindingState::kNone) {
    GTEST_SKIP() << "this machine lets no test mount a disk";
  }
  EXPECT_EQ(found.text, absl::StrCat("nvme tier: ", dir,
                                     ": 8 MiB of its disk are free; a rank "
                                     "needs at least 64 MiB"));
}

// A file system that the kernel has made read-only, after an error of its disk.
TEST(FastChecks, FindARootUnfitThatCannotBeWrittenAnyMore) {
  const std::string dir = absl::StrCat(testing::TempDir(), "/read_only");
  std::filesystem::create_directories(dir);
  const Finding found = RunBounded(
      [&dir]() -> Finding {
        if (!MountSmallDisk(dir)) return {.state = FindingState::kNone};
        const auto roots = Roots::Install({absl::StrCat("ckpt=", dir)});
        if (!roots.ok()) return {.text = roots.status().ToString()};
        const std::vector<std::string> written = WritableRoots({"ckpt"});
        Fitness fitness({.roots = {"ckpt"}, .written_roots = written});
        std::string text = absl::StrJoin(fitness.Look(), "; ");
        mount("none", dir.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr);
        absl::StrAppend(&text, "|", absl::StrJoin(fitness.Look(), "; "));
        // One that never could be written holds data, as it should.
        Fitness reads(
            {.roots = {"ckpt"}, .written_roots = WritableRoots({"ckpt"})});
        return {.text =
                    absl::StrCat(text, "|", absl::StrJoin(reads.Look(), "; "))};
      },
      absl::Minutes(1));
  if (found.state == FindingState::kNone) {
    GTEST_SKIP() << "this machine lets no test mount a disk";
  }
  EXPECT_EQ(found.text,
            "|roots: --root ckpt: its file system is read-only, and was not "
            "when the worker started: EROFS|");
}

// As where no more files may be opened.
TEST(FastChecks, FindMemoryThatCannotBeSharedAnyMore) {
  const Finding found = RunBounded(
      []() -> Finding {
        Fitness shares({.shares_memory = true});
        Fitness never_did({});
        if (!shares.Look().empty()) return {.state = FindingState::kNone};
        const rlimit none = {};
        setrlimit(RLIMIT_NOFILE, &none);
        return {.text = absl::StrJoin(shares.Look(), "; ") + "|" +
                        absl::StrJoin(never_did.Look(), "; ")};
      },
      absl::Minutes(1));
  if (found.state == FindingState::kNone) {
    GTEST_SKIP() << "this machine lets no memory be shared";
  }
  EXPECT_TRUE(absl::StartsWith(found.text,
                               "shared memory: no memory can be shared with "))
      << found.text;
  EXPECT_TRUE(absl::EndsWith(found.text, "|")) << found.text;
}

TEST(FastChecks, FindNothingOnASoundMachine) {
  const auto cpu = NewCpuDevice({.threads = 1});
  const std::string dir = absl::StrCat(testing::TempDir(), "/quick");
  std::filesystem::create_directories(dir);
  Fitness fitness(
      {.nvme_dir = dir,
       .shares_memory = CheckSharedMemory().state == FindingState::kOk,
       .device = DeviceAsker(*cpu, absl::Seconds(30))},
      FastChecks(), absl::Minutes(1));
  for (int look = 0; look < 10; ++look) {
    EXPECT_EQ(fitness.Look(), std::vector<std::string>{});
  }
}

}  // namespace
}  // namespace troupe
