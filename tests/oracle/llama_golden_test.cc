// Llama on one rank against PyTorch in float64 (make_llama_golden.py): each way
// of sharing key and value heads, each bias, each scaling of rotary embeddings;
// and its relatives (make_relatives_golden.py).
#include "gtest/gtest.h"
#include "tests/oracle/golden_suite.h"

namespace troupe {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Llama, GoldenSuite,
    testing::Values("llama_untied", "llama_tied", "llama_biases",
                    "llama_completions", "llama_lora", "llama_rope_linear",
                    "llama_rope_dynamic_within", "llama_rope_dynamic_beyond",
                    "llama_rope_llama3", "llama_rope_yarn",
                    "llama_rope_yarn_mscale", "llama_rope_longrope_short",
                    "llama_rope_longrope_long"),
    GoldenFileName);

INSTANTIATE_TEST_SUITE_P(Relatives, GoldenSuite,
                         testing::Values("mistral", "qwen2", "qwen3"),
                         GoldenFileName);

}  // namespace
}  // namespace troupe
