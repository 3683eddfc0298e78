// Muon (Jordan et al., 2024), as arXiv 2502.16982, section 2.2, scales it for
// training beside AdamW. Of one matrix W [rows, columns]:
//
//   g = gradient_scale * gradient;  u = momentum u + g
//   d = nesterov ? g + momentum u : u
//   W *= 1 - lr * weight_decay
//   W -= lr * 0.2 sqrt(max(rows, columns)) * O(d)
//
// O(d) is what five steps of a Newton-Schulz iteration make of d: nearly the
// orthogonal matrix next to it, U V^T of its singular value decomposition
// U S V^T. With X = d / (||d||_F + 1e-7), five times, of the shorter side:
//
//   X = a X + (b A + c A A) X,  A = X X^T,  (a, b, c) = (3.4445,
//   -4.7750, 2.0315)
//
// The factor gives updates the size that AdamW's have. All of it is in f32. An
// update needs the whole matrix. Where the device is asynchronous, the host
// waits for the norm of d.
#ifndef TROUPE_OPS_MUON_H_
#define TROUPE_OPS_MUON_H_

#include "absl/status/status.h"
#include "ops/tensor.h"

namespace troupe {

class Device;

// All but the workspace are dense and [rows, columns].
struct MuonArgs {
  Tensor weights;          // f32, updated
  Tensor gradients;        // f32, or of the dtype of `parameters`; set to zero
                           // where zero_gradients
  Tensor momentum_buffer;  // u, f32, updated
  Tensor parameters;  // optional: f32, bf16 or fp16, the new weights rounded
  float learning_rate = 0.0f;
  float momentum = 0.95f;
  bool nesterov = true;
  float weight_decay = 0.0f;
  float gradient_scale = 1.0f;
  bool zero_gradients = false;
  Tensor workspace;  // f32, as many as proto/base/matrix_workspace.h says
};

// An error is the device's.
absl::Status Muon(Device& device, const MuonArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_MUON_H_
