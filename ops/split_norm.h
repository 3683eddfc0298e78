// Layer norm and RMS norm of rows whose columns are cut over ranks (2-D and 3-D
// tensor parallelism: Xu et al., 2104.05343; Bian et al., 2105.14450). Each
// rank has `n` of a row's `columns`; what ranks tell each other are two numbers
// a row, which the caller sums over the ranks between these ops:
//
//   RowSums             m0 = sum x, m1 = sum x^2       (sum m over ranks)
//   SplitNorm           mean = m0 / columns, var = m1 / columns - mean^2
//                       y = (x - mean) * rstd * gamma + beta
//   SplitNormBackwardInput   gradient through y, of x where the row sums are
//                       given, and of the row sums    (sum these over ranks)
//   RowSumsBackward     adds the gradient through the row sums
//
// RMS norm is the same with 0 for the mean. The weights' gradients are those of
// layer_norm.h and rms_norm.h, from the mean and rstd that SplitNorm writes.
//
// All tensors are dense; leading dims merge into rows. X is f32, bf16 or fp16,
// the same for all tensors of a call. Row sums and their gradients are f64: a
// variance is the difference of two numbers that are larger by mean^2 / var.
// For a mean of 1000 standard deviations the error of the variance is below
// 1e-7 of it. Elements are computed in f32 or more and rounded once a call.
#ifndef TROUPE_OPS_SPLIT_NORM_H_
#define TROUPE_OPS_SPLIT_NORM_H_

#include <cstdint>

#include "ops/tensor.h"

namespace troupe {

class Device;

struct RowSumsArgs {
  Tensor x;        // X [rows, n]
  Tensor row_sums;  // f64 [rows, 2], written: sums of x and of x^2
};

void RowSums(Device& device, const RowSumsArgs& args);

// dx = residual_gradient + g0 + 2 x g1.
struct RowSumsBackwardArgs {
  Tensor x;                  // X [rows, n]
  Tensor row_sums_gradient;  // f64 [rows, 2]: g0, g1, summed over all ranks
  Tensor residual_gradient;  // optional, X [rows, n]
  Tensor dx;                 // X [rows, n], written; may be residual_gradient
};

void RowSumsBackward(Device& device, const RowSumsBackwardArgs& args);

struct SplitNormArgs {
  Tensor x;             // X [rows, n]
  Tensor row_sums;      // f64 [rows, 2], summed over all ranks
  int64_t columns = 0;  // of all ranks, at least n
  Tensor gamma;         // X [n]
  Tensor beta;          // optional, X [n]
  bool centred = true;  // layer norm; else RMS norm
  float epsilon = 1e-5f;
  Tensor y;     // X [rows, n], written; may be x
  Tensor mean;  // f32 [rows], written; with rstd and only where centred
  Tensor rstd;  // optional, f32 [rows], written
};

void SplitNorm(Device& device, const SplitNormArgs& args);

// dx = gamma dy rstd (+ residual_gradient). The row sums' gradient is, with
// A = sum gamma dy and B = sum gamma dy (x - mean) over this rank's columns,
//   g1 = -rstd^3 B / 2 / columns,
//   g0 = -rstd A / columns - 2 mean g1, for RMS norm 0.
struct SplitNormBackwardInputArgs {
  Tensor dy;                 // X [rows, n]
  Tensor x;                  // X [rows, n]
  Tensor gamma;              // X [n]
  Tensor mean;               // f32 [rows]; layer norm's, RMS norm has none
  Tensor rstd;               // f32 [rows]
  int64_t columns = 0;       // of all ranks, at least n
  Tensor residual_gradient;  // optional, X [rows, n]
  Tensor dx;  // X [rows, n], written; may be dy or residual_gradient
  Tensor row_sums_gradient;  // f64 [rows, 2], written: this rank's summand
};

void SplitNormBackwardInput(Device& device,
                            const SplitNormBackwardInputArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_SPLIT_NORM_H_
