// Queries, keys and values that were made apart, side by side, as attention
// reads them. With h heads of queries, g of keys and values, n + r columns in a
// head of queries and keys and v in one of values:
//
//   y = [queries: h (r + n) | keys: g (r + n) | values: g v]
//
// Of a head of q the last r columns become its first ones, which are those that
// turn (ops/rotary.h). A key's first r columns are `shared`, the same for all
// heads, and the others its own: multi-head latent attention (DeepSeek-V2,
// arXiv 2405.04434, section 2.1.3; DeepSeek-V3, arXiv 2412.19437). Without
// `shared` r is 0. `interleaved`: column 2 i of those r becomes i, and 2 i + 1
// becomes i + r / 2. The product of a query and a key does not depend on the
// order of columns, as long as both have the same.
//
// The backward takes gradients apart again; that of `shared` is the sum over
// the heads of keys, in f32, rounded once.
#ifndef TROUPE_OPS_JOIN_HEADS_H_
#define TROUPE_OPS_JOIN_HEADS_H_

#include <cstdint>

#include "ops/tensor.h"

namespace troupe {

class Device;

// All f32, bf16 or fp16 [batch, time, columns], of one dtype. They may be
// strided in batch and time, and do not overlap. JoinHeads reads the parts and
// writes y; JoinHeadsBackward reads the gradient of y and writes those of the
// parts, of which it leaves out what is not defined.
struct JoinHeadsArgs {
  Tensor q;       // h (n + r) columns
  Tensor k;       // g n columns; without v g (n + v): of each head n of the key
                  // and then v of the value
  Tensor v;       // optional: g v columns
  Tensor shared;  // optional: r columns, an even number
  Tensor y;
  int heads = 0;
  int kv_heads = 0;
  int64_t key_width = 0;        // r + n
  int64_t value_width = 0;      // v
  int64_t shared_width = 0;     // r
  bool values_in_keys = false;  // k has them, and there is no v
  bool interleaved = false;
};

void JoinHeads(Device& device, const JoinHeadsArgs& args);
void JoinHeadsBackward(Device& device, const JoinHeadsArgs& args);

// Where column `turned` of the r that turn lies in q and in `shared`.
constexpr int64_t TurnedSource(int64_t turned, int64_t r, bool interleaved) {
  if (!interleaved) return turned;
  return turned < r / 2 ? 2 * turned : 2 * (turned - r / 2) + 1;
}

}  // namespace troupe

#endif  // TROUPE_OPS_JOIN_HEADS_H_
