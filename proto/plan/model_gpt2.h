// GPT-2 (Radford et al., 2019) as arithmetic: one row of the table in model.cc.
// Only model.cc includes this; everybody else reads model.h.
//
// What a block keeps between its passes, with R = sequences x sequence_length
// rows, C = hidden_size, F = intermediate_size (each tensor starts on 64
// bytes; statistics, up to log-sum-exp, are f32, all others of the shape's
// dtype):
//
//   stash         mean and rstd of both norms [R] each, log-sum-exp
//                 [sequences, heads, sequence_length], norm 1 [R, C], qkv
//                 [R, 3C], attention [R, C], residual sum [R, C], norm 2
//                 [R, C], MLP before [R, F] and after [R, F] the GELU
//   weight stash  gradients of norm 1 [R, C], qkv [R, 3C], the residual sum
//                 [R, C], norm 2 [R, C], MLP before the GELU [R, F]
//   workspace     one [R, C], for gradients under a dropout mask
//
// and the head, with V = vocab_size rounded up to kFlatAlignment so that rows
// of logits start on cache lines:
//
//   stash         mean, rstd [R] each, norm [R, C], logits [R, V], which the
//                 loss overwrites with their gradient
//   weight stash  gradient of the norm's output [R, C]
//
// Work leaves dropout out: its masks are cheap beside the passes they ride on.
#ifndef TROUPE_PROTO_PLAN_MODEL_GPT2_H_
#define TROUPE_PROTO_PLAN_MODEL_GPT2_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "proto/plan/micro_batch.h"

namespace troupe {

// The part of ResolveModel and ModelUnits that is GPT-2's own.
absl::Status ResolveGpt2(ModelSpec& model);
absl::Status CheckGpt2(const ModelSpec& model);
std::vector<Unit> Gpt2Units(const ModelSpec& model,
                            const MicroBatchShape& shape);

// Parameters that are only looked up, never multiplied with: the position
// table, and the token table where the projection has its own.
int64_t Gpt2LookupParameters(const ModelSpec& model);

// Width of attention: of all heads together.
int64_t Gpt2AttentionWidth(const ModelSpec& model);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_MODEL_GPT2_H_
