// Folders and comparisons for tests of Hugging Face directories.
#ifndef TROUPE_TESTS_CLIENTS_HUGGING_FACE_ROUND_TRIP_H_
#define TROUPE_TESTS_CLIENTS_HUGGING_FACE_ROUND_TRIP_H_

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/hugging_face_weights.h"

namespace troupe {

// tests/oracle/hf/<name>, made by transformers.
inline std::string HfFixture(const std::string& name) {
  return absl::StrCat("tests/oracle/hf/", name);
}

// A fresh path of this test's own; nothing is there.
inline std::string FreshPath(const std::string& name) {
  const std::string path = absl::StrCat(
      ::testing::TempDir(), "/",
      ::testing::UnitTest::GetInstance()->current_test_info()->name(), "-",
      name);
  std::filesystem::remove_all(path);
  return path;
}

// A copy of a fixture that may be changed.
inline std::string CopyOfFixture(const std::string& name) {
  const std::string copy = FreshPath(name);
  std::filesystem::copy(HfFixture(name), copy);
  for (const auto& file : std::filesystem::directory_iterator(copy)) {
    std::filesystem::permissions(file.path(),
                                 std::filesystem::perms::owner_all);
  }
  return copy;
}

inline std::vector<float> AllOf(const HuggingFaceWeights& weights,
                                const SafetensorsTensor& tensor) {
  std::vector<float> values(ElementCount(tensor.shape));
  EXPECT_TRUE(
      weights
          .ReadF32(tensor.name,
                   {.begin = 0, .count = static_cast<int64_t>(values.size())},
                   values.data())
          .ok());
  return values;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_CLIENTS_HUGGING_FACE_ROUND_TRIP_H_
