// The CPU device as the kernels of this folder see it. Others use device.h.
#ifndef TROUPE_OPS_CPU_CPU_DEVICE_H_
#define TROUPE_OPS_CPU_CPU_DEVICE_H_

#include <string>
#include <type_traits>

#include "ops/activation_type.h"
#include "ops/cpu/bf16_product.h"
#include "ops/cpu/instruction_set.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/scratch.h"
#include "ops/cpu/simd/table.h"
#include "ops/device.h"
#include "ops/dropout.h"
#include "ops/tensor.h"

namespace troupe {

class CpuDevice final : public Device {
 public:
  CpuDevice(int threads, const InstructionSet& instruction_set);

  // The device behind a kernel's first argument.
  static CpuDevice& From(Device& device) {
    return static_cast<CpuDevice&>(device);
  }

  DeviceKind kind() const override { return DeviceKind::kCpu; }
  std::string Describe() const override;
  int threads() const override { return threads_; }
  const KernelTable& kernels() const override;
  absl::StatusOr<void*> Allocate(size_t bytes) override;
  void Free(void* memory) override;
  void CopyWithin(void* to, const void* from, size_t bytes) override;
  void CopyFromHost(void* to, const void* from, size_t bytes) override;
  void CopyToHost(void* to, const void* from, size_t bytes) override;
  void Zero(void* to, size_t bytes) override;
  absl::Status Synchronize() override { return absl::OkStatus(); }

  const SimdTable& simd() const { return *instruction_set_.loops; }
  bool has_bf16_products() const { return instruction_set_.bf16_products; }
  bool shares_packed() const { return instruction_set_.shares_packed; }
  // The loops over activations of type T: float, uint16_t (bf16) or Fp16.
  template <typename T>
  const ActivationLoops<T>& loops() const {
    if constexpr (std::is_same_v<T, float>) {
      return simd().f32;
    } else if constexpr (std::is_same_v<T, uint16_t>) {
      return simd().bf16;
    } else {
      return simd().fp16;
    }
  }
  ScratchPool& scratch() { return scratch_; }
  // Of products on all threads, and of those that one thread computes alone.
  Bf16Products& bf16_products() { return bf16_products_; }
  Bf16Products& one_thread_bf16_products() { return one_thread_bf16_products_; }

  // Over elements of memory: ranges start at cache lines, small arrays stay on
  // one thread.
  void ForElements(int64_t count,
                   absl::FunctionRef<void(int64_t, int64_t)> body) const;
  // Over rows of `columns` elements each.
  void ForRows(int64_t rows, int64_t columns,
               absl::FunctionRef<void(int64_t, int64_t)> body) const;
  // Over columns, each of `rows` elements.
  void ForColumns(int64_t rows, int64_t columns,
                  absl::FunctionRef<void(int64_t, int64_t)> body) const;

 private:
  const int threads_;
  const InstructionSet instruction_set_;
  ScratchPool scratch_;
  Bf16Products bf16_products_, one_thread_bf16_products_;
};

RawDropout ToRaw(float probability, const PhiloxStream& stream,
                 uint64_t first_element);

}  // namespace troupe

#endif  // TROUPE_OPS_CPU_CPU_DEVICE_H_
