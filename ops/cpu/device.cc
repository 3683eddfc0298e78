#include "ops/cpu/device.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe {
namespace {

// Elements that keep a thread busy for longer than it takes to wake it.
constexpr int64_t kElementsMin = 16384;

constexpr int64_t kLineElements = 32;  // of bf16 in a cache line, or in two

// Those of a model's training step, its validation and some lengths of prompts.
constexpr size_t kBf16ProductsKept = 256;

// Widest first. The x86-64-v3 and v4 levels and AVX512_BF16, by what our
// compilers may emit.
struct InstructionSet {
  const char* name;
  const SimdTable* table;
  bool (*supported)();
};

bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2");
}

constexpr InstructionSet kInstructionSets[] = {
    {"avx512_bf16", &simd_avx512_bf16::kTable,
     [] { return HasAvx512() && __builtin_cpu_supports("avx512bf16"); }},
    {"avx512", &simd_avx512::kTable, HasAvx512},
    {"avx2", &simd_avx2::kTable,
     [] {
       return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
     }},
    {"baseline", &simd_baseline::kTable, [] { return true; }},
};

}  // namespace

std::vector<std::string> CpuInstructionSets() {
  std::vector<std::string> names;
  for (const InstructionSet& set : kInstructionSets) {
    if (set.supported()) names.insert(names.begin(), set.name);
  }
  return names;
}

std::unique_ptr<Device> NewCpuDevice(const CpuDeviceOptions& options) {
  for (const InstructionSet& set : kInstructionSets) {
    if (!set.supported()) continue;
    if (!options.instruction_set.empty() &&
        options.instruction_set != set.name) {
      continue;
    }
    return std::make_unique<CpuDevice>(options.threads, *set.table);
  }
  CHECK(false) << "this machine has no " << options.instruction_set;
  return nullptr;
}

CpuDevice::CpuDevice(int threads, const SimdTable& simd)
    : threads_(threads),
      simd_(simd),
      scratch_(2 * threads + 2),
      bf16_products_(kBf16ProductsKept) {
  CHECK_GE(threads, 1);
}

std::string CpuDevice::Describe() const {
  return absl::StrCat("cpu: ", threads_, threads_ == 1 ? " thread" : " threads",
                      ", ", simd_.name);
}

const KernelTable& CpuDevice::kernels() const { return cpu::kKernels; }

absl::StatusOr<void*> CpuDevice::Allocate(size_t bytes) {
  void* memory =
      ::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", bytes, " bytes on the cpu"));
  }
  return memory;
}

void CpuDevice::Free(void* memory) {
  ::operator delete (memory, std::align_val_t{kAlignment});
}

void CpuDevice::CopyWithin(void* to, const void* from, size_t bytes) {
  char* target = static_cast<char*>(to);
  const char* source = static_cast<const char*>(from);
  ParallelRanges({.threads = threads_,
                  .count = static_cast<int64_t>(bytes),
                  .multiple = 64,
                  .at_least = kElementsMin * 4},
                 [&](int64_t begin, int64_t end) {
                   std::memcpy(target + begin, source + begin, end - begin);
                 });
}

void CpuDevice::CopyFromHost(void* to, const void* from, size_t bytes) {
  CopyWithin(to, from, bytes);
}

void CpuDevice::CopyToHost(void* to, const void* from, size_t bytes) {
  CopyWithin(to, from, bytes);
}

void CpuDevice::Zero(void* to, size_t bytes) {
  ParallelRanges({.threads = threads_,
                  .count = static_cast<int64_t>(bytes),
                  .multiple = 64,
                  .at_least = kElementsMin * 4},
                 [&](int64_t begin, int64_t end) {
                   std::memset(static_cast<char*>(to) + begin, 0, end - begin);
                 });
}

void CpuDevice::ForElements(
    int64_t count, absl::FunctionRef<void(int64_t, int64_t)> body) const {
  ParallelRanges({.threads = threads_,
                  .count = count,
                  .multiple = kLineElements,
                  .at_least = kElementsMin},
                 body);
}

void CpuDevice::ForRows(int64_t rows, int64_t columns,
                        absl::FunctionRef<void(int64_t, int64_t)> body) const {
  ParallelRanges({.threads = threads_,
                  .count = rows,
                  .at_least = kElementsMin / std::max<int64_t>(columns, 1) + 1},
                 body);
}

void CpuDevice::ForColumns(
    int64_t rows, int64_t columns,
    absl::FunctionRef<void(int64_t, int64_t)> body) const {
  ParallelRanges({.threads = threads_,
                  .count = columns,
                  .multiple = kLineElements,
                  .at_least = kElementsMin / std::max<int64_t>(rows, 1) + 1},
                 body);
}

RawDropout ToRaw(float probability, const PhiloxStream& stream,
                 uint64_t first_element) {
  // PhiloxUniform(bits) >= p  <=>  bits >> 8 >= p * 2^24, exactly.
  const double threshold = std::ceil(double{probability} * 16777216.0);
  return {.philox = {.key0 = static_cast<uint32_t>(stream.seed),
                     .key1 = static_cast<uint32_t>(stream.seed >> 32),
                     .counter2 = (static_cast<uint32_t>(stream.purpose) << 24) |
                                 stream.site,
                     .counter3 = stream.step},
          .threshold = static_cast<uint32_t>(threshold),
          .keep_scale = 1.0f / (1.0f - probability),
          .first_element = first_element};
}

}  // namespace troupe
