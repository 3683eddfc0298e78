#include "scheduler/simulate/gpu_link.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe {
namespace {

double BytesPerSecond(const std::string& name, const std::string& link) {
  Gpu gpu;
  gpu.set_name(name);
  gpu.set_link(link);
  const absl::optional<LinkRate> rate = NcclLinkOf(gpu);
  return rate.has_value() ? rate->bytes_per_second() : 0;
}

TEST(NcclLink, IsNvLinkWhereTheGpuHasOneAndElsePcie) {
  const std::string pcie = "PCIe 32.0 GT/s x16";
  EXPECT_DOUBLE_EQ(BytesPerSecond("NVIDIA H200", pcie), 0.75 * 450e9);
  EXPECT_DOUBLE_EQ(BytesPerSecond("NVIDIA H100 80GB HBM3", ""), 0.75 * 450e9);
  EXPECT_DOUBLE_EQ(BytesPerSecond("NVIDIA A100-SXM4-80GB", pcie), 0.75 * 300e9);
  EXPECT_DOUBLE_EQ(BytesPerSecond("NVIDIA H100 PCIe", pcie), 0.75 * 64e9);
  EXPECT_DOUBLE_EQ(BytesPerSecond("NVIDIA L40S", "PCIe 16.0 GT/s x8"),
                   0.75 * 16e9);
}

TEST(NcclLink, IsUnknownWhereNothingIsSaid) {
  EXPECT_EQ(BytesPerSecond("NVIDIA L40S", ""), 0);
  EXPECT_EQ(BytesPerSecond("NVIDIA L40S", "PCIe 16.0 GT/s"), 0);
  EXPECT_EQ(BytesPerSecond("", "NVLink 4"), 0);
}

}  // namespace
}  // namespace troupe
