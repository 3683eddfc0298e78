// Attention (ops/attention.h) as a graph for cuDNN, in the form that its
// kernels recognise: NVIDIA's own frontend writes it so (github.com/NVIDIA/
// cudnn-frontend, scaled_dot_product_flash_attention.h), and so it must be, as
// what cuDNN has kernels for is said in such forms.
//
//   forward   S = scale Q K^T, masked;  m = max S;  E = exp(S - m);  l = sum E;
//             logsumexp = m + log l;  O = (E / l) V
//   backward  delta = rowsum(dO o O);  P = exp(S - logsumexp), masked;
//             dV = P^T dO;  dS = scale P o (dO V^T - delta);  dK = dS^T Q;
//             dQ = dS K
//
// Dims are [batch, heads, length, head_dim]. Where heads share their keys, the
// gradients of k and v are rounded for each head, and once more when the heads'
// are added.
#ifndef TROUPE_OPS_CUDA_CUDNN_ATTENTION_GRAPH_H_
#define TROUPE_OPS_CUDA_CUDNN_ATTENTION_GRAPH_H_

#include <array>
#include <cstdint>
#include <utility>

#include "ops/cuda/cudnn_graph.h"
#include "ops/tensor.h"

namespace troupe::cuda {

// What a plan depends on.
struct CudnnAttentionShape {
  // In elements, of a tensor [batch, length, heads * head_dim].
  struct Strides {
    int64_t sample = 0, row = 0;

    bool operator==(const Strides&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Strides& s) {
      return H::combine(std::move(h), s.sample, s.row);
    }
  };

  bool backward = false;
  DType type = DType::kBF16;  // or kF16
  int64_t batch = 0, heads = 0, kv_heads = 0;
  int64_t q_length = 0, kv_length = 0;  // the queries are of the last keys
  int64_t head_dim = 0;
  Strides q, k, v, o;
  Strides d_o, dq, dk, dv;  // of the backward

  bool operator==(const CudnnAttentionShape&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const CudnnAttentionShape& s) {
    return H::combine(std::move(h), s.backward, s.type, s.batch, s.heads,
                      s.kv_heads, s.q_length, s.kv_length, s.head_dim, s.q, s.k,
                      s.v, s.o, s.d_o, s.dq, s.dk, s.dv);
  }
};

// By which a run gives the memory and the numbers of a graph.
struct CudnnAttentionIds {
  enum : int64_t {
    kQ = 1,
    kK,
    kV,
    kO,
    kLogsumexp,  // f32 [batch, heads, q_length], dense, as kDelta
    kScale,      // f32
    kMasked,     // f32: what a score becomes that is not seen, -infinity
    kQLength,    // i32, where kv_length is another; as the next
    kKvLength,
    // Of the backward.
    kDO,
    kDQ,
    kDK,
    kDV,
    kDelta,  // memory that it needs
    kOne,    // f32: 1
  };
};

// The graph of the shape's direction.
CudnnGraph CudnnAttentionGraph(const CudnnLibrary& library,
                               const CudnnAttentionShape& shape);

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_CUDNN_ATTENTION_GRAPH_H_
