// Optimizer updates over flat ranges: any partition of a flat buffer may be
// updated by itself, so ZeRO and offloading need nothing more. Each is one pass
// over memory and follows PyTorch's semantics exactly.
//
// All tensors are dense and have as many elements; state is f32 and updated in
// place. Every gradient is first multiplied by `gradient_scale` (clipping,
// averaging). `parameters` optionally receives a copy of the new weights, for
// when what the model computes with is not the f32 master: f32, or bf16 or fp16
// rounded to nearest, ties to even (proto/base/bf16.h, fp16.h). Gradients are
// f32, or of the dtype of `parameters`.
//
// Weight decay may be of some elements only. Where it ends and begins, in turn,
// `decay_turns` says: {} is all of them, {100, 120} all but [100, 120), {0,
// 100} those from 100 on. So the flat buffer of a whole unit is one call.
#ifndef TROUPE_OPS_OPTIMIZER_H_
#define TROUPE_OPS_OPTIMIZER_H_

#include <cstdint>
#include <vector>

#include "ops/tensor.h"

namespace troupe {

class Device;

// Elements of `decay_turns` at most: a kernel has them among its arguments, of
// which CUDA passes 4 KiB.
constexpr int kDecayTurnsMax = 128;

// AdamW (Loshchilov and Hutter, 1711.05101), as torch.optim.AdamW:
//   w *= 1 - lr * weight_decay
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   w -= lr / (1 - beta1^step) * m / (sqrt(v) / sqrt(1 - beta2^step) + epsilon)
struct AdamWArgs {
  Tensor weights;        // updated
  Tensor gradients;      // read; set to zero where zero_gradients
  Tensor first_moment;   // m, updated
  Tensor second_moment;  // v, updated
  Tensor parameters;     // optional, written
  float learning_rate = 0.0f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float weight_decay = 0.0f;
  std::vector<int64_t> decay_turns;  // ascending
  int64_t step = 1;                  // of this update; the first is 1
  float gradient_scale = 1.0f;
  bool zero_gradients = false;
};

void AdamW(Device& device, const AdamWArgs& args);

// Lion (Chen et al., 2302.06675, algorithm 2):
//   w *= 1 - lr * weight_decay
//   w -= lr * sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g
// The sign of 0 is 0.
struct LionArgs {
  Tensor weights;     // updated
  Tensor gradients;   // read; set to zero where zero_gradients
  Tensor moment;      // m, updated
  Tensor parameters;  // optional, written
  float learning_rate = 0.0f;
  float beta1 = 0.9f;
  float beta2 = 0.99f;
  float weight_decay = 0.0f;
  std::vector<int64_t> decay_turns;  // ascending
  float gradient_scale = 1.0f;
  bool zero_gradients = false;
};

void Lion(Device& device, const LionArgs& args);

// SGD with momentum, as torch.optim.SGD (dampening 0):
//   g += weight_decay * w;  u = momentum u + g (u = g in the first step)
//   w -= lr * (nesterov ? g + momentum u : u)
// A momentum buffer of zeros gives the first step, so it needs no flag.
struct SgdArgs {
  Tensor weights;          // updated
  Tensor gradients;        // read; set to zero where zero_gradients
  Tensor momentum_buffer;  // u, updated; left out iff momentum is 0
  Tensor parameters;       // optional, written
  float learning_rate = 0.0f;
  float momentum = 0.0f;
  bool nesterov = false;
  float weight_decay = 0.0f;
  std::vector<int64_t> decay_turns;  // ascending
  float gradient_scale = 1.0f;
  bool zero_gradients = false;
};

void Sgd(Device& device, const SgdArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_OPTIMIZER_H_
