// Rotary position embedding of queries and keys: RoFormer (Su et al.,
// 2104.09864), in Hugging Face's pairing of a head's columns (rotate_half). At
// position p, columns i and i + head_dim/2 of each head turn by the angle
// a = p * inverse_frequencies[i]:
//
//   x[i]              = scale * (x[i] cos a - x[i + head_dim/2] sin a)
//   x[i + head_dim/2] = scale * (x[i + head_dim/2] cos a + x[i] sin a)
//
// Where `turned` is less than head_dim, only the first `turned` columns of each
// head turn, as if they were the head (GPT-NeoX, arXiv 2204.06745).
//
// The inverse turns by -a with the same scale: it is the transpose, and so the
// backward, of the forward. Only for scale 1 does it undo it.
//
// Where a sequence is several documents one after the other, positions count
// from the first token of each: p is i - documents[b, i] at i = first_position
// + t.
//
// Position and frequency are rounded to f32, and so is their product a, as in
// Hugging Face's models: checkpoints of either turn alike far out, where f32 is
// coarse. The cosine and sine are those of f32's a to one unit in the last
// place, times scale; they and the rotation are computed in f32, and each
// element stored is rounded once. In bf16 and fp16 the angles are the same
// ones.
#ifndef TROUPE_OPS_ROTARY_H_
#define TROUPE_OPS_ROTARY_H_

#include <cstdint>

#include "ops/tensor.h"

namespace troupe {

class Device;

struct RotaryArgs {
  // f32, bf16 or fp16 [batch, time, heads * head_dim], rotated in place;
  // head_dim is even where all of it turns. May be strided in batch and time: a
  // column slice of one [batch, time, 3 * width] tensor, or the queries and
  // keys of it at once.
  Tensor x;
  int heads = 0;
  int64_t turned = 0;  // columns of each head, an even number; 0: head_dim
  // [turned / 2], on the host; read before the call returns.
  const double* inverse_frequencies = nullptr;
  double scale = 1.0;          // of cosine and sine: YaRN's attention factor
  int64_t first_position = 0;  // of time 0; generation and context shards
  Tensor documents;            // optional (ops/documents.h)
  bool inverse = false;
};

void Rotary(Device& device, const RotaryArgs& args);

// Pairs of a head's columns that turn: the number of frequencies.
int64_t RotaryPairs(const RotaryArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_ROTARY_H_
