// Token and position embedding: y[b, t] = wte[tokens[b, t]] + wpe[first + t],
// or, where a sequence is several documents one after the other, + wpe[i -
// documents[b, i]] at i = first + t. The backward adds into the gradients of
// both tables in a fixed order, so it is deterministic also when a token occurs
// many times. X is f32, bf16 or fp16, the same for all tensors of a call; the
// sum is rounded once. The tables' gradients are f32, or of X, and then rounded
// once a call.
//
// Tables of tokens that are cut by rows over ranks (Megatron-LM, 1909.08053,
// section 3): wte's rows are those of the tokens [first_token, first_token +
// rows), the last of which may be padding. A token that is not among them adds
// nothing, so the ranks' y, of which one has wpe, add up to the whole one's.
#ifndef TROUPE_OPS_EMBEDDING_H_
#define TROUPE_OPS_EMBEDDING_H_

#include <cstdint>

#include "ops/tensor.h"

namespace troupe {

class Device;

struct EmbeddingArgs {
  Tensor tokens;               // i32 [batch, time], each in [0, vocabulary)
  Tensor wte;                  // X [rows, n]
  Tensor wpe;                  // optional, X [positions, n]
  Tensor y;                    // X [batch, time, n], written
  int64_t first_position = 0;  // of t = 0; generation and context shards
  Tensor documents;            // optional (ops/documents.h)
  int64_t first_token = 0;     // of wte's first row
  int64_t vocabulary = 0;      // of all ranks' tables; 0: this is the only one
};

void Embedding(Device& device, const EmbeddingArgs& args);

// Either gradient may be left out.
struct EmbeddingBackwardArgs {
  Tensor tokens;  // as in the forward
  Tensor dy;      // X [batch, time, n]
  Tensor dwte;    // optional, f32 or X [rows, n], accumulated
  Tensor dwpe;    // optional, f32 or X [positions, n], accumulated
  int64_t first_position = 0;
  Tensor documents;
  int64_t first_token = 0;
  int64_t vocabulary = 0;
};

void EmbeddingBackward(Device& device, const EmbeddingBackwardArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_EMBEDDING_H_
