#include "worker/engine/data_check.h"

#include <fcntl.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "storage/dataset/token_file_writer.h"
#include "tests/storage/endless_tokens.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

class DataCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto writer = TokenFileWriter::Create(
        {.path = path_, .vocab_size = 256, .tokenizer = "bytes"});
    CHECK_OK(writer.status());
    CHECK_OK((*writer)->Append(std::vector<int32_t>(3'000'000, 7)));
    CHECK_OK((*writer)->Finish().status());
  }

  TempDir dir_;
  const std::string path_ = dir_.File("t");
};

TEST_F(DataCheckTest, IsOkForWhatWasWritten) {
  const auto file = TokenFile::Open(path_);
  ASSERT_TRUE(file.ok());
  const DataCheck check({{.field = "data.tokens", .file = &*file}});
  EXPECT_TRUE(check.AwaitEnd(absl::InfiniteDuration()).ok());
  EXPECT_TRUE(check.status().ok());
  EXPECT_TRUE(check.holds());
}

TEST_F(DataCheckTest, NamesTheFileWhoseBytesChanged) {
  const int fd = open(path_.c_str(), O_RDWR);
  CHECK_EQ(pwrite(fd, "x", 1, 2'000'000), 1);
  close(fd);
  const auto file = TokenFile::Open(path_);  // its header is whole
  ASSERT_TRUE(file.ok());
  const DataCheck check({{.field = "data.tokens", .file = &*file}});
  EXPECT_TRUE(Fails(check.AwaitEnd(absl::InfiniteDuration()),
                    absl::StatusCode::kDataLoss,
                    {"data.tokens: " + path_, "prepare the file again"}));
  EXPECT_FALSE(check.status().ok());
  EXPECT_FALSE(check.holds());
}

TEST_F(DataCheckTest, NamesTheFieldOfTheFile) {
  const auto sound = TokenFile::Open(path_);
  ASSERT_TRUE(sound.ok());
  const std::string other = dir_.File("other");
  WriteText(other, ReadText(path_));
  const int fd = open(other.c_str(), O_RDWR);
  CHECK_EQ(pwrite(fd, "x", 1, 2'000'000), 1);
  close(fd);
  const auto damaged = TokenFile::Open(other);
  ASSERT_TRUE(damaged.ok());
  const DataCheck check({{.field = "data.tokens", .file = &*sound},
                         {.field = "data.validation", .file = &*damaged}});
  EXPECT_TRUE(Fails(check.AwaitEnd(absl::InfiniteDuration()),
                    absl::StatusCode::kDataLoss,
                    {"data.validation: " + other}));
}

TEST_F(DataCheckTest, GivesUpWhenTheJobEnds) {
  const std::string path = dir_.File("endless");
  WriteEndlessTokens(path, 256);
  const auto file = TokenFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const DataCheck check({{.field = "data.tokens", .file = &*file}});
  EXPECT_FALSE(check.holds()) << "it is not known yet";
  EXPECT_TRUE(check.status().ok());
}  // without this the test would not end

}  // namespace
}  // namespace troupe
