#include "tests/bench/product_rate.h"

#include <algorithm>
#include <limits>
#include <oneapi/dnnl/dnnl.hpp>

#include "proto/base/clock.h"

// Of libgomp, which oneDNN runs on; clang may lack the header.
extern "C" void omp_set_num_threads(int threads);

namespace troupe {

double ProductRate(const std::string& precision, int threads) {
  constexpr int64_t kN = 2048;
  constexpr int kRuns = 8;
  omp_set_num_threads(threads);
  const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(cpu);
  const auto type = precision == "bf16" ? dnnl::memory::data_type::bf16
                                        : dnnl::memory::data_type::f32;
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

}  // namespace troupe
