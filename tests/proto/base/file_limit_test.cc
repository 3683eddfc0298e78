#include "proto/base/file_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace troupe {
namespace {

class FileLimitTest : public testing::Test {
 protected:
  FileLimitTest() { getrlimit(RLIMIT_NOFILE, &before_); }
  ~FileLimitTest() override { setrlimit(RLIMIT_NOFILE, &before_); }
  rlimit before_ = {};
};

TEST_F(FileLimitTest, TakesAsMuchAsItMay) {
  const rlimit low = {.rlim_cur = 100, .rlim_max = before_.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(ReadFileLimit().max, 100);
  const FileLimit raised = RaiseFileLimit();
  EXPECT_EQ(raised.max, static_cast<int64_t>(before_.rlim_max));
  EXPECT_EQ(ReadFileLimit().max, raised.max);
}

TEST_F(FileLimitTest, CountsWhatIsOpen) {
  const FileLimit before = ReadFileLimit();
  EXPECT_GE(before.open, 3) << "stdin, stdout, stderr";
  const int file = dup(0);
  ASSERT_GE(file, 0);
  EXPECT_EQ(ReadFileLimit().open, before.open + 1);
  EXPECT_EQ(ReadFileLimit().left(), before.left() - 1);
  close(file);
}

}  // namespace
}  // namespace troupe
