#include "ops/cpu/instruction_set.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"

namespace troupe {
namespace {

const std::vector<std::string>& Names() {
  static const auto* const names = new std::vector<std::string>{
      "baseline", "avx2", "avx512", "avx512_bf16", "amx"};
  return *names;
}

// This test runs as the machine is, and held to avx2.
TEST(InstructionSet, NoneIsWiderThanTheLimit) {
  std::vector<std::string> names = CpuInstructionSets();
  ASSERT_FALSE(names.empty());
  ASSERT_LE(names.size(), Names().size());
  EXPECT_TRUE(std::equal(names.begin(), names.end(), Names().begin()));
  if (CpuInstructionSetLimit().empty()) return;
  const auto limit =
      std::find(Names().begin(), Names().end(), CpuInstructionSetLimit());
  ASSERT_NE(limit, Names().end());
  EXPECT_LE(names.size(), limit - Names().begin() + 1);
}

// No device of ours without what oneDNN uses, and the other way round.
TEST(InstructionSet, OneDnnHasTheSame) {
  const std::vector<std::string> names = CpuInstructionSets();
  const int onednn = dnnl_get_effective_cpu_isa();
  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto onednn_has = [&](int set) { return (onednn & set) == set; };
  EXPECT_EQ(has("avx2"), onednn_has(dnnl_cpu_isa_avx2));
  EXPECT_EQ(has("avx512"), onednn_has(dnnl_cpu_isa_avx512_core));
  EXPECT_EQ(has("avx512_bf16"), onednn_has(dnnl_cpu_isa_avx512_core_bf16));
  EXPECT_EQ(has("amx"), onednn_has(dnnl_cpu_isa_avx512_core_amx));
}

TEST(InstructionSet, ADeviceUsesTheWidest) {
  EXPECT_EQ(NewCpuDevice({.threads = 1})->Describe(),
            "cpu: 1 thread, " + CpuInstructionSets().back());
}

TEST(InstructionSet, ALimitIsTheNameOfOne) {
  for (const std::string& name : Names()) {
    EXPECT_TRUE(CheckInstructionSetLimit(name).ok()) << name;
  }
  EXPECT_TRUE(CheckInstructionSetLimit("").ok());
  EXPECT_EQ(CheckInstructionSetLimit("AVX2").message(),
            "TROUPE_MAX_ISA=AVX2: expected baseline, avx2, avx512, "
            "avx512_bf16, amx, or no such variable");
}

TEST(InstructionSetDeathTest, AnotherNameFailsBeforeAnythingRuns) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        setenv("TROUPE_MAX_ISA", "avx3", 1);
        NewCpuDevice({.threads = 1});
      },
      "TROUPE_MAX_ISA=avx3: expected baseline");
}

}  // namespace
}  // namespace troupe
