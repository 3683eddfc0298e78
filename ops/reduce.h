// Passes over flat ranges: what gradients need between backward and step. But
// for Add and Copy, all tensors are dense; shapes are ignored, element counts
// must agree.
#ifndef TROUPE_OPS_REDUCE_H_
#define TROUPE_OPS_REDUCE_H_

#include "ops/tensor.h"

namespace troupe {

class Device;

// result += sum of x^2, for norms: f32 within short blocks, f64 across them, in
// an order that depends on neither threads nor alignment.
struct SumOfSquaresArgs {
  Tensor x;       // f32, bf16 or fp16
  Tensor result;  // f64 [1], accumulated
};
void SumOfSquares(Device& device, const SumOfSquaresArgs& args);

// y += alpha * x, in f32 and rounded once. Of the same shape, and then they may
// be strided, or dense and of as many elements.
struct AddArgs {
  Tensor x;  // f32, bf16 or fp16
  Tensor y;  // of the same dtype, updated
  float alpha = 1.0f;
};
void Add(Device& device, const AddArgs& args);

// x *= alpha, in f32 and rounded once.
struct ScaleArgs {
  Tensor x;  // f32, bf16 or fp16, updated
  float alpha = 1.0f;
};
void Scale(Device& device, const ScaleArgs& args);

// x = value.
struct FillArgs {
  Tensor x;  // f32, bf16 or fp16, written
  float value = 0.0f;
};
void Fill(Device& device, const FillArgs& args);

// y = x, of the same dtype or cast between f32 and bf16 or fp16: widening is
// exact, narrowing rounds to nearest, ties to even (proto/base/bf16.h, fp16.h).
// x and y have the same shape, and may be strided.
struct CopyArgs {
  Tensor x;
  Tensor y;  // written
};
void Copy(Device& device, const CopyArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_REDUCE_H_
