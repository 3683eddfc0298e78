// Rotary position embeddings (RoFormer, arXiv 2104.09864): position p turns the
// pair i of a head's numbers by the angle p f_i, where
//
//   f_i = theta^(-2 i / D),  D = RotaryColumns,  i = 0 .. D/2 - 1,  theta =
//   rope_theta
//
// and the ways of stretching them beyond the length L of the first training
// (original_max_position_embeddings) by a factor s, named and computed as
// Hugging Face's modeling_rope_utils.py does. T is the sequence length.
//
//   linear    f_i / s (Chen et al., arXiv 2306.15595)
//   dynamic   theta becomes theta (s T/L - (s - 1))^(D / (D - 2)) where T > L;
//             "dynamic NTK" (bloc97 and emozilla, 2023; arXiv 2309.00071,
//             appendix A.1)
//   llama3    f_i where the wavelength 2 pi / f_i is below L /
//   high_freq_factor,
//             f_i / s where it is above L / low_freq_factor, and between these
//             the mean of both with the weight (L / wavelength - low) /
//             (high - low) of f_i (Llama 3.1; arXiv 2407.21783)
//   yarn      from f_i to f_i / s along a ramp over i, between the dimensions
//             that turn beta_fast and beta_slow times in L; queries and keys
//             are multiplied by attention_factor, or else by m(s, 1), or by
//             m(s, mscale) / m(s, mscale_all_dim) where both are given;
//             m(s, k) = 0.1 k ln s + 1 (Peng et al., arXiv 2309.00071)
//   longrope  f_i / short_factor[i], or f_i / long_factor[i] where T > L;
//             queries and keys are multiplied by attention_factor, or else by
//             sqrt(1 + ln s / ln L) where s > 1 (Ding et al., arXiv 2402.13753)
#ifndef TROUPE_PROTO_PLAN_ROPE_H_
#define TROUPE_PROTO_PLAN_ROPE_H_

#include <cstdint>
#include <vector>

#include "proto/job.pb.h"

namespace troupe {

struct Rope {
  std::vector<double> inverse_frequencies;  // f_0 .. f_{D/2 - 1}
  double attention_factor =
      1;  // of cosine and sine, for queries and keys alike
};

// How many columns of a head turn, the first ones: qk_rope_head_dim, head_dim,
// or partial_rotary_factor of hidden_size over the heads, rounded down.
// REQUIRES a resolved model.
int64_t RotaryColumns(const ModelSpec& model);

// What positions of a sequence of `sequence_length` turn by. Only dynamic and
// longrope look at the length. REQUIRES a model that CheckRope
// (rope_fields.h) likes.
Rope RopeFrequencies(const ModelSpec& model, int64_t sequence_length);

// The attention_factor of a longrope that does not give it.
double LongRopeAttentionFactor(const RopeScaling& scaling);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_ROPE_H_
