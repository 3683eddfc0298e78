#include "worker/calibrate/calibrate_gpu.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "ops/gelu.h"
#include "ops/matmul.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/tensor.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "worker/calibrate/calibration_file.h"
#include "worker/calibrate/cold_bench.h"
#include "worker/calibrate/compute_rate.h"
#include "worker/calibrate/product_size.h"
#include "worker/layers/element_dtype.h"

namespace troupe {
namespace {

constexpr int kCallsAtOnce = 20;
// Several times the caches of an A100, H200 or B200, of 40 to 126 MB.
constexpr int64_t kColdBytes = 512 << 20;
// Raise it where other things are measured, or in another way.
constexpr int kVersion = 5;

// Behind those of compute_rate.cc, which a GPU is done with in the time of a
// launch: micro-batches of many tokens, through models narrow and wide and a
// vocabulary, up to what reaches the peak.
constexpr LinearSize kLinears[] = {{4096, 2048, 2048}, {16384, 768, 768},
                                   {16384, 768, 3072}, {16384, 3072, 768},
                                   {8192, 768, 16384}, {8192, 2048, 2048},
                                   {8192, 2048, 5632}, {8192, 5632, 2048},
                                   {8192, 4096, 4096}, {8192, 8192, 8192}};

// Where the operands lie, one behind the other.
struct Room {
  char* begin;
  size_t bytes;
};

// Fills a matrix with numbers at random: of equal ones a GPU multiplies up to a
// tenth faster, as its circuits then change state less and its clock stays
// higher. Narrow ones are drawn as f32 at the end of the room.
void FillAtRandom(Device& device, const Room& room, const Tensor& matrix) {
  const PhiloxStream stream = {.seed = 1};
  if (matrix.dtype() == DType::kF32) {
    return FillNormal(device, {.x = matrix, .stream = stream});
  }
  const size_t wide_bytes = matrix.elements() * sizeof(float);
  const Tensor wide(room.begin + room.bytes - wide_bytes, DType::kF32,
                    {matrix.rows(), matrix.columns()});
  FillNormal(device, {.x = wide, .stream = stream});
  Copy(device, {.x = wide, .y = matrix});
}

MatmulRate MeasureProduct(Device& device, const Clock& clock,
                          const ComputeRateOptions& options, const Room& room,
                          const ProductSize& size, ProductForm form,
                          ElementType type) {
  const DType dtype = DTypeOfElement(type);
  const int64_t m = size.m / options.shrink;
  const int64_t n = size.n / options.shrink;
  const int64_t k = size.k / options.shrink;
  const bool transpose_a = form == GRADIENT;
  const bool transpose_b = form == TRANSPOSED;
  char* next = room.begin;
  const auto take = [&](int64_t rows, int64_t columns, DType type) {
    const Tensor tensor(next, type, {rows, columns});
    next += (tensor.bytes() + 255) / 256 * 256;
    FillAtRandom(device, room, tensor);
    return tensor;
  };
  const MatMulArgs args = {
      .a = transpose_a ? take(k, m, dtype) : take(m, k, dtype),
      .b = transpose_b ? take(n, k, dtype) : take(k, n, dtype),
      .c = take(m, n, form == GRADIENT ? DType::kF32 : dtype),
      .transpose_a = transpose_a,
      .transpose_b = transpose_b,
      .accumulate = form == GRADIENT};
  const double seconds = SecondsOf(clock, options.each,
                                   [&] {
                                     for (int i = 0; i < kCallsAtOnce; ++i)
                                       MatMul(device, args);
                                     CHECK_OK(device.Synchronize());
                                   }) /
                         kCallsAtOnce;
  MatmulRate rate;
  rate.set_dtype(type);
  rate.set_form(form);
  rate.set_m(m);
  rate.set_n(n);
  rate.set_k(k);
  rate.set_flops_per_second(2.0 * m * n * k / seconds);
  return rate;
}

absl::Status MeasureLargeProducts(Device& device, const Clock& clock,
                                  const ComputeRateOptions& options,
                                  Calibration& calibration) {
  size_t bytes = 0;
  for (const LinearSize& linear : kLinears) {
    for (const ProductForm form : kProductForms) {
      const ProductSize size = SizeOf(linear, form);
      // A narrow matrix, and as f32 what it is drawn as.
      const size_t elements =
          size.m * size.k + size.k * size.n + size.m * size.n * 3 / 2;
      bytes = std::max(bytes, elements * sizeof(float) / options.shrink + 4096);
    }
  }
  ASSIGN_OR_RETURN(void* memory, device.Allocate(bytes));
  const Room room = {.begin = static_cast<char*>(memory), .bytes = bytes};
  for (const ElementType type : MeasuredTypes(device)) {
    for (const LinearSize& linear : kLinears) {
      for (const ProductForm form : kProductForms) {
        *calibration.add_matmul() = MeasureProduct(
            device, clock, options, room, SizeOf(linear, form), form, type);
      }
    }
  }
  device.Free(memory);
  return absl::OkStatus();
}

// GELUs a second, which a GPU computes while it waits for memory: what a large
// one takes beyond what its bytes take, if anything. In the caches, as on a
// CPU, one is over in the time of its launch.
absl::StatusOr<double> MeasureElementwise(Device& device, const Clock& clock,
                                          const ComputeRateOptions& options,
                                          DType dtype,
                                          double memory_bytes_per_second) {
  constexpr double kLeastShare = 0.02;  // of what its bytes take
  const int64_t n = (int64_t{16} << 20) / options.shrink;
  const int64_t elements =
      options.cold_bytes / options.shrink / static_cast<int64_t>(sizeof(float));
  ASSIGN_OR_RETURN(const std::unique_ptr<ColdBench> bench,
                   ColdBench::Create(device, clock,
                                     {.each = options.each,
                                      .elements = elements,
                                      .cold_bytes = options.cold_bytes,
                                      .calls_at_once = options.calls_at_once}));
  const double seconds = bench->ColdSeconds<GeluArgs>(Gelu, [&] {
    return GeluArgs{.x = bench->Take({n}, dtype), .y = bench->Take({n}, dtype)};
  });
  const double of_memory =
      2.0 * DTypeBytes(dtype) * n / memory_bytes_per_second;
  return n / std::max(seconds - of_memory, kLeastShare * of_memory);
}

}  // namespace

absl::StatusOr<Calibration> CalibrateGpu(Device& device, const Clock& clock,
                                         CalibrateOptions options) {
  options.compute.calls_at_once = kCallsAtOnce;
  options.compute.cold_bytes = kColdBytes;
  ASSIGN_OR_RETURN(Calibration calibration, Calibrate(device, clock, options));
  RETURN_IF_ERROR(
      MeasureLargeProducts(device, clock, options.compute, calibration));
  const auto elementwise = [&](DType dtype, double memory) {
    return MeasureElementwise(device, clock, options.compute, dtype, memory);
  };
  ASSIGN_OR_RETURN(
      const double wide,
      elementwise(DType::kF32, calibration.memory_bytes_per_second()));
  ASSIGN_OR_RETURN(
      const double narrow,
      elementwise(DType::kBF16, calibration.memory_bf16_bytes_per_second()));
  calibration.set_elementwise_ops_per_second(wide);
  calibration.set_elementwise_bf16_ops_per_second(narrow);
  return calibration;
}

std::string GpuCalibrationFile(const std::string& gpu_name) {
  std::string name = absl::AsciiStrToLower(gpu_name);
  for (char& letter : name) {
    if (!absl::ascii_isalnum(letter)) letter = '-';
  }
  return std::filesystem::path(DefaultCalibrationFile(1))
      .replace_filename(absl::StrCat("calibration-", name, ".textproto"));
}

std::string GpuCalibrationDevice(const Gpu& gpu) {
  const std::string& cudnn = gpu.cudnn_version();
  return absl::StrCat(
      "cuda ", gpu.name(), ", ",
      cudnn.empty() ? "no cuDNN" : absl::StrCat("cuDNN ", cudnn), ", v",
      kVersion);
}

}  // namespace troupe
