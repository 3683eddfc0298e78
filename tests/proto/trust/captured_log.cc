#include "tests/proto/trust/captured_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"

namespace troupe {

CapturedLog::CapturedLog()
    : path_(testing::TempDir() + "/captured.log"), stderr_(dup(STDERR_FILENO)) {
  const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  CHECK(file >= 0 && dup2(file, STDERR_FILENO) >= 0);
  close(file);
}

CapturedLog::~CapturedLog() {
  dup2(stderr_, STDERR_FILENO);
  close(stderr_);
}

std::string CapturedLog::Await(size_t lines, const std::string& words) const {
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (Count(words) < lines && absl::Now() < deadline) {
    std::this_thread::yield();
  }
  return Text();
}

size_t CapturedLog::Count(const std::string& words) const {
  std::istringstream text(Text());
  size_t count = 0;
  for (std::string line; std::getline(text, line);) {
    count += line.find(words) != line.npos ? 1 : 0;
  }
  return count;
}

std::string CapturedLog::Text() const {
  std::stringstream text;
  text << std::ifstream(path_).rdbuf();
  return text.str();
}

}  // namespace troupe
