// Adafactor (Shazeer and Stern, 1804.04235, algorithms 4 to 6) without
// momentum, as transformers' Adafactor: of the second moments of a matrix the
// means of each row and each column are kept, of those of a vector all. Of one
// matrix W [rows, columns], n its elements, with rms(X) = sqrt(sum(X^2) / n):
//
//   g = gradient_scale * gradient
//   R = beta2 R + (1 - beta2) (row means of g^2 + epsilon1)
//   C = beta2 C + (1 - beta2) (column means of g^2 + epsilon1)
//   U = g / sqrt(R C^T / mean(R))
//   a = lr * (scale_parameter ? max(epsilon2, rms(W)) : 1)
//   W *= 1 - a * weight_decay;  W -= a / max(1, rms(U)) * U
//
// Of a vector U = g / sqrt(V), with V = beta2 V + (1 - beta2) (g^2 + epsilon1).
// An update needs the whole matrix or vector. Sums are taken in f64, but those
// of columns on a GPU in f32.
#ifndef TROUPE_OPS_ADAFACTOR_H_
#define TROUPE_OPS_ADAFACTOR_H_

#include "ops/tensor.h"

namespace troupe {

class Device;

// All are dense. `row_moment` and `column_moment` belong to a matrix,
// `second_moment` to a vector, which has one row.
struct AdafactorArgs {
  Tensor weights;        // f32 [rows, columns], updated
  Tensor gradients;      // f32, or of the dtype of `parameters`; set to zero
                         // where zero_gradients
  Tensor row_moment;     // R, f32 [rows], updated
  Tensor column_moment;  // C, f32 [columns], updated
  Tensor second_moment;  // V, f32 [columns], updated
  Tensor parameters;     // optional: f32, bf16 or fp16, the new weights rounded
  float learning_rate = 0.0f;
  double beta2 = 0;  // of this update: 1 - t^decay_rate; 0 in the first one
  double epsilon1 = 1e-30;
  double epsilon2 = 1e-3;
  bool scale_parameter = true;
  float weight_decay = 0.0f;
  float gradient_scale = 1.0f;
  bool zero_gradients = false;
  Tensor workspace;  // f32, as many as proto/base/matrix_workspace.h says
};

void Adafactor(Device& device, const AdafactorArgs& args);

// The places of an update in its workspace.
struct AdafactorScratch {
  double* row_squares;    // [rows, 2]: sums of the squares of U, and of W
  double* squares;        // [2]: those of all rows
  float* row_factors;     // [rows]: sqrt(mean(R) / R)
  float* column_factors;  // [columns]: 1 / sqrt(C)
};
AdafactorScratch AdafactorScratchIn(const AdafactorArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_ADAFACTOR_H_
