#include "worker/service/describe.h"

#include <google/protobuf/text_format.h>

#include <fstream>
#include <memory>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "storage/spill/spill_preflight.h"
#include "worker/calibrate/calibration_file.h"

namespace troupe {
namespace {

// A calibration that is kept, so that nothing is measured.
std::string KeptCalibration() {
  const std::string path = testing::TempDir() + "/describe.textproto";
  Calibration kept;
  kept.set_device(CalibrationDevice());
  kept.set_threads(1);
  kept.set_memory_bytes_per_second(3e9);
  MatmulRate& rate = *kept.add_matmul();
  rate.set_m(256);
  rate.set_n(128);
  rate.set_k(64);
  rate.set_flops_per_second(5e10);
  std::string text;
  EXPECT_TRUE(google::protobuf::TextFormat::PrintToString(kept, &text));
  std::ofstream(path) << text;
  return path;
}

TEST(Describe, SaysWhatThePlannerNeeds) {
  const WorkerOptions options = {.name = "ada",
                                 .threads = 1,
                                 .device_memory = 1000,
                                 .host_memory = 500,
                                 .calibration_file = KeptCalibration()};
  const std::unique_ptr<Device> device = NewCpuDevice({.threads = 1});
  const RealClock clock;
  const auto worker = DescribeWorker({.worker = options}, *device, clock);
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(worker->name(), "ada");
  EXPECT_EQ(worker->device(), "cpu");
  EXPECT_EQ(worker->threads(), 1);
  EXPECT_GE(worker->host_cores(), 1);
  EXPECT_FALSE(worker->host().empty());
  ASSERT_EQ(worker->budgets_size(), 2);
  EXPECT_EQ(worker->budgets(0).tier(), DEVICE);
  EXPECT_EQ(worker->budgets(0).bytes(), 1000);
  EXPECT_EQ(worker->budgets(1).tier(), HOST);
  EXPECT_EQ(worker->budgets(1).bytes(), 500);
  EXPECT_EQ(worker->calibration().memory_bytes_per_second(), 3e9);

  const std::string table = CalibrationText(worker->calibration());
  EXPECT_NE(table.find("f32 product [256, 64] x [64, 128]"), std::string::npos)
      << table;
  EXPECT_NE(table.find("50.00 GFLOP/s"), std::string::npos) << table;
}

TEST(Describe, TriesTheNvmeTier) {
  const std::unique_ptr<Device> device = NewCpuDevice({.threads = 1});
  const RealClock clock;
  WorkerOptions options = {.threads = 1,
                           .device_memory = 1000,
                           .host_memory = 500,
                           .nvme = testing::TempDir() + "/not/there",
                           .nvme_size = 1 << 20,
                           .calibration_file = KeptCalibration()};
  const absl::Status missing =
      DescribeWorker({.worker = options}, *device, clock).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_EQ(missing.message().find("--nvme: " + options.nvme), 0) << missing;

  options.nvme = testing::TempDir();
  if (!ReadSpillFileSystem(options.nvme)->memory.empty()) {
    GTEST_SKIP() << options.nvme << " is no disk";
  }
  const auto worker = DescribeWorker({.worker = options}, *device, clock);
  ASSERT_TRUE(worker.ok()) << worker.status();
  ASSERT_EQ(worker->budgets_size(), 3);
  EXPECT_EQ(worker->budgets(2).tier(), NVME);
  EXPECT_EQ(worker->budgets(2).bytes(), 1 << 20);
  EXPECT_GT(worker->calibration().nvme_read_bytes_per_second(), 0);
  EXPECT_GT(worker->calibration().nvme_write_bytes_per_second(), 0);
  EXPECT_GT(worker->calibration().nvme_read_latency_us(), 0);
  EXPECT_GT(worker->calibration().nvme_write_latency_us(), 0);
  EXPECT_NE(CalibrationText(worker->calibration()).find("nvme tier"),
            std::string::npos);
}

}  // namespace
}  // namespace troupe
