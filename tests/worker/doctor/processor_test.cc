#include "worker/doctor/processor.h"

#include <cstdlib>
#include <string>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(InstructionSet, SaysHowBf16IsMultiplied) {
  EXPECT_EQ(JudgeInstructionSet({.kernels = "avx512_bf16"}).text,
            "avx512_bf16 kernels; bf16 products by avx512_bf16, no AMX; fp16 "
            "products are computed in f32");
  EXPECT_EQ(JudgeInstructionSet({.kernels = "amx"}).text,
            "amx kernels; bf16 products by AMX; fp16 products are computed in "
            "f32");
  for (const std::string kernels : {"avx2", "avx512"}) {
    const Finding without = JudgeInstructionSet({.kernels = kernels});
    EXPECT_EQ(without.state, FindingState::kOk);
    EXPECT_EQ(without.text,
              kernels +
                  " kernels; bf16 products are computed in f32: bf16 saves "
                  "memory, not time; fp16 products are computed in f32");
  }
  const Finding old = JudgeInstructionSet({.kernels = "baseline"});
  EXPECT_EQ(old.state, FindingState::kWarn);
  EXPECT_FALSE(old.advice.empty());
}

TEST(InstructionSet, ALimitIsAWarning) {
  const Finding held =
      JudgeInstructionSet({.kernels = "avx2", .limit = "avx2"});
  EXPECT_EQ(held.state, FindingState::kWarn);
  EXPECT_NE(held.text.find("; held by TROUPE_MAX_ISA=avx2"), std::string::npos);
  setenv("TROUPE_MAX_ISA", "avx3", 1);
  const Finding unknown = CheckInstructionSet();
  unsetenv("TROUPE_MAX_ISA");
  EXPECT_EQ(unknown.state, FindingState::kFail);
  EXPECT_EQ(unknown.text.rfind("TROUPE_MAX_ISA=avx3: expected ", 0), 0)
      << unknown.text;
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

TEST(Threads, AreFewerWhereOpenMpIsHeld) {
  EXPECT_EQ(JudgeThreads(8, {.granted = 8}).text, "8 threads");
  EXPECT_EQ(JudgeThreads(1, {.granted = 1}).text, "1 thread");
  const Finding held =
      JudgeThreads(8, {.granted = 1, .held_by = "OMP_THREAD_LIMIT=1"});
  EXPECT_EQ(held.state, FindingState::kWarn);
  EXPECT_EQ(held.text, "OpenMP grants 1 thread of 8; OMP_THREAD_LIMIT=1");
  EXPECT_FALSE(held.advice.empty());
}

TEST(Processor, OfThisMachineIsKnown) {
  EXPECT_NE(CheckInstructionSet().text.find(" kernels; "), std::string::npos);
  EXPECT_NE(CheckCores().text.find(" core"), std::string::npos);
  EXPECT_NE(CheckThreads().text.find(" thread"), std::string::npos);
}

}  // namespace
}  // namespace troupe
