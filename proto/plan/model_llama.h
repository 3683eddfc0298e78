// Llama (Touvron et al., arXiv 2302.13971) as arithmetic: one row of the table
// in model.cc. Only model.cc includes this; everybody else reads model.h.
//
// Root-mean-square norms, rotary positions, grouped-query attention, SwiGLU; no
// biases unless attention_bias or mlp_bias ask for them. Queries, keys and
// values lie one after another in the flat buffer, as do gate and up, so that
// where their sizes are multiples of kFlatAlignment each is one product.
//
// What a block keeps between its passes, with R = sequences x sequence_length
// rows, C = hidden_size, F = intermediate_size, A = heads x head_dim, K =
// key-value heads x head_dim (each tensor starts on 64 bytes; statistics, up to
// log-sum-exp, are f32, all others of the shape's dtype):
//
//   stash         rstd of both norms [R] each, log-sum-exp [sequences, heads,
//                 sequence_length], norm 1 [R, C], rotated qkv [R, A + 2K],
//                 attention [R, A], residual sum [R, C], norm 2 [R, C], gate
//                 and up [R, 2F], their SwiGLU [R, F]
//   weight stash  gradients of norm 1 [R, C], qkv before the rotation [R, A +
//                 2K], the residual sum [R, C], norm 2 [R, C], gate and up
//                 [R, 2F]
//   workspace     one [R, max(A, F)]: gradient of the attention or the SwiGLU
//
// and the head, with V = vocab_size rounded up to kFlatAlignment:
//
//   stash         rstd [R], norm [R, C], logits [R, V], which the loss
//                 overwrites with their gradient
//   weight stash  gradient of the norm's output [R, C]
#ifndef TROUPE_PROTO_PLAN_MODEL_LLAMA_H_
#define TROUPE_PROTO_PLAN_MODEL_LLAMA_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "proto/plan/micro_batch.h"

namespace troupe {

// The part of ResolveModel and ModelUnits that is Llama's own.
absl::Status ResolveLlama(ModelSpec& model);
absl::Status CheckLlama(const ModelSpec& model);
std::vector<Unit> LlamaUnits(const ModelSpec& model,
                             const MicroBatchShape& shape);

// The token table where the projection has its own: it is only looked up.
int64_t LlamaLookupParameters(const ModelSpec& model);

// Width of attention: of all query heads together.
int64_t LlamaAttentionWidth(const ModelSpec& model);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_MODEL_LLAMA_H_
