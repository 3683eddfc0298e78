// Draws the next token of a generated text from one row of logits. Runs on the
// host, on host memory: one row a step is no work for a device.
#ifndef TROUPE_OPS_SAMPLE_H_
#define TROUPE_OPS_SAMPLE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace troupe {

struct SampleOptions {
  float temperature = 1.0f;  // 0: the most likely token
  int top_k = 0;             // only among the k most likely; 0: among all
  float uniform = 0.0f;      // the random number, in [0, 1)
};

// The index of the drawn token. Ties are broken by the lower index, and tokens
// are laid along [0, 1) in the order of their indices. `logits` is not empty.
int SampleToken(absl::Span<const float> logits, const SampleOptions& options);

// The same of bf16 logits, given as their bits.
int SampleToken(absl::Span<const uint16_t> logits,
                const SampleOptions& options);

}  // namespace troupe

#endif  // TROUPE_OPS_SAMPLE_H_
