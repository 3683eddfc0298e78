#include "ops/matmul.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ops/cuda/cuda_device.h"
#include "ops/cuda/finish_rows.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/lt_products.h"
#include "ops/cuda/scratch.h"
#include "ops/gelu.h"
#include "ops/reduce.h"
#include "proto/base/gpu_limits.h"

namespace troupe::cuda {
namespace {

// c (+)= op(a) op(b), with bias, GELU and its slope where `args` and
// `before_gelu` have them. False where cuBLASLt cannot, or the device has
// failed.
bool Multiply(CudaDevice& cuda, const MatMulArgs& args, void* before_gelu) {
  const bool slope = args.gelu_input.defined();
  const bool residual = args.residual.defined();
  const LtProductMatrices matrices = {
      .a = args.a.raw(),
      .b = args.b.raw(),
      .bias = args.bias.defined() ? args.bias.raw() : nullptr,
      .residual = residual ? args.residual.raw() : nullptr,
      .before_gelu = before_gelu,
      .gelu_input = slope ? args.gelu_input.raw() : nullptr,
      .c = args.c.raw()};
  const LtProductShape shape = {
      .m = args.c.rows(),
      .n = args.c.columns(),
      .k = args.transpose_a ? args.a.rows() : args.a.columns(),
      .a_stride = args.a.RowStride(),
      .b_stride = args.b.RowStride(),
      .c_stride = args.c.RowStride(),
      .residual_stride = residual ? args.residual.RowStride() : 0,
      .transpose_a = args.transpose_a,
      .transpose_b = args.transpose_b,
      .type = args.a.dtype(),
      .c_is_f32 = args.c.dtype() != args.a.dtype(),
      .accumulate = args.accumulate,
      .bias = args.bias.defined(),
      .residual = residual,
      .gelu = before_gelu != nullptr,
      .gelu_slope = slope,
      .alignment = matrices.Alignment()};
  const Blas blas = cuda.blas();
  if (cuda.failed()) return false;
  const absl::StatusOr<bool> done =
      cuda.products().Multiply(shape, matrices, blas, cuda.stream());
  return cuda.Check(done.status()) && *done;
}

// A dim of a product: of a and c, of b and c, of a and b.
enum class ProductDim { kM, kN, kK };

int64_t LengthOf(const MatMulArgs& args, ProductDim dim) {
  if (dim == ProductDim::kM) return args.c.rows();
  if (dim == ProductDim::kN) return args.c.columns();
  return args.transpose_a ? args.a.rows() : args.a.columns();
}

// All leading dims as one.
Tensor Matrix(const Tensor& t) {
  return Tensor(t.raw(), t.dtype(), {t.rows(), t.RowStride()})
      .Slice(1, 0, t.columns());
}

// What the entries [begin, end) of the dim have part in.
MatMulArgs PartOf(const MatMulArgs& args, ProductDim dim, int64_t begin,
                  int64_t end) {
  MatMulArgs part = args;
  if (dim != ProductDim::kN) {
    const bool rows = args.transpose_a == (dim == ProductDim::kK);
    part.a = Matrix(args.a).Slice(rows ? 0 : 1, begin, end);
  }
  if (dim != ProductDim::kM) {
    const bool rows = args.transpose_b == (dim == ProductDim::kN);
    part.b = Matrix(args.b).Slice(rows ? 0 : 1, begin, end);
  }
  if (dim != ProductDim::kK) {
    part.c = Matrix(args.c).Slice(dim == ProductDim::kM ? 0 : 1, begin, end);
  }
  return part;
}

// Whether some matrix has the dim's entries side by side.
bool SideBySide(const MatMulArgs& args, ProductDim dim) {
  return dim == ProductDim::kN ||
         (dim == ProductDim::kM ? args.transpose_a
                                : !args.transpose_a || args.transpose_b);
}

constexpr int64_t kWhole = kGpuVectorElements;

bool IsTooLarge(const Tensor& t) {
  return t.defined() && t.rows() * t.RowStride() > kGpuProductElementsMax;
}

bool HasTooManyRows(const MatMulArgs& args, ProductDim dim) {
  const ProductDim of_a = args.transpose_a ? ProductDim::kK : ProductDim::kM;
  const ProductDim of_b = args.transpose_b ? ProductDim::kN : ProductDim::kK;
  return (dim == of_a && IsTooLarge(args.a)) ||
         (dim == of_b && IsTooLarge(args.b)) ||
         (dim == ProductDim::kM && IsTooLarge(args.c));
}

// Of narrow elements cuBLASLt's fast kernels want each dim that lies side by
// side to be whole multiples of 16 bytes, as a vocabulary of 50,257 is not; the
// others take six times as long. 0: the dim is as they want it.
int64_t WholeVectors(const MatMulArgs& args, ProductDim dim) {
  constexpr int64_t kLeast = 512;  // else a product more is not worth it
  const int64_t length = LengthOf(args, dim);
  const int64_t whole = length / kWhole * kWhole;
  const auto aligned = [](const Tensor& t) {
    return (t.rows() == 1 || t.RowStride() % kWhole == 0) &&
           reinterpret_cast<uintptr_t>(t.raw()) % 16 == 0;
  };
  const bool cuts = args.a.dtype() != DType::kF32 && whole != length &&
                    whole >= kLeast && SideBySide(args, dim) &&
                    aligned(args.a) && aligned(args.b) && aligned(args.c);
  // What is added to a narrow c would be rounded twice.
  const bool rounds =
      dim == ProductDim::kK && args.accumulate && args.c.dtype() != DType::kF32;
  return cuts && !rounds ? whole : 0;
}

// Where the product is cut in two along the dim; 0: nowhere.
int64_t CutAt(const MatMulArgs& args, ProductDim dim) {
  const int64_t half = LengthOf(args, dim) / 2 / kWhole * kWhole;
  return half > 0 && HasTooManyRows(args, dim) ? half : WholeVectors(args, dim);
}

void PlainProduct(CudaDevice& cuda, const MatMulArgs& args);

// A sum over what lies before the cut and what lies behind it: in f32, rounded
// once, where c is written and not added to.
void SumOfParts(CudaDevice& cuda, const MatMulArgs& args, int64_t cut) {
  const bool sums_first = args.c.dtype() != DType::kF32 && !args.accumulate;
  const Scratch sums(cuda, sums_first ? args.c.elements() * sizeof(float) : 0);
  MatMulArgs whole = args;
  if (sums_first) {
    whole.c = Tensor(sums.as<float>(), DType::kF32,
                     {args.c.rows(), args.c.columns()});
  }
  if (cuda.failed()) return;
  PlainProduct(cuda, PartOf(whole, ProductDim::kK, 0, cut));
  MatMulArgs rest =
      PartOf(whole, ProductDim::kK, cut, LengthOf(args, ProductDim::kK));
  rest.accumulate = true;
  PlainProduct(cuda, rest);
  if (sums_first) cuda::Copy(cuda, {.x = whole.c, .y = Matrix(args.c)});
}

void PlainProduct(CudaDevice& cuda, const MatMulArgs& args) {
  if (const int64_t cut = CutAt(args, ProductDim::kK); cut > 0) {
    return SumOfParts(cuda, args, cut);
  }
  for (const ProductDim dim : {ProductDim::kM, ProductDim::kN}) {
    const int64_t cut = CutAt(args, dim);
    if (cut == 0) continue;
    PlainProduct(cuda, PartOf(args, dim, 0, cut));
    return PlainProduct(cuda, PartOf(args, dim, cut, LengthOf(args, dim)));
  }
  if (Multiply(cuda, args, nullptr) || cuda.failed()) return;
  cuda.Check(absl::InternalError(
      absl::StrCat("cuBLASLt has no product of ", args.a.ShapeString(), " by ",
                   args.b.ShapeString(), " into ", args.c.ShapeString())));
}

// What cuBLASLt asks of the matrix beside c that a GELU's epilogue reads or
// writes, and we of its arithmetic: how exact its tanh is it does not say. It
// is closer than bf16 rounds; the GPU's own instruction, good to 2^-11, is no
// closer than fp16 does. Before Hopper its kernels with a GELU are slower than
// one without and a pass of ours (so llm.c has found).
bool FusesGelu(const CudaDevice& cuda, const Tensor& c, const Tensor& beside) {
  constexpr int kHopper = 90;
  const bool aligned =
      !beside.defined() || reinterpret_cast<uintptr_t>(beside.raw()) % 16 == 0;
  return cuda.generation() >= kHopper && c.dtype() == DType::kBF16 &&
         c.columns() % 8 == 0 && aligned;
}

// Whether its matrices are such as need no cut, of which only a plain product
// is in two.
bool IsOnePiece(const MatMulArgs& args) {
  return !IsTooLarge(args.a) && !IsTooLarge(args.b) && !IsTooLarge(args.c) &&
         !IsTooLarge(args.residual) && !IsTooLarge(args.gelu_input) &&
         !IsTooLarge(args.pre_activation);
}

// All in one pass over c, where there is a kernel for it. A GELU's input is
// always stored, in scratch memory where the caller does not keep it, so that
// the same kernel computes the same numbers for both.
bool Fused(CudaDevice& cuda, const MatMulArgs& args) {
  if (!IsOnePiece(args)) return false;
  if (args.bias.defined() && args.c.dtype() != args.a.dtype()) return false;
  if (args.activation == Activation::kNone) {
    return Multiply(cuda, args, nullptr);
  }
  if (!FusesGelu(cuda, args.c, args.pre_activation)) return false;
  if (args.pre_activation.defined()) {
    return Multiply(cuda, args, args.pre_activation.raw());
  }
  const Scratch before_gelu(cuda, args.c.elements() * sizeof(uint16_t));
  return Multiply(cuda, args, before_gelu.as<void>());
}

void ProductBySlope(CudaDevice& cuda, const MatMulArgs& args) {
  if (IsOnePiece(args) && FusesGelu(cuda, args.c, args.gelu_input) &&
      Multiply(cuda, args, nullptr)) {
    return;
  }
  if (cuda.failed()) return;
  MatMulArgs product = args;
  product.gelu_input = Tensor();
  PlainProduct(cuda, product);
  cuda::GeluBackward(cuda, {.x = args.gelu_input, .dy = args.c, .dx = args.c});
}

// In one, where cuBLASLt has a kernel for it; else the product, then the sum.
void ProductPlusResidual(CudaDevice& cuda, const MatMulArgs& args) {
  const bool one_type = args.c.dtype() == args.a.dtype();
  if (one_type && IsOnePiece(args) && Multiply(cuda, args, nullptr)) return;
  if (cuda.failed()) return;
  MatMulArgs product = args;
  product.residual = Tensor();
  cuda::MatMul(cuda, product);
  cuda::Add(cuda, {.x = args.residual, .y = args.c});
}

// The product, rounded as it is stored, then its GELU. REQUIRES that c is
// dense.
void ProductThenGelu(CudaDevice& cuda, const MatMulArgs& args) {
  const auto dense = [&](const Tensor& t) {
    return Tensor(t.raw(), t.dtype(), {args.c.rows(), args.c.columns()});
  };
  MatMulArgs product = args;
  product.activation = Activation::kNone;
  product.pre_activation = Tensor();
  product.c =
      dense(args.pre_activation.defined() ? args.pre_activation : args.c);
  cuda::MatMul(cuda, product);
  cuda::Gelu(cuda, {.x = product.c, .y = dense(args.c)});
}

}  // namespace

void MatMul(Device& device, const MatMulArgs& args) {
  CudaDevice& cuda = CudaDevice::From(device);
  if (args.gelu_input.defined()) return ProductBySlope(cuda, args);
  if (args.residual.defined()) return ProductPlusResidual(cuda, args);
  if (!args.bias.defined() && args.activation == Activation::kNone) {
    return PlainProduct(cuda, args);
  }
  if (Fused(cuda, args) || cuda.failed()) return;
  if (args.activation == Activation::kGelu && args.c.dtype() != DType::kF32 &&
      args.c.dense()) {
    return ProductThenGelu(cuda, args);
  }
  // The sums in f32, then the rest: what is stored is rounded once all the
  // same.
  MatMulArgs plain = {.a = args.a,
                      .b = args.b,
                      .c = args.c,
                      .transpose_a = args.transpose_a,
                      .transpose_b = args.transpose_b};
  std::optional<Scratch> sums;
  if (args.c.dtype() != DType::kF32) {
    sums.emplace(cuda, args.c.elements() * sizeof(float));
    plain.c = Tensor(sums->as<float>(), DType::kF32,
                     {args.c.rows(), args.c.columns()});
  }
  PlainProduct(cuda, plain);
  FinishRows(cuda, args, plain.c);
}

}  // namespace troupe::cuda
