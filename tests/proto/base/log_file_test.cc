#include "proto/base/log_file.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

std::string Contents(const std::string& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// While it lives this process can open no file.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none = {.rlim_cur = 0, .rlim_max = before_.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

class LogFileTest : public ::testing::Test {
 protected:
  LogFileTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  // A line fills a file.
  std::unique_ptr<LogFile> Open() {
    auto file = LogFile::Open({.path = path_, .bytes_max = 4, .older_max = 3});
    CHECK_OK(file.status());
    return *std::move(file);
  }
  std::string Older(int number) const {
    return Contents(path_ + "." + std::to_string(number));
  }

  const std::string folder_ = testing::TempDir() + "log_file";
  const std::string path_ = folder_ + "/log";
};

TEST_F(LogFileTest, OlderFilesStayWhereNoNewOneCanBeOpened) {
  const auto file = Open();
  for (const char* line : {"a\n", "bbb\n", "ccc\n"})
    CHECK_OK(file->Write(line));
  {
    const NoMoreFiles none;
    for (int i = 0; i < 5; ++i) CHECK_OK(file->Write("ddd\n"));
  }
  EXPECT_EQ(Older(3), "a\n");
  EXPECT_EQ(Older(2), "bbb\n");
  EXPECT_EQ(Older(1), "ccc\nddd\nddd\nddd\nddd\nddd\n");
  // A new one is opened as soon as that can be, and all goes on.
  CHECK_OK(file->Write("eee\n"));
  EXPECT_EQ(Contents(path_), "eee\n");
  CHECK_OK(file->Write("fff\n"));
  EXPECT_EQ(Contents(path_), "fff\n");
  EXPECT_EQ(Older(1), "eee\n");
  EXPECT_EQ(Older(3), "bbb\n");
}

TEST_F(LogFileTest, OlderFilesStayWhereItCannotBeMoved) {
  std::ofstream(path_ + ".1") << "older";
  fs::create_directories(path_ + ".0/in_the_way");
  const auto file = Open();
  for (int i = 0; i < 5; ++i) CHECK_OK(file->Write("aaa\n"));
  EXPECT_EQ(Older(1), "older");
  EXPECT_EQ(Contents(path_), "aaa\naaa\naaa\naaa\naaa\n");
}

// As logrotate does, and tells us only later.
TEST_F(LogFileTest, AFullOneThatSomebodyMovedIsNotMovedAgain) {
  const auto file = Open();
  CHECK_OK(file->Write("aaa\n"));
  fs::rename(path_, path_ + ".moved");
  CHECK_OK(file->Write("bbb\n"));
  EXPECT_EQ(Contents(path_ + ".moved"), "aaa\n");
  EXPECT_EQ(Contents(path_), "bbb\n");
  EXPECT_FALSE(fs::exists(path_ + ".1"));
}

}  // namespace
}  // namespace troupe
