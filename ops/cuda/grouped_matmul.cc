// A product by cuBLASLt for each group that has rows. The host reads the
// offsets first, for which it waits until all that its stream was given has
// run: some 10 us, and the GPU is idle until the first product is there. Each
// product costs the host about 5 us more; where groups are so small that the
// GPU needs less for one, that is the time of the call.
//
// Rows come in other numbers in each call. Asking cuBLASLt anew for each would
// cost as much as a small product, so it is asked for rounded numbers, 8 of
// them between n and 2 n, and its answer is taken for all that round up to one.
#include "ops/grouped_matmul.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/cuda/cuda_device.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/lt_products.h"
#include "ops/group_rows.h"
#include "proto/base/gpu_limits.h"

namespace troupe::cuda {
namespace {

std::vector<RowRange> ReadGroups(CudaDevice& cuda, const Tensor& offsets,
                                 int64_t rows) {
  std::vector<int32_t> host(offsets.elements(), 0);
  cuda.CopyToHost(host.data(), offsets.raw(), offsets.bytes());
  return GroupRows(host.data(), offsets.elements() - 1, rows);
}

Tensor MatrixOf(const Tensor& matrices, int64_t group) {
  return matrices.Slice(0, group, group + 1).Front();
}

// The rows of a group in parts that one product takes, of matrices with these
// rows.
std::vector<RowRange> PartsOf(const RowRange& rows, const Tensor& first,
                              const Tensor& second) {
  const int64_t stride = std::max(first.RowStride(), second.RowStride());
  const int64_t at_once = std::max<int64_t>(
      kGpuProductElementsMax / stride / kGpuVectorElements * kGpuVectorElements,
      1);
  std::vector<RowRange> parts;
  for (int64_t begin = rows.begin; begin < rows.end; begin += at_once) {
    parts.push_back({begin, std::min(rows.end, begin + at_once)});
  }
  return parts;
}

// c (+)= op(a) op(b), whose sizes and transposes `shape` has.
void Product(CudaDevice& cuda, const LtProductShape& shape, const Tensor& a,
             const Tensor& b, const Tensor& c) {
  const LtProductMatrices matrices = {.a = a.raw(), .b = b.raw(), .c = c.raw()};
  LtProductShape aligned = shape;
  aligned.a_stride = a.RowStride();
  aligned.b_stride = b.RowStride();
  aligned.c_stride = c.RowStride();
  aligned.type = a.dtype();
  aligned.c_is_f32 = c.dtype() != a.dtype();
  aligned.alignment = matrices.Alignment();
  const Blas blas = cuda.blas();
  if (cuda.failed()) return;
  const absl::StatusOr<bool> done =
      cuda.grouped_products().Multiply(aligned, matrices, blas, cuda.stream());
  if (!cuda.Check(done.status()) || *done) return;
  cuda.Check(absl::InternalError(
      absl::StrCat("cuBLASLt has no product of ", a.ShapeString(), " by ",
                   b.ShapeString(), " into ", c.ShapeString())));
}

}  // namespace

void GroupedMatMul(Device& device, const GroupedMatMulArgs& args) {
  CudaDevice& cuda = CudaDevice::From(device);
  const std::vector<RowRange> groups =
      ReadGroups(cuda, args.offsets, args.a.rows());
  for (size_t group = 0; group < groups.size(); ++group) {
    for (const auto& [begin, end] : PartsOf(groups[group], args.a, args.c)) {
      Product(cuda,
              {.m = end - begin,
               .n = args.c.columns(),
               .k = args.a.columns(),
               .transpose_b = args.transpose_b,
               .accumulate = args.accumulate,
               .varying = LtVarying::kM},
              args.a.Slice(0, begin, end),
              MatrixOf(args.b, static_cast<int64_t>(group)),
              args.c.Slice(0, begin, end));
    }
  }
}

void GroupedWeightGradient(Device& device,
                           const GroupedWeightGradientArgs& args) {
  CudaDevice& cuda = CudaDevice::From(device);
  const std::vector<RowRange> groups =
      ReadGroups(cuda, args.offsets, args.x.rows());
  for (size_t group = 0; group < groups.size(); ++group) {
    const Tensor dw = MatrixOf(args.dw, static_cast<int64_t>(group));
    bool accumulate = args.accumulate;
    for (const auto& [begin, end] : PartsOf(groups[group], args.dy, args.x)) {
      Product(cuda,
              {.m = dw.rows(),
               .n = dw.columns(),
               .k = end - begin,
               .transpose_a = true,
               .accumulate = accumulate,
               .varying = LtVarying::kK},
              args.dy.Slice(0, begin, end), args.x.Slice(0, begin, end), dw);
      accumulate = true;
    }
    // Of a group without rows.
    if (!accumulate) cuda.Zero(dw.raw(), dw.bytes());
  }
}

}  // namespace troupe::cuda
