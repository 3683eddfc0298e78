#include "scheduler/store/state_lock.h"

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "storage/disk/file_lock.h"

namespace troupe {
namespace {

TEST(StateLock, OneHolderAtATime) {
  const std::string directory = testing::TempDir() + "/lock-test/deep";
  auto first = StateLock::Take(directory);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = StateLock::Take(directory);
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_TRUE(absl::StrContains(second.status().message(),
                                "the scheduler with " + ThisProcessName()))
      << second.status();
  EXPECT_TRUE(absl::StrContains(second.status().message(), directory));
  first->reset();
  EXPECT_TRUE(StateLock::Take(directory).ok());
}

TEST(StateLock, SaysWhyADirectoryWillNotDo) {
  const std::string file = testing::TempDir() + "/a-file";
  fclose(fopen(file.c_str(), "w"));
  const absl::Status status = StateLock::Take(file + "/state").status();
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(absl::StrContains(status.message(), "a-file/state")) << status;
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  const std::string closed = testing::TempDir() + "/closed";
  mkdir(closed.c_str(), 0500);
  EXPECT_TRUE(
      absl::IsPermissionDenied(StateLock::Take(closed + "/x").status()));
}

}  // namespace
}  // namespace troupe
