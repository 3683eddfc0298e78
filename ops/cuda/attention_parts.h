// Attention's forward where heads have few queries and many keys, as when text
// is generated: were a block to go through all keys of a head, most of a GPU
// would look on. The keys are cut into parts, by the shape alone, each with a
// block of its own (Flash-Decoding: Dao, Haziza, Massa and Sizov, 2023). What
// the parts have found is then joined, in order.
#ifndef TROUPE_OPS_CUDA_ATTENTION_PARTS_H_
#define TROUPE_OPS_CUDA_ATTENTION_PARTS_H_

#include "ops/cuda/attention_heads.h"
#include "ops/cuda/kernel_device.h"

namespace troupe::cuda {

template <typename T>
struct RawParts {
  RawAttention<T> attention;
  int parts;
  int part_keys;    // of each but the last, which has what is left
  int block_heads;  // that share their keys and have one query: they are the
                    // rows of a block; 1: the rows are a head's queries
  // What a part has found for a row, [batch, heads, q_length, parts]: the
  // largest scaled score, in powers of 2, and the sum of 2^(score - largest).
  float* largest;
  float* sum;
  float* products;  // [..., parts, head_dim]: the sums of 2^(score - largest) v

  __host__ __device__ int rows() const {
    return block_heads * attention.q_length();
  }
};

// o and logsumexp from what the parts have found.
template <typename T>
void LaunchJoinParts(CudaDevice& device, const RawParts<T>& parts);

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_ATTENTION_PARTS_H_
