#include "worker/calibrate/compute_rate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/attention.h"
#include "ops/gelu.h"
#include "ops/layer_norm.h"
#include "ops/matmul.h"
#include "ops/optimizer.h"
#include "ops/tensor.h"
#include "proto/base/status.h"
#include "worker/calibrate/cold_bench.h"
#include "worker/calibrate/product_size.h"
#include "worker/layers/element_dtype.h"

namespace troupe {
namespace {

// Of small and of large models, wide and narrow, and a vocabulary.
constexpr LinearSize kBlockLinears[] = {
    {128, 128, 128},   {1024, 256, 256},  {1024, 256, 1024}, {1024, 1024, 256},
    {1024, 512, 512},  {1024, 512, 2048}, {1024, 2048, 512}, {256, 768, 3072},
    {256, 3072, 768},  {1024, 768, 768},  {1024, 768, 3072}, {1024, 3072, 768},
    {512, 512, 16384},
};

MatmulRate MeasureProduct(ColdBench& bench, ElementType type, ProductForm form,
                          const ProductSize& size) {
  const DType dtype = DTypeOfElement(type);
  const int64_t m = size.m, n = size.n, k = size.k;
  const bool transpose_a = form == GRADIENT;
  const bool transpose_b = form == TRANSPOSED;
  const auto matrix = [&](int64_t rows, int64_t columns, bool transposed,
                          DType type) {
    if (transposed) std::swap(rows, columns);
    return bench.Take({rows, columns}, type);
  };
  const double seconds = bench.ColdSeconds<MatMulArgs>(MatMul, [&] {
    return MatMulArgs{
        .a = matrix(m, k, transpose_a, dtype),
        .b = matrix(k, n, transpose_b, dtype),
        .c = matrix(m, n, false, form == GRADIENT ? DType::kF32 : dtype),
        .transpose_a = transpose_a,
        .transpose_b = transpose_b,
        .accumulate = form == GRADIENT};
  });
  MatmulRate rate;
  rate.set_dtype(type);
  rate.set_form(form);
  rate.set_m(m);
  rate.set_n(n);
  rate.set_k(k);
  rate.set_flops_per_second(2.0 * m * n * k / seconds);
  return rate;
}

struct AttentionShape {
  int64_t batch, length, heads, head_dim;
  int64_t width() const { return heads * head_dim; }
};

AttentionBackwardArgs TakeAttention(ColdBench& bench, DType dtype,
                                    const AttentionShape& shape) {
  const auto rows = [&](int64_t width) {
    return bench.Take({shape.batch, shape.length, width}, dtype);
  };
  const Tensor qkv = rows(3 * shape.width());
  const Tensor d_qkv = rows(3 * shape.width());
  const auto part = [&](const Tensor& x, int index) {
    return x.Slice(2, index * shape.width(), (index + 1) * shape.width());
  };
  return {.q = part(qkv, 0),
          .k = part(qkv, 1),
          .v = part(qkv, 2),
          .o = rows(shape.width()),
          .logsumexp = bench.Take({shape.batch, shape.heads, shape.length}),
          .d_o = rows(shape.width()),
          .dq = part(d_qkv, 0),
          .dk = part(d_qkv, 1),
          .dv = part(d_qkv, 2),
          .heads = static_cast<int>(shape.heads),
          .kv_heads = static_cast<int>(shape.heads),
          .scale = 1 / std::sqrt(static_cast<float>(shape.head_dim))};
}

AttentionRate MeasureAttention(ColdBench& bench, ElementType type,
                               const AttentionShape& shape) {
  const auto take = [&] {
    return TakeAttention(bench, DTypeOfElement(type), shape);
  };
  const double forward = bench.ColdSeconds<AttentionArgs>(Attention, [&] {
    const AttentionBackwardArgs args = take();
    return AttentionArgs{.q = args.q,
                         .k = args.k,
                         .v = args.v,
                         .o = args.o,
                         .logsumexp = args.logsumexp,
                         .heads = args.heads,
                         .kv_heads = args.kv_heads,
                         .scale = args.scale};
  });
  const double backward =
      bench.ColdSeconds<AttentionBackwardArgs>(AttentionBackward, take);
  // Two products forward and five backward, the masked half included.
  const double product =
      2.0 * shape.batch * shape.length * shape.length * shape.width();
  AttentionRate rate;
  rate.set_dtype(type);
  rate.set_length(shape.length);
  rate.set_head_dim(shape.head_dim);
  rate.set_forward_flops_per_second(2 * product / forward);
  rate.set_backward_flops_per_second(5 * product / backward);
  return rate;
}

// Bytes a second; weights, gradients and two moments are each read and written.
double MeasureOptimizer(ColdBench& bench, int64_t shrink) {
  const int64_t large = (8 << 20) / shrink;  // 32 MiB for each tensor
  const double seconds = bench.ColdSeconds<AdamWArgs>(AdamW, [&] {
    return AdamWArgs{.weights = bench.Take({large}),
                     .gradients = bench.Take({large}),
                     .first_moment = bench.Take({large}),
                     .second_moment = bench.Take({large}),
                     .learning_rate = 1e-6f,
                     .zero_gradients = true};
  });
  return 8.0 * sizeof(float) * large / seconds;
}

// Bytes a second of a norm with a residual: two tensors read, two written.
double MeasureMemory(ColdBench& bench, DType dtype, int64_t shrink) {
  // On a GPU more, beside which a launch is nothing.
  const int64_t count = bench.device().asynchronous() ? 24576 : 8192;
  const int64_t width = 1024 / shrink;
  const auto rows = [&] { return bench.Take({count, width}, dtype); };
  const auto row = [&] { return bench.Take({width}, dtype); };
  const double seconds = bench.ColdSeconds<LayerNormArgs>(LayerNorm, [&] {
    return LayerNormArgs{.x = rows(),
                         .residual = rows(),
                         .sum = rows(),
                         .gamma = row(),
                         .beta = row(),
                         .y = rows()};
  });
  return 4.0 * DTypeBytes(dtype) * count * width / seconds;
}

// GELUs a second, in the caches: what they read and write counts as memory.
double MeasureElementwise(ColdBench& bench, DType dtype, int64_t shrink) {
  const int64_t small = (256 << 10) / shrink;
  return small / bench.WarmSeconds<GeluArgs>(Gelu, [&] {
    return GeluArgs{.x = bench.Take({small}, dtype),
                    .y = bench.Take({small}, dtype)};
  });
}

void MeasureProducts(ColdBench& bench, ElementType type, int64_t shrink,
                     Calibration& calibration) {
  for (const auto& [rows, in, out] : kBlockLinears) {
    const LinearSize linear = {
        .rows = rows / shrink, .in = in / shrink, .out = out / shrink};
    for (const ProductForm form : kProductForms) {
      *calibration.add_matmul() =
          MeasureProduct(bench, type, form, SizeOf(linear, form));
    }
  }
}

void MeasureAttentions(ColdBench& bench, ElementType type, int64_t shrink,
                       Calibration& calibration) {
  constexpr int64_t kWidth = 256;
  // A GPU is as if it had many threads.
  const int64_t rows = bench.device().asynchronous() ? 16384 : 1024;
  for (const int64_t length : {64, 256, 1024}) {
    for (const int64_t head_dim : {64, 128}) {
      const int64_t heads = kWidth / head_dim;
      // Enough heads to keep all threads busy.
      const int64_t batch = std::max<int64_t>(
          rows / length, 2 * bench.device().threads() / heads);
      *calibration.add_attention() =
          MeasureAttention(bench, type,
                           {.batch = batch,
                            .length = length / shrink,
                            .heads = heads,
                            .head_dim = head_dim});
    }
  }
}

}  // namespace

std::vector<ElementType> MeasuredTypes(const Device& device) {
  if (device.asynchronous()) return {F32, BF16, F16};
  return {F32, BF16};
}

absl::Status MeasureComputeRates(Device& device, const Clock& clock,
                                 const ComputeRateOptions& options,
                                 Calibration& calibration) {
  const int64_t shrink = options.shrink;
  const int64_t bytes =
      std::max<int64_t>(160 << 20, options.cold_bytes) / shrink;
  ASSIGN_OR_RETURN(const std::unique_ptr<ColdBench> bench,
                   ColdBench::Create(
                       device, clock,
                       {.each = options.each,
                        .elements = bytes / static_cast<int64_t>(sizeof(float)),
                        .cold_bytes = options.cold_bytes,
                        .calls_at_once = options.calls_at_once}));
  calibration.clear_matmul();
  calibration.clear_attention();
  for (const ElementType type : MeasuredTypes(device)) {
    MeasureProducts(*bench, type, shrink, calibration);
    MeasureAttentions(*bench, type, shrink, calibration);
  }
  calibration.set_elementwise_ops_per_second(
      MeasureElementwise(*bench, DType::kF32, shrink));
  calibration.set_elementwise_bf16_ops_per_second(
      MeasureElementwise(*bench, DType::kBF16, shrink));
  calibration.set_memory_bytes_per_second(
      MeasureMemory(*bench, DType::kF32, shrink));
  calibration.set_memory_bf16_bytes_per_second(
      MeasureMemory(*bench, DType::kBF16, shrink));
  calibration.set_optimizer_bytes_per_second(MeasureOptimizer(*bench, shrink));
  return absl::OkStatus();
}

}  // namespace troupe
