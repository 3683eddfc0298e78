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

TEST_F(CalibrationCacheTest, KnowsWhatBf16Gains) {
  Write("calibration-2.textproto", "cpu ours, v1");
  std::ofstream(folder_ / "calibration-2.textproto", std::ios::app)
      << "matmul { dtype: F32 flops_per_second: 4e9 }\n"
         "matmul { dtype: BF16 flops_per_second: 3e9 }\n";
  const CalibrationCache cache = ReadCalibrationCache(
      {.folder = folder_.string(), .device = "cpu ours, v1"});
  EXPECT_NEAR(cache.bf16.products, 0.75, 1e-9);
}

TEST(JudgeCalibration, SaysWhereF32IsFaster) {
  EXPECT_EQ(JudgeCalibration({.folder = "/c",
                              .threads = {2},
                              .bf16 = {.products = 0.95, .attention = 1.04}})
                .text,
            "measured for workers of 2 threads, in /c; products in bf16 at "
            "0.95 of f32's rate, attention at 1.04: training.precision f32 is "
            "faster here");
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
