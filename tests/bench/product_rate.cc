#include "tests/bench/product_rate.h"

#include <algorithm>
#include <limits>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "ops/cpu/instruction_set.h"
#include "ops/cpu/onednn.h"
#include "ops/matmul.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"

// Of libgomp, which oneDNN runs on; clang may lack the header.
extern "C" void omp_set_num_threads(int threads);

namespace troupe {

namespace {

double TimeProducts(dnnl::memory::data_type type) {
  constexpr int64_t kN = 2048;
  constexpr int kRuns = 8;
  const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(cpu);
  const dnnl::memory::desc square({kN, kN}, type, dnnl::memory::format_tag::ab);
  // Zero, which is as fast as any other number.
  const dnnl::memory a(square, cpu), b(square, cpu), c(square, cpu);
  for (const dnnl::memory& memory : {a, b, c}) {
    std::fill_n(static_cast<char*>(memory.get_data_handle()), square.get_size(),
                0);
  }
  const dnnl::matmul product(dnnl::matmul::primitive_desc(
      dnnl::matmul::desc(square, square, square), cpu));
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRuns; ++run) {
    const int64_t start = RealClock().MonotonicNanos();
    product.execute(
        stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    stream.wait();
    best = std::min(best, 1e-9 * (RealClock().MonotonicNanos() - start));
  }
  return 2.0 * kN * kN * kN / best;
}

}  // namespace

MeasuredRate ProductRate(const std::string& precision, int threads) {
  omp_set_num_threads(threads);
  // Without instructions for bf16 oneDNN has no or slow code for it.
  const bool bf16 =
      precision == "bf16" && InstructionSets().back().bf16_products;
  MeasuredRate rate = {.precision = bf16 ? "bf16" : "f32"};
  CHECK_OK(CallOneDnn([&] {
    rate.flops_per_second = TimeProducts(bf16 ? dnnl::memory::data_type::bf16
                                              : dnnl::memory::data_type::f32);
  }));
  return rate;
}

double GpuProductRate(const std::string& precision, Device& device) {
  constexpr int64_t kN = 8192;
  constexpr int kRuns = 5;
  const DType dtype = precision == "bf16" ? DType::kBF16 : DType::kF32;
  const int calls = dtype == DType::kBF16 ? 50 : 5;
  const absl::StatusOr<void*> memory = device.Allocate(4 * kN * kN * 4);
  CHECK_OK(memory.status());
  const auto square = [&](int index, DType type) {
    return Tensor(static_cast<float*>(*memory) + index * kN * kN, type,
                  {kN, kN});
  };
  const Tensor random = square(0, DType::kF32);
  FillNormal(device, {.x = random, .stream = {.seed = 1}});
  const MatMulArgs args = {
      .a = square(1, dtype), .b = square(2, dtype), .c = square(3, dtype)};
  for (const Tensor& factor : {args.a, args.b}) {
    Copy(device, {.x = random, .y = factor});
  }
  std::vector<double> seconds;
  for (int run = 0; run <= kRuns; ++run) {
    CHECK_OK(device.Synchronize());
    const int64_t start = RealClock().MonotonicNanos();
    for (int call = 0; call < calls; ++call) MatMul(device, args);
    CHECK_OK(device.Synchronize());
    const double taken = 1e-9 * (RealClock().MonotonicNanos() - start);
    if (run > 0) seconds.push_back(taken / calls);
  }
  device.Free(*memory);
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return 2.0 * kN * kN * kN / seconds[kRuns / 2];
}

}  // namespace troupe
