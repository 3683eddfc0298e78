#include "worker/service/device_flags.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(DeviceFlags, SayWhatAWorkerHas) {
  CLI::App app;
  WorkerOptions options;
  AddDeviceFlags(app, options);
  app.parse(
      "--threads 3 --device cuda:1 --device-memory 2GiB --host-memory 1GiB "
      "--nvme /nvme --nvme-size 1.5TiB --calibration here");
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.device, "cuda:1");
  EXPECT_EQ(options.device_memory, int64_t{2} << 30);
  EXPECT_EQ(options.host_memory, int64_t{1} << 30);
  EXPECT_EQ(options.nvme, "/nvme");
  EXPECT_EQ(options.nvme_size, int64_t{3} << 39);
  EXPECT_EQ(options.calibration_file, "here");
  EXPECT_TRUE(options.cudnn);
  app.parse("--no-cudnn");
  EXPECT_FALSE(options.cudnn);
}

TEST(DeviceFlags, NameTheOneThatIsWrong) {
  CLI::App app;
  WorkerOptions options;
  AddDeviceFlags(app, options);
  for (const std::string flag :
       {"--device-memory", "--host-memory", "--nvme-size"}) {
    try {
      app.parse(flag + " much");
      FAIL() << flag;
    } catch (const CLI::ValidationError& error) {
      EXPECT_EQ(std::string(error.what()).find(flag), 0) << error.what();
    }
  }
}

}  // namespace
}  // namespace troupe
