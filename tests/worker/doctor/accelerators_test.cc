#include "worker/doctor/accelerators.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Cuda, NeedNotBeThere) {
  const Finding finding = JudgeCuda({.missing = "libcuda.so.1: no such file"});
  EXPECT_EQ(finding.state, FindingState::kNone);
  EXPECT_EQ(finding.text,
            "no driver (/dev/nvidia0 missing; libcuda.so.1: no such file)");
  EXPECT_EQ(finding.advice,
            "GPUs are not used by this build; build with --config=cuda");
}

TEST(Cuda, IsUsedWhereTheBuildHasIt) {
  CudaDriver driver = {.missing = "not found", .used = true};
  EXPECT_EQ(JudgeCuda(driver).advice, "workers here compute on the CPU");
  driver.missing.clear();
  driver.version = 13000;
  driver.gpus = {GpuText({.name = "NVIDIA H200",
                          .uuid = "GPU-1",
                          .memory_bytes = int64_t{140} << 30,
                          .link = "PCIe 32.0 GT/s x16"})};
  EXPECT_EQ(JudgeCuda(driver).text,
            "driver for CUDA 13.0, 1 GPU (NVIDIA H200, 140.0 GiB, GPU-1, PCIe "
            "32.0 GT/s x16)");
  EXPECT_EQ(JudgeCuda(driver).advice, "");
}

TEST(Cuda, IsDescribed) {
  CudaDriver driver = {.has_device_file = true,
                       .version = 12040,
                       .gpus = {"NVIDIA H200", "NVIDIA H200"}};
  EXPECT_EQ(JudgeCuda(driver).state, FindingState::kOk);
  EXPECT_EQ(JudgeCuda(driver).text,
            "driver for CUDA 12.4, 2 GPUs (NVIDIA H200; NVIDIA H200)");
  driver.gpus.clear();
  EXPECT_EQ(JudgeCuda(driver).state, FindingState::kNone);
  driver.error = "CUDA_ERROR_NO_DEVICE";
  EXPECT_EQ(JudgeCuda(driver).state, FindingState::kWarn);
  EXPECT_EQ(JudgeCuda(driver).text,
            "the driver does not start: CUDA_ERROR_NO_DEVICE (/dev/nvidia0 is "
            "there)");
}

TEST(Nccl, IsDescribed) {
  EXPECT_EQ(JudgeNccl({.missing = "not found"}).state, FindingState::kNone);
  EXPECT_EQ(JudgeNccl({.version = 22105}).text, "NCCL 2.21.5");
  EXPECT_EQ(NcclVersionText(2806), "2.8.6");
  EXPECT_EQ(NcclVersionText(20903), "2.9.3");
}

TEST(Cudnn, IsDescribed) {
  EXPECT_EQ(JudgeCudnn({.missing = "not found"}).state, FindingState::kNone);
  EXPECT_EQ(JudgeCudnn({.version = 91300}).text, "cuDNN 9.13.0");
}

TEST(Accelerators, AreNeverAFault) {
  EXPECT_NE(CheckCuda().state, FindingState::kFail);
  EXPECT_NE(CheckNccl().state, FindingState::kFail);
  EXPECT_NE(CheckCudnn().state, FindingState::kFail);
}

}  // namespace
}  // namespace troupe
