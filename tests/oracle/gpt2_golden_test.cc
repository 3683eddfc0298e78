// GPT-2 on one rank against PyTorch in float64 (make_gpt2_golden.py).
#include "gtest/gtest.h"
#include "tests/oracle/golden_suite.h"

namespace troupe {
namespace {

INSTANTIATE_TEST_SUITE_P(Gpt2, GoldenSuite,
                         testing::Values("gpt2_completions", "gpt2_lora",
                                         "gpt2_tied", "gpt2_tied_frozen",
                                         "gpt2_tied_groups", "gpt2_untied",
                                         "gpt2_untied_frozen",
                                         "gpt2_untied_muon"),
                         GoldenFileName);

}  // namespace
}  // namespace troupe
