// A directory of a test's own, removed with all in it at the end.
#ifndef TROUPE_TESTS_STORAGE_TEMP_DIR_H_
#define TROUPE_TESTS_STORAGE_TEMP_DIR_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"

namespace troupe {

class TempDir {
 public:
  TempDir() : TempDir(::testing::TempDir()) {}
  explicit TempDir(const std::string& parent)
      : path_(parent + "/storage-XXXXXX") {
    CHECK(mkdtemp(path_.data()) != nullptr) << path_;
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string File(absl::string_view name) const {
    return path_ + "/" + std::string(name);
  }

 private:
  std::string path_;
};

inline std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline void WriteText(const std::string& path, absl::string_view text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  CHECK(out.good()) << path;
}

// Whether the status has this code and its message all of these parts.
inline ::testing::AssertionResult Fails(
    const absl::Status& status, absl::StatusCode code,
    std::initializer_list<absl::string_view> parts) {
  if (status.code() != code) {
    return ::testing::AssertionFailure() << status.ToString();
  }
  for (const absl::string_view part : parts) {
    if (status.message().find(part) == absl::string_view::npos) {
      return ::testing::AssertionFailure()
             << "\"" << part << "\" is not in: " << status.ToString();
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_TEMP_DIR_H_
