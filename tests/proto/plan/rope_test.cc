#include "proto/plan/rope.h"

#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/plan/rope_fields.h"
#include "tests/proto/plan/llama_spec.h"

namespace troupe {
namespace {

struct Case {
  std::string scaling;  // of rope_scaling, as text; empty: none
  int64_t length;
  std::vector<double> frequencies;
  double attention_factor;
};

// Made with `transformers` 5.23, whose LlamaRotaryEmbedding was computed in
// float64 (tests/oracle/float64.py) for rope_theta 500, head_dim 8 and 64
// positions, and asked for positions 0 to length - 1. For dynamic at length 40
// ROPE_INIT_FUNCTIONS was called with an int, as a tensor would bring float32
// in.
const Case kCases[] = {
    {"",
     64,
     {1.0, 0.21147425268811282, 0.044721359549995794, 0.009457416090031758},
     1},
    {"type: 'linear' factor: 2.5",
     64,
     {0.4, 0.08458970107524513, 0.01788854381999832, 0.003782966436012703},
     1},
    {"type: 'dynamic' factor: 2 original_max_position_embeddings: 20",
     16,
     {1.0, 0.21147425268811282, 0.044721359549995794, 0.009457416090031758},
     1},
    {"type: 'dynamic' factor: 2 original_max_position_embeddings: 20",
     40,
     {1.0, 0.14662805733617806, 0.021499787198181516, 0.0031524720300105864},
     1},
    {"type: 'llama3' factor: 4 low_freq_factor: 1 high_freq_factor: 4 "
     "original_max_position_embeddings: 24",
     64,
     {0.954929658551372, 0.052868563172028205, 0.011180339887498949,
      0.0023643540225079395},
     1},
    {"type: 'yarn' factor: 4 original_max_position_embeddings: 16 "
     "beta_fast: 2 beta_slow: 0.25",
     64,
     {1.0, 0.1321714079300705, 0.011180339887498949, 0.0023643540225079395},
     1.138629436111989},
    {"type: 'yarn' original_max_position_embeddings: 16 beta_fast: 2 "
     "beta_slow: 0.25 mscale: 1 mscale_all_dim: 0.5 truncate: false",
     64,
     {1.0, 0.11139711837269309, 0.011180339887498949, 0.0023643540225079395},
     1.0648216253695715},
    {"type: 'longrope' original_max_position_embeddings: 16 "
     "short_factor: [1, 1.1, 1.3, 1.7] long_factor: [1, 1.9, 3, 5.5]",
     16,
     {1.0, 0.19224932062555708, 0.034401045807689073, 0.005563185935312799},
     1.224744871391589},
    {"type: 'longrope' original_max_position_embeddings: 16 "
     "short_factor: [1, 1.1, 1.3, 1.7] long_factor: [1, 1.9, 3, 5.5]",
     17,
     {1.0, 0.11130223825690148, 0.014907119849998596, 0.0017195301981875926},
     1.224744871391589},
};

TEST(RopeTest, EveryScalingIsThatOfTransformers) {
  for (const Case& expected : kCases) {
    SCOPED_TRACE(expected.scaling + ", length " +
                 std::to_string(expected.length));
    ModelSpec model = Llama({.head_dim = 8});
    model.set_rope_theta(500);
    model.set_max_position_embeddings(64);
    if (!expected.scaling.empty()) {
      ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
          expected.scaling, model.mutable_rope_scaling()));
    }
    SetRopeDefaults(model);
    ASSERT_TRUE(CheckRope(model).ok()) << CheckRope(model);
    const Rope rope = RopeFrequencies(model, expected.length);
    ASSERT_EQ(rope.inverse_frequencies.size(), expected.frequencies.size());
    for (size_t i = 0; i < expected.frequencies.size(); ++i) {
      EXPECT_NEAR(rope.inverse_frequencies[i] / expected.frequencies[i], 1,
                  1e-12)
          << i;
    }
    EXPECT_NEAR(rope.attention_factor, expected.attention_factor, 1e-12);
  }
}

TEST(RopeTest, AnAttentionFactorThatIsGivenIsTaken) {
  for (const std::string type : {"type: 'yarn' factor: 4",
                                 "type: 'longrope' factor: 4 short_factor: [1, "
                                 "1] long_factor: [1, 1]"}) {
    ModelSpec model = Llama({.head_dim = 4});
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        type + " attention_factor: 0.75", model.mutable_rope_scaling()));
    SetRopeDefaults(model);
    ASSERT_TRUE(CheckRope(model).ok()) << CheckRope(model);
    EXPECT_EQ(RopeFrequencies(model, 8).attention_factor, 0.75);
  }
}

}  // namespace
}  // namespace troupe
