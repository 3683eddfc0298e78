#include "ops/muon.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/matmul.h"
#include "ops/optimizer.h"
#include "ops/reduce.h"
#include "proto/base/matrix_workspace.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

constexpr int kIterations = 5;
constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;
constexpr double kEpsilon = 1e-7;  // beside the norm
constexpr double kScale = 0.2;     // of a root mean square like AdamW's
constexpr int64_t kLine = 16;      // elements of f32 in 64 bytes

int64_t InLines(int64_t elements) {
  return (elements + kLine - 1) / kLine * kLine;
}

// The places of an update in its workspace.
struct Scratch {
  Tensor x, next;           // [rows, columns]
  Tensor gram, polynomial;  // square, of the shorter side
  Tensor norm;              // f64 [1]
};

Scratch ScratchIn(const Tensor& workspace, int64_t rows, int64_t columns) {
  float* at = workspace.data<float>();
  const int64_t side = std::min(rows, columns);
  const auto take = [&at](int64_t of_rows, int64_t of_columns) {
    const Tensor tensor(at, DType::kF32, {of_rows, of_columns});
    at += InLines(of_rows * of_columns);
    return tensor;
  };
  Scratch scratch;
  scratch.x = take(rows, columns);
  scratch.next = take(rows, columns);
  scratch.gram = take(side, side);
  scratch.polynomial = take(side, side);
  scratch.norm = Tensor(at, DType::kF64, {1});
  return scratch;
}

// The direction of the step, in x. SGD that begins at zero and goes backward
// leaves just that.
void MakeDirection(Device& device, const MuonArgs& args, const Tensor& x) {
  Fill(device, {.x = x, .value = 0});
  Sgd(device,
      {.weights = x,
       .gradients = args.gradients,
       .momentum_buffer = args.momentum == 0 ? Tensor() : args.momentum_buffer,
       .parameters = args.parameters,  // written again below
       .learning_rate = -1,
       .momentum = args.momentum,
       .nesterov = args.nesterov,
       .gradient_scale = args.gradient_scale,
       .zero_gradients = args.zero_gradients});
}

absl::Status Normalise(Device& device, const Scratch& scratch) {
  device.Zero(scratch.norm.data<double>(), sizeof(double));
  SumOfSquares(device, {.x = scratch.x, .result = scratch.norm});
  double squares = 0;
  device.CopyToHost(&squares, scratch.norm.data<double>(), sizeof(squares));
  RETURN_IF_ERROR(device.Synchronize());
  const double scale = 1 / (std::sqrt(squares) + kEpsilon);
  Scale(device, {.x = scratch.x, .alpha = static_cast<float>(scale)});
  return absl::OkStatus();
}

// next = a x + (b A + c A A) x. Of a matrix with more rows than columns A is
// x^T x, and stands on the other side.
void Iterate(Device& device, bool tall, const Scratch& scratch) {
  const auto& [x, next, gram, polynomial, norm] = scratch;
  MatMul(
      device,
      {.a = x, .b = x, .c = gram, .transpose_a = tall, .transpose_b = !tall});
  MatMul(device, {.a = gram, .b = gram, .c = polynomial});
  Scale(device, {.x = polynomial, .alpha = kC});
  Add(device, {.x = gram, .y = polynomial, .alpha = kB});
  MatMul(device,
         {.a = tall ? x : polynomial, .b = tall ? polynomial : x, .c = next});
  Add(device, {.x = x, .y = next, .alpha = kA});
}

}  // namespace

absl::Status Muon(Device& device, const MuonArgs& args) {
  CHECK_DENSE_F32(args.weights);
  CHECK_EQ(args.weights.rank(), 2);
  const int64_t rows = args.weights.dim(0), columns = args.weights.dim(1);
  CHECK_F32_ELEMENTS(args.momentum_buffer, rows * columns);
  CHECK_DENSE_F32(args.workspace);
  CHECK_GE(args.workspace.elements(), MuonWorkspace(rows, columns));
  Scratch scratch = ScratchIn(args.workspace, rows, columns);
  MakeDirection(device, args, scratch.x);
  RETURN_IF_ERROR(Normalise(device, scratch));
  for (int i = 0; i < kIterations; ++i) {
    Iterate(device, rows > columns, scratch);
    std::swap(scratch.x, scratch.next);
  }
  const double lr = args.learning_rate;
  const double size =
      kScale * std::sqrt(static_cast<double>(std::max(rows, columns)));
  Scale(device, {.x = args.weights,
                 .alpha = static_cast<float>(1 - lr * args.weight_decay)});
  Add(device, {.x = scratch.x,
               .y = args.weights,
               .alpha = static_cast<float>(-lr * size)});
  if (args.parameters.defined()) {
    Copy(device, {.x = args.weights, .y = args.parameters});
  }
  return absl::OkStatus();
}

}  // namespace troupe
