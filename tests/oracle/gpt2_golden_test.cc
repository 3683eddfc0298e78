// GPT-2 on one rank against PyTorch in float64 (make_gpt2_golden.py).
#include "gtest/gtest.h"
#include "tests/oracle/golden_suite.h"

namespace troupe {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Gpt2, GoldenSuite,
    testing::Values("gpt2_completions", "gpt2_completions@5", "gpt2_lora",
                    "gpt2_lora@5", "gpt2_tied", "gpt2_tied@1", "gpt2_tied@5",
                    "gpt2_tied@34", "gpt2_tied_frozen", "gpt2_tied_frozen@17",
                    "gpt2_tied_groups", "gpt2_untied", "gpt2_untied@5",
                    "gpt2_untied_frozen", "gpt2_untied_frozen@5",
                    "gpt2_untied_adafactor", "gpt2_untied_muon"),
    GoldenFileName);

}  // namespace
}  // namespace troupe
