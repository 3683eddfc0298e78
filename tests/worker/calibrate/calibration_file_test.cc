#include "worker/calibrate/calibration_file.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "tests/proto/base/on_one_core.h"

namespace troupe {
namespace {

class CalibrationFile : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/calibration";
    std::filesystem::remove_all(directory_);
  }
  // What a measurement gives; counts how often it is asked.
  absl::StatusOr<Calibration> Measure() {
    ++measured_;
    Calibration calibration;
    calibration.set_memory_bytes_per_second(5e9);
    return calibration;
  }
  absl::StatusOr<Calibration> Load(const CalibrationFileOptions& options) {
    return LoadOrMeasure(options, [this] { return Measure(); });
  }
  CalibrationFileOptions Options() const {
    return {.path = directory_ + "/deep/file.textproto",
            .threads = 2,
            .device = "cpu of a test"};
  }

  std::string directory_;
  std::atomic<int> measured_{0};
};

TEST_F(CalibrationFile, IsMeasuredOnce) {
  for (int i = 0; i < 3; ++i) {
    const auto calibration = Load(Options());
    ASSERT_TRUE(calibration.ok()) << calibration.status();
    EXPECT_EQ(calibration->memory_bytes_per_second(), 5e9);
    EXPECT_EQ(calibration->device(), "cpu of a test");
    EXPECT_EQ(calibration->threads(), 2);
  }
  EXPECT_EQ(measured_, 1);
}

TEST_F(CalibrationFile, OfABusyMachineIsKeptForMinutesOnly) {
  ASSERT_TRUE(Load(Options()).ok());
  std::stringstream text;
  text << std::ifstream(Options().path).rdbuf();
  std::ofstream(Options().path) << "# measured on a busy machine\n"
                                << text.str();
  ASSERT_TRUE(Load(Options()).ok());
  EXPECT_EQ(measured_, 1);
  std::filesystem::last_write_time(
      Options().path,
      std::filesystem::file_time_type::clock::now() - std::chrono::minutes(6));
  ASSERT_TRUE(Load(Options()).ok());
  EXPECT_EQ(measured_, 2);
}

// As the kernel's counts of two cores say: for ten seconds, of whose twenty
// this process used twelve and others, or the hypervisor, these.
std::function<MachineTimes()> Beside(double others, double stolen) {
  auto looks = std::make_shared<int>(0);
  return [=] {
    const double now = (*looks)++;
    return MachineTimes{.cores = 2,
                        .wall = 10 * now,
                        .busy = (12 + others) * now,
                        .stolen = stolen * now,
                        .own = 12 * now};
  };
}

TEST_F(CalibrationFile, KnowsABusyMachine) {
  const auto first_line = [this](const std::function<MachineTimes()>& times) {
    CalibrationFileOptions options = Options();
    options.measure_anew = true;
    options.times = times;
    EXPECT_TRUE(Load(options).ok());
    std::ifstream file(options.path);
    std::string line;
    std::getline(file, line);
    return line;
  };
  const std::string busy = "# measured on a busy machine";
  EXPECT_NE(first_line(Beside(3.9, 0)), busy);
  EXPECT_EQ(first_line(Beside(4.1, 0)), busy);
  EXPECT_EQ(first_line(Beside(0, 4.1)), busy);
  EXPECT_EQ(first_line(Beside(2.1, 2.1)), busy);
}

TEST_F(CalibrationFile, WorkersThatStartTogetherTakeTurns) {
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([this] { EXPECT_TRUE(Load(Options()).ok()); });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(measured_, 1);
}

TEST_F(CalibrationFile, AnotherMachineOrThreadCountIsMeasuredAnew) {
  ASSERT_TRUE(Load(Options()).ok());
  CalibrationFileOptions options = Options();
  options.threads = 3;
  ASSERT_TRUE(Load(options).ok());
  EXPECT_EQ(measured_, 2);
  options.device = "another cpu";
  ASSERT_TRUE(Load(options).ok());
  EXPECT_EQ(measured_, 3);
  options.measure_anew = true;
  ASSERT_TRUE(Load(options).ok());
  EXPECT_EQ(measured_, 4);
}

TEST_F(CalibrationFile, ADamagedFileIsReplaced) {
  ASSERT_TRUE(Load(Options()).ok());
  std::ofstream(Options().path) << "not a calibration {";
  ASSERT_TRUE(Load(Options()).ok());
  ASSERT_TRUE(Load(Options()).ok());
  EXPECT_EQ(measured_, 2);
}

TEST_F(CalibrationFile, WhereItCannotBeKeptItIsStillMeasured) {
  CalibrationFileOptions options = Options();
  options.path = "/proc/no/such/place.textproto";
  EXPECT_TRUE(Load(options).ok());
  EXPECT_EQ(measured_, 1);
}

TEST_F(CalibrationFile, AFailedMeasurementIsAnError) {
  const absl::Status status =
      LoadOrMeasure(Options(), [] {
        return absl::StatusOr<Calibration>(absl::InternalError("broken"));
      }).status();
  EXPECT_TRUE(absl::IsInternal(status));
}

TEST(DefaultCalibrationFile, FollowsTheUsersCache) {
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(DefaultCalibrationFile(1), "/cache/troupe/calibration-1.textproto");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/ada", 1);
  EXPECT_EQ(DefaultCalibrationFile(1),
            "/home/ada/.cache/troupe/calibration-1.textproto");
  EXPECT_EQ(CalibrationDevice().substr(0, 4), "cpu ");
  // Rates of another one, as of a process that is held to it, are not taken.
  EXPECT_NE(
      CalibrationDevice().find(", " + CpuInstructionSets().back() + ", v"),
      std::string::npos)
      << CalibrationDevice();
}

// Its rates are not those of workers that have a core for each thread.
TEST(DefaultCalibrationFile, IsAnotherWhereThreadsShareCores) {
  setenv("XDG_CACHE_HOME", "/cache", 1);
  OnOneCore([](int) {
    EXPECT_EQ(DefaultCalibrationFile(1),
              "/cache/troupe/calibration-1.textproto");
    EXPECT_EQ(DefaultCalibrationFile(2),
              "/cache/troupe/calibration-2-on-1.textproto");
  });
}

}  // namespace
}  // namespace troupe
