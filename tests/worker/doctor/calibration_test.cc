#include "worker/doctor/calibration.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

class CalibrationCacheTest : public testing::Test {
 protected:
  CalibrationCacheTest() : folder_(fs::path(testing::TempDir()) / "cache") {
    fs::remove_all(folder_);
  }
  void Write(const std::string& name, const std::string& device) {
    fs::create_directories(folder_);
    std::ofstream(folder_ / name) << "device: \"" << device << "\"\n";
  }
  std::vector<int> Threads() {
    return ReadCalibrationCache(
               {.folder = folder_.string(), .device = "cpu ours, v1"})
        .threads;
  }

  const fs::path folder_;
};

TEST_F(CalibrationCacheTest, ListsTheFilesOfThisDevice) {
  EXPECT_TRUE(Threads().empty());
  Write("calibration-8.textproto", "cpu ours, v1");
  Write("calibration-2.textproto", "cpu ours, v1");
  Write("calibration-4.textproto", "cpu another, v1");
  Write("calibration-2.textproto.lock", "cpu ours, v1");
  Write("notes.txt", "cpu ours, v1");
  EXPECT_EQ(Threads(), (std::vector<int>{2, 8}));
}

TEST_F(CalibrationCacheTest, OfTheUserIsLookedAt) {
  setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  const Finding none = CheckCalibration();
  EXPECT_EQ(none.state, FindingState::kNone);
  EXPECT_NE(none.text.find(folder_.string()), std::string::npos) << none.text;
}

TEST(JudgeCalibration, SaysForHowManyThreads) {
  EXPECT_EQ(JudgeCalibration({.folder = "/c", .threads = {1}}).text,
            "measured for workers of 1 thread, in /c");
  EXPECT_EQ(JudgeCalibration({.folder = "/c", .threads = {1, 4}}).text,
            "measured for workers of 1, 4 threads, in /c");
  EXPECT_EQ(JudgeCalibration({.folder = "/c"}).state, FindingState::kNone);
}

}  // namespace
}  // namespace troupe
