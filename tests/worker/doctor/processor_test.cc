#include "worker/doctor/processor.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(InstructionSet, SaysHowBf16IsMultiplied) {
  EXPECT_EQ(JudgeInstructionSet(
                {.kernels = "avx512", .cpu_flags = "fpu avx512_bf16 avx512f"})
                .text,
            "avx512 kernels; bf16 products by avx512_bf16, no AMX");
  EXPECT_EQ(JudgeInstructionSet({.kernels = "avx512",
                                 .cpu_flags = "avx512_bf16 amx_bf16 amx_tile"})
                .text,
            "avx512 kernels; bf16 products by AMX");
  EXPECT_EQ(
      JudgeInstructionSet({.kernels = "avx512", .cpu_flags = "avx512f"}).text,
      "avx512 kernels; neither avx512_bf16 nor AMX: bf16 saves memory, not "
      "time");
  const Finding avx2 =
      JudgeInstructionSet({.kernels = "avx2", .cpu_flags = "avx2"});
  EXPECT_EQ(avx2.state, FindingState::kOk);
  EXPECT_EQ(avx2.text, "avx2 kernels; bf16 products are computed in f32");
  const Finding old =
      JudgeInstructionSet({.kernels = "baseline", .cpu_flags = "sse2"});
  EXPECT_EQ(old.state, FindingState::kWarn);
  EXPECT_FALSE(old.advice.empty());
}

TEST(CpuFlags, AreTheFirstProcessors) {
  EXPECT_EQ(CpuFlags("processor\t: 0\nflags\t\t: fpu avx2\nbugs\t: x\n"
                     "processor\t: 1\nflags\t\t: fpu\n"),
            "fpu avx2");
  EXPECT_EQ(CpuFlags("processor : 0\n"), "");
}

TEST(Cores, AreFewerWhereAQuotaIs) {
  EXPECT_EQ(JudgeCores(8, std::nullopt).text, "8 cores");
  EXPECT_EQ(JudgeCores(1, 4.0).text, "1 core");
  const Finding quota = JudgeCores(16, 2.5);
  EXPECT_EQ(quota.state, FindingState::kWarn);
  EXPECT_EQ(
      quota.text.rfind("16 cores, of which the control group allows 2.5", 0), 0)
      << quota.text;
  EXPECT_EQ(quota.advice, "troupe up --workers 1 --threads 2");
}

TEST(Processor, OfThisMachineIsKnown) {
  EXPECT_NE(CheckInstructionSet().text.find(" kernels; "), std::string::npos);
  EXPECT_NE(CheckCores().text.find(" core"), std::string::npos);
}

}  // namespace
}  // namespace troupe
