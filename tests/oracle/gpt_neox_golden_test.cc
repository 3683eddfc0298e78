// GPT-NeoX on one rank against PyTorch in float64 (make_gpt_neox_golden.py).
#include "gtest/gtest.h"
#include "tests/oracle/golden_suite.h"

namespace troupe {
namespace {

INSTANTIATE_TEST_SUITE_P(GptNeox, GoldenSuite,
                         testing::Values("gpt_neox_parallel",
                                         "gpt_neox_sequential"),
                         GoldenFileName);

}  // namespace
}  // namespace troupe
