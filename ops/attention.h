// Causal softmax attention by blocks with online softmax: FlashAttention (Dao
// et al., 2205.14135) with the loops of FlashAttention-2 (2307.08691). Scores
// exist only block by block; memory beyond the arguments is linear in the
// sequence length. The forward keeps one logsumexp for each query row; the
// backward recomputes the probabilities from it.
//
//   o[i] = sum_j dropout(softmax_j(scale * q[i] . k[j])) v[j],
//          over the keys j at the positions up to that of query i
//
// Without more said the call has all keys of a sequence and its last queries:
// with equal lengths attention is plainly causal, and with a KV cache the last
// query sees all keys.
//
// Shapes: q is [batch, q_length, heads * head_dim], k [batch, kv_length,
// kv_heads * head_dim], v [batch, kv_length, kv_heads * value_dim] and o
// [batch, q_length, heads * value_dim]; head h is columns [h * head_dim, ...)
// and reads kv head h / (heads / kv_heads). value_dim is what v has: head_dim
// in most models, and on GPUs. q, k, v, o and their gradients are all f32, all
// bf16 or all fp16, logsumexp is f32; sums are in f32, and each element stored
// is rounded once. In bf16, and in fp16 on GPUs, the factors of products are of
// that type too: probabilities and the gradients of scores are rounded before
// they meet v, k, q; and where heads share their keys, a GPU may round the
// gradients of k and v by head, too, before it adds them up. Every tensor may
// be strided in batch and length, so q, k, v may be column slices of one
// [batch, length, 3 * width] tensor, and so may their gradients.
//
// The keys of a sequence may also come in parts, one call for each, in any
// order and cut anywhere, as in ring attention (Liu et al., 2310.01889), where
// they come from other ranks. `part` says where a call's rows stand; keys that
// no query sees cost nothing. Online softmax is then continued from call to
// call: a result that several calls add up lies in f32 until the last of them
// rounds it, and `..._before` is what the earlier calls have found of it:
//
//   Attention({.q, .k = first, .v, .o = sum, .logsumexp, .part});
//   Attention({.q, .k = next, .v, .o = sum, .o_before = sum, .logsumexp, ...});
//   Attention({.q, .k = last, .v, .o = bf16, .o_before = sum, ...});
//
// After each call o is the attention to the keys so far, and a row that has
// seen none is zero with a logsumexp of -inf. The backward is as well one call
// for each part, with o and logsumexp of them all.
//
// Where a sequence is several documents one after the other, `documents` says
// where the document of each position begins, and a query sees the keys of its
// own document only. Blocks of keys that no query of a block sees are skipped,
// so that short documents cost less than one long one.
#ifndef TROUPE_OPS_ATTENTION_H_
#define TROUPE_OPS_ATTENTION_H_

#include <cstdint>

#include "ops/attention_part.h"
#include "ops/tensor.h"
#include "proto/base/philox.h"

namespace troupe {

class Device;

// Dropout of the probabilities. The mask's element for sample b, head h, and
// the query and the key at positions i and j of a sequence of T is
//   (((first_sample + b) * total_heads + first_head + h) * T + i) * T + j
// and is kept as ops/dropout.h says.
struct AttentionDropout {
  float probability = 0.0f;
  PhiloxStream stream;
  int64_t first_sample = 0;  // global index of sample 0
  int64_t first_head = 0;    // global index of head 0 (tensor parallelism)
  int64_t total_heads = 0;   // of the whole model; 0: as many as here
};

struct AttentionArgs {
  Tensor q;
  Tensor k;
  Tensor v;
  Tensor o;          // written; of q's dtype, or f32
  Tensor o_before;   // optional, f32; may be o
  Tensor logsumexp;  // [batch, heads, q_length] dense, written; optional but
                     // with o_before, to which it belongs and is read with
  int heads = 0;
  int kv_heads = 0;    // divides heads
  float scale = 1.0f;  // > 0, usually 1 / sqrt(head_dim)
  AttentionPart part;  // without a length, kv_length >= q_length
  Tensor documents;    // optional, of the sequence (ops/documents.h)
  AttentionDropout dropout;
};

void Attention(Device& device, const AttentionArgs& args);

// The gradients overlap none of the other tensors but what they are added to.
struct AttentionBackwardArgs {
  Tensor q;
  Tensor k;
  Tensor v;
  Tensor o;          // of the forward, in q's dtype
  Tensor logsumexp;  // of the forward, and finite
  Tensor d_o;        // gradient of o
  Tensor dq;         // written; this and the next two of q's dtype, or f32
  Tensor dk;         // written
  Tensor dv;         // written
  Tensor dq_before;  // optional, f32, added to dq, which it may be
  Tensor dk_before;  // the same of dk
  Tensor dv_before;  // the same of dv
  int heads = 0;
  int kv_heads = 0;
  float scale = 1.0f;
  AttentionPart part;
  Tensor documents;
  AttentionDropout dropout;
};

void AttentionBackward(Device& device, const AttentionBackwardArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_ATTENTION_H_
