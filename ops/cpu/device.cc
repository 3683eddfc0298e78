#include "ops/cpu/device.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/cpu/cpu_device.h"
#include "ops/cpu/instruction_set.h"
#include "ops/cpu/kernels.h"
#include "proto/base/local_cause.h"

namespace troupe {
namespace {

// Elements that keep a thread busy for longer than it takes to wake it.
constexpr int64_t kElementsMin = 16384;

constexpr int64_t kLineElements = 32;  // of bf16 in a cache line, or in two

// Those of a model's training step, its validation and some lengths of prompts.
constexpr size_t kBf16ProductsKept = 256;

// Those of experts, whose rows come in some 16 numbers for each product.
constexpr size_t kOneThreadProductsKept = 512;

// Settings of OpenMP under which a region has fewer threads than it asks for.
std::string OpenMpLimits() {
  std::vector<std::string> limits;
  for (const char* const name : {"OMP_THREAD_LIMIT", "OMP_MAX_ACTIVE_LEVELS"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr) limits.push_back(absl::StrCat(name, "=", value));
  }
  return absl::StrJoin(limits, ", ");
}

}  // namespace

std::vector<std::string> CpuInstructionSets() {
  std::vector<std::string> names;
  for (const InstructionSet& set : InstructionSets()) names.push_back(set.name);
  return names;
}

std::string CpuInstructionSetLimit() { return InstructionSetLimit(); }

absl::Status CheckCpuInstructionSetLimit() {
  return CheckInstructionSetLimit(InstructionSetLimit());
}

CpuThreads GrantedCpuThreads(int asked) {
  const int granted = GrantedThreads(asked);
  return {.granted = granted,
          .held_by = granted < asked ? OpenMpLimits() : std::string()};
}

std::unique_ptr<Device> NewCpuDevice(const CpuDeviceOptions& options) {
  const std::vector<InstructionSet>& sets = InstructionSets();
  if (options.instruction_set.empty()) {
    return std::make_unique<CpuDevice>(options.threads, sets.back());
  }
  for (const InstructionSet& set : sets) {
    if (options.instruction_set == set.name) {
      return std::make_unique<CpuDevice>(options.threads, set);
    }
  }
  CHECK(false) << "this machine has no " << options.instruction_set;
  return nullptr;
}

CpuDevice::CpuDevice(int threads, const InstructionSet& instruction_set)
    : threads_(GrantedThreads(threads)),
      instruction_set_(instruction_set),
      scratch_(2 * threads_ + 2),
      bf16_products_(kBf16ProductsKept),
      one_thread_bf16_products_(kOneThreadProductsKept) {
  CHECK_GE(threads, 1);
}

std::string CpuDevice::Describe() const {
  return absl::StrCat("cpu: ", threads_, threads_ == 1 ? " thread" : " threads",
                      ", ", instruction_set_.name);
}

const KernelTable& CpuDevice::kernels() const { return cpu::kKernels; }

absl::StatusOr<void*> CpuDevice::Allocate(size_t bytes) {
  void* memory =
      ::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow);
  if (memory == nullptr) {
    return OfThisMachine(absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", bytes, " bytes on the cpu")));
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
