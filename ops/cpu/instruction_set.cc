#include "ops/cpu/instruction_set.h"

#include <oneapi/dnnl/dnnl.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

constexpr char kVariable[] = "TROUPE_MAX_ISA";

bool HasAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2");
}

bool HasAvx512Bf16() {
  return HasAvx512() && __builtin_cpu_supports("avx512bf16");
}

// Narrowest first. The x86-64-v3 and v4 levels and AVX512_BF16, by what our
// compilers may emit; AMX by what the kernel lets oneDNN use, which alone does.
struct Level {
  InstructionSet set;
  dnnl_cpu_isa_t onednn;
  bool (*has)();
};
constexpr Level kLevels[] = {
    {{"baseline", &simd_baseline::kTable, false, false},
     dnnl_cpu_isa_sse41,
     [] { return true; }},
    {{"avx2", &simd_avx2::kTable, false, false}, dnnl_cpu_isa_avx2, HasAvx2},
    {{"avx512", &simd_avx512::kTable, false, true},
     dnnl_cpu_isa_avx512_core,
     HasAvx512},
    {{"avx512_bf16", &simd_avx512_bf16::kTable, true, true},
     dnnl_cpu_isa_avx512_core_bf16,
     HasAvx512Bf16},
    {{"amx", &simd_avx512_bf16::kTable, true, true},
     dnnl_cpu_isa_avx512_core_amx,
     HasAvx512Bf16},
};

std::vector<InstructionSet> Find(const std::string& limit) {
  CHECK_OK(CheckInstructionSetLimit(limit));
  for (const Level& level : kLevels) {
    if (limit != level.set.name) continue;
    CHECK_EQ(dnnl_set_max_cpu_isa(level.onednn), dnnl_success)
        << kVariable << "=" << limit << ": oneDNN has already run";
  }
  // Each of its sets is the bits of those that it contains.
  const int onednn = dnnl_get_effective_cpu_isa();
  std::vector<InstructionSet> sets = {kLevels[0].set};
  for (const Level& level : kLevels) {
    if (limit == sets.back().name) break;
    if (&level != kLevels && level.has() &&
        (onednn & level.onednn) == level.onednn) {
      sets.push_back(level.set);
    }
  }
  return sets;
}

}  // namespace

const std::vector<InstructionSet>& InstructionSets() {
  static const auto* const sets =
      new std::vector<InstructionSet>(Find(InstructionSetLimit()));
  return *sets;
}

std::string InstructionSetLimit() {
  const char* const limit = std::getenv(kVariable);
  return limit == nullptr ? "" : limit;
}

absl::Status CheckInstructionSetLimit(absl::string_view limit) {
  std::vector<absl::string_view> names;
  for (const Level& level : kLevels) names.push_back(level.set.name);
  for (const absl::string_view name : names) {
    if (limit.empty() || limit == name) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(kVariable, "=", limit, ": expected ",
                   absl::StrJoin(names, ", "), ", or no such variable"));
}

}  // namespace troupe
