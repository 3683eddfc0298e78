// The instruction sets that the CPU's kernels and oneDNN use: those that this
// machine has, or fewer of them. The environment holds both to a narrower one,
// as if the machine had no more:
//
//   TROUPE_MAX_ISA=avx2      baseline, avx2, avx512, avx512_bf16 or amx
//
// Read once, when the first device is made. A name that the machine does not
// reach limits nothing. A limit on oneDNN alone, by its ONEDNN_MAX_CPU_ISA,
// also limits our kernels.
#ifndef TROUPE_OPS_CPU_INSTRUCTION_SET_H_
#define TROUPE_OPS_CPU_INSTRUCTION_SET_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ops/cpu/simd/table.h"

namespace troupe {

struct InstructionSet {
  const char* name;
  const SimdTable* loops;
  // Whether oneDNN multiplies bf16 by instructions made for it. Without them it
  // has none or slow code for bf16 (ops/cpu/packed_product.h has ours).
  bool bf16_products;
  // Whether the threads of its f32 products share what they pack.
  bool shares_packed;
};

// Those that may be used, narrowest first: never empty. A CHECK fails where the
// environment names none of them.
const std::vector<InstructionSet>& InstructionSets();

// What the environment says; empty: nothing.
std::string InstructionSetLimit();

// Whether it may say so: the name of a set, or nothing.
absl::Status CheckInstructionSetLimit(absl::string_view limit);

}  // namespace troupe

#endif  // TROUPE_OPS_CPU_INSTRUCTION_SET_H_
