// Mixtures of experts on one rank against PyTorch in float64
// (make_experts_golden.py): gates that add up to 1 and gates that do not, layers
// without experts.
#include "gtest/gtest.h"
#include "tests/oracle/golden_suite.h"

namespace troupe {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Experts, GoldenSuite,
    testing::Values("deepseek_v3", "deepseek_v3_mtp", "deepseek_v3_mtp_tied",
                    "deepseek_v3_mtp_tied@20", "deepseek_v3_mtp@5",
                    "deepseek_v3_yarn", "gpt2_gshard", "gpt2_switch", "mixtral",
                    "olmoe", "qwen2_moe", "qwen3_moe", "qwen3_moe_renormalised",
                    "router_sequence", "router_global", "router_bias",
                    "router_capacity", "router_gshard", "router_switch"),
    GoldenFileName);

}  // namespace
}  // namespace troupe
