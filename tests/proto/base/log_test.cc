#include "proto/base/log.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Contents(const std::string& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::string Fresh(const std::string& name) {
  const std::string folder = testing::TempDir() + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder + "/log";
}

// A pipe that is full.
struct FullPipe {
  FullPipe() {
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    // Room for one line, at most.
    EXPECT_GT(fcntl(ends[1], F_SETPIPE_SZ, 4096), 0);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    const std::string page(4096, '#');
    while (write(ends[1], page.data(), page.size()) > 0) {
    }
    fcntl(ends[1], F_SETFL, 0);
  }
  ~FullPipe() {
    close(ends[0]);
    close(ends[1]);
  }
  std::string ReadSome() const {
    char some[4096];
    const ssize_t bytes = read(ends[0], some, sizeof(some));
    CHECK_GT(bytes, 0);
    return std::string(some, static_cast<size_t>(bytes));
  }
  int ends[2] = {-1, -1};
};

// In a process of its own, which may start a log: what wait() said.
int InAProcess(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    body();
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// First, so that no test before it has started the log.
TEST(Log, GoesToStderrBeforeItIsStarted) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  LogInfo("early");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("early"),
            std::string::npos);
}

TEST(Log, NobodyWaitsForAPipeThatNobodyReads) {
  const std::string file = Fresh("full_pipe");
  FullPipe pipe;
  const int status = InAProcess([&] {
    dup2(pipe.ends[1], STDERR_FILENO);
    CHECK_OK(StartLog({.name = "s", .file = file}));
    for (int i = 0; i < 10'000; ++i) LogInfo(absl::StrCat("line ", i));
    // The file's own queue goes on.
    while (Contents(file).find("line 9999") == std::string::npos) {
      std::this_thread::yield();
    }
  });
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Log, SaysHowManyLinesWereDropped) {
  const std::string heard = Fresh("dropped");
  FullPipe pipe;
  const int status = InAProcess([&] {
    dup2(pipe.ends[1], STDERR_FILENO);
    CHECK_OK(StartLog({.name = "s", .queued_lines_max = 10}));
    for (int i = 0; i < 1000; ++i) LogInfo(absl::StrCat("line ", i, "."));
    // From now on somebody reads.
    std::string all;
    while (all.find("line 999.") == std::string::npos) all += pipe.ReadSome();
    std::ofstream(heard) << all;
  });
  EXPECT_EQ(status, 0);
  int lines = 0;
  int missing = 0;
  std::ifstream file(heard);
  for (std::string line; std::getline(file, line);) {
    int count = 0;
    std::smatch words;
    lines += std::regex_search(line, std::regex("I s  line [0-9]+\\.$"));
    if (std::regex_search(line, words,
                          std::regex("W s  ([0-9]+) lines of the log are "
                                     "missing before the next one: what reads "
                                     "the log was too slow$")) &&
        absl::SimpleAtoi(words[1].str(), &count)) {
      missing += count;
    }
  }
  EXPECT_GE(missing, 900);
  EXPECT_EQ(lines + missing, 1000);
}

TEST(Log, AFailedCheckWritesWhatIsQueuedAndWaitsForNobody) {
  const std::string file = Fresh("check");
  FullPipe pipe;
  const int status = InAProcess([&] {
    dup2(pipe.ends[1], STDERR_FILENO);
    CHECK_OK(StartLog({.name = "s", .file = file}));
    LogInfo("before");
    CHECK_EQ(1, 2);
  });
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
  EXPECT_THAT(Contents(file), HasSubstr("I s  before\n"));
}

TEST(Log, AnExceptionThatNobodyCatchesIsInTheLog) {
  const std::string file = Fresh("exception");
  FullPipe pipe;
  const int status = InAProcess([&] {
    dup2(pipe.ends[1], STDERR_FILENO);
    CHECK_OK(StartLog({.name = "s", .file = file}));
    std::thread([] { throw std::runtime_error("of Gloo"); }).join();
  });
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
  EXPECT_THAT(Contents(file),
              HasSubstr("E s  nobody caught an exception: of Gloo\n"));
}

TEST(Log, IsOpenedAnewOnHangup) {
  const std::string file = Fresh("hangup");
  const int status = InAProcess([&] {
    // As `troupe up` starts a daemon: stderr is the file, too.
    const int shared = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(shared, STDERR_FILENO);
    close(shared);
    CHECK_OK(StartLog({.name = "s", .file = file}));
    LogInfo("before");
    FlushLog();
    std::filesystem::rename(file, file + ".old");
    kill(getpid(), SIGHUP);
    while (!std::filesystem::exists(file)) std::this_thread::yield();
    LogInfo("after");
    FlushLog();
    // Once the new file is there, stderr follows at once.
    while (Contents(file).find("stray") == std::string::npos) {
      CHECK_EQ(write(STDERR_FILENO, "stray\n", 6), 6);
    }
  });
  EXPECT_EQ(status, 0);
  EXPECT_THAT(Contents(file + ".old"), HasSubstr("before"));
  EXPECT_THAT(Contents(file), HasSubstr("after"));
  // Each line once, although it goes to stderr and to the file.
  EXPECT_EQ(Contents(file).find("after"), Contents(file).rfind("after"));
  EXPECT_THAT(Contents(file), Not(HasSubstr("before")));
}

TEST(Log, FilesAreRotated) {
  const std::string file = Fresh("rotated");
  const int status = InAProcess([&] {
    CHECK_OK(StartLog({.name = "s",
                       .level = LogLevel::kDebug,
                       .file = file,
                       .file_bytes_max = 1000,
                       .older_files_max = 2}));
    for (int i = 0; i < 100; ++i) LogDebug(absl::StrCat("line ", i, "."));
  });
  EXPECT_EQ(status, 0);
  std::string kept;
  for (const char* end : {".2", ".1", ""}) {
    EXPECT_LE(std::filesystem::file_size(file + end), 1000u) << end;
    EXPECT_GE(std::filesystem::file_size(file + end), 1u) << end;
    kept += Contents(file + end);
  }
  EXPECT_FALSE(std::filesystem::exists(file + ".3"));
  EXPECT_THAT(kept, ContainsRegex("line 97\\.\n.*line 98\\.\n.*line 99\\.\n$"));
}

TEST(Log, LinesOfAFullDiskAreCounted) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  const std::string file = Fresh("full_disk");
  const int status = InAProcess([&] {
    std::filesystem::create_symlink("/dev/full", file);
    CHECK_OK(StartLog({.name = "s", .file = file}));
    LogInfo("one");
    LogInfo("two");
    FlushLog();
    std::filesystem::remove(file);
    kill(getpid(), SIGHUP);
    while (!std::filesystem::exists(file)) std::this_thread::yield();
    LogInfo("three");
  });
  EXPECT_EQ(status, 0);
  EXPECT_THAT(Contents(file),
              ContainsRegex("W s  2 lines of the log are missing before the "
                            "next one: No space left on device\n.* three"));
}

TEST(Log, WritesNamedLinesFromTheLevelUp) {
  const std::string file = Fresh("levels");
  ASSERT_TRUE(StartLog({.name = "worker-2", .file = file}).ok());
  LogInfo("joined");
  LogDebug("unseen");
  FlushLog();
  EXPECT_THAT(Contents(file), HasSubstr("I worker-2  joined"));
  EXPECT_THAT(Contents(file), Not(HasSubstr("unseen")));
}

TEST(Log, AnEventIsOneLine) {
  testing::internal::CaptureStderr();
  LogInfo("one\ntwo \x1b[31m" + std::string(100'000, 'x'));
  FlushLog();
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_NE(line.find("one\\ntwo \\x1b[31mxx"), std::string::npos);
  EXPECT_LT(line.size(), 10'000u);
}

TEST(Log, RefusesAFileThatCannotBeOpened) {
  EXPECT_FALSE(StartLog({.name = "x", .file = "/proc/no/such"}).ok());
}

}  // namespace
}  // namespace troupe
