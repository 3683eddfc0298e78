#include "scheduler/tiers/recompute.h"

#include <string>

#include "gtest/gtest.h"
#include "proto/plan/memory.h"
#include "proto/plan/model.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

UnitList Units(const std::string& architecture) {
  ModelSpec model = ExampleJob({}).model();
  model.set_architecture(architecture);
  EXPECT_TRUE(ResolveModel(model).ok());
  return *ModelUnits(model, {.sequences = 2, .sequence_length = 8});
}

// The names of what is made again of the first block, without statistics.
std::string Again(const std::string& architecture, Keeps keeps) {
  UnitList units = Units(architecture);
  MarkAgain(std::vector<Keeps>(units.units.size(), keeps), units);
  std::string names;
  for (const TensorSpec& tensor :
       units.tables[units.units[1].table()].tensors()) {
    if (tensor.again() && tensor.dtype() != I32 && tensor.dims_size() == 3 &&
        tensor.name() != "logsumexp") {
      names += (names.empty() ? "" : ", ") + tensor.name();
    }
  }
  return names;
}

TEST(Recompute, SelectiveKeepsWhatTakesAProduct) {
  for (const char* const architecture :
       {"gpt2", "gpt_neox", "llama", "qwen3"}) {
    UnitList units = Units(architecture);
    const UnitList whole = units;
    MarkAgain(std::vector<Keeps>(units.units.size(), Keeps::kCostly), units);
    const Unit& block = units.units[1];
    EXPECT_EQ(block.recompute().matmul_flops(), 0);
    EXPECT_EQ(block.recompute().attention_flops(), 0);
    EXPECT_GT(block.recompute().memory_bytes(), 0);
    EXPECT_LT(block.stash_bytes(), whole.units[1].stash_bytes());
    EXPECT_GT(block.stash_bytes(), 0);
  }
  EXPECT_NE(Again("gpt2", Keeps::kCostly).find("ln_1, "), std::string::npos);
  EXPECT_NE(Again("gpt2", Keeps::kCostly).find("ln_2"), std::string::npos);
  EXPECT_NE(Again("gpt2", Keeps::kCostly).find("gelu"), std::string::npos);
  EXPECT_EQ(Again("gpt2", Keeps::kCostly).find("mlp.c_fc"), std::string::npos);
  EXPECT_NE(Again("llama", Keeps::kCostly).find("swiglu"), std::string::npos);
}

TEST(Recompute, FullKeepsNothingButTheInput) {
  UnitList units = Units("gpt2");
  const int64_t all = units.units[1].stash_bytes();
  MarkAgain(std::vector<Keeps>(units.units.size(), Keeps::kInput), units);
  EXPECT_EQ(units.units[1].stash_bytes(), 0);
  EXPECT_EQ(units.units[1].recomputed_bytes(), all);
  const Unit& block = units.units[1];
  EXPECT_GT(block.recompute().matmul_flops(),
            block.forward().matmul_flops() / 2);
  EXPECT_LT(block.recompute().matmul_flops(), block.forward().matmul_flops());
}

// Only units that keep other things get a table of their own.
TEST(Recompute, UnitsThatKeepTheSameShareATable) {
  UnitList units = Units("gpt2");
  ASSERT_EQ(units.units.size(), 4u);
  MarkAgain({Keeps::kAll, Keeps::kInput, Keeps::kAll, Keeps::kAll}, units);
  EXPECT_EQ(units.tables.size(), 4u);
  EXPECT_NE(units.units[1].table(), units.units[2].table());
  EXPECT_EQ(units.units[1].stash_bytes(), 0);
  EXPECT_GT(units.units[2].stash_bytes(), 0);
  units = Units("gpt2");
  MarkAgain({Keeps::kAll, Keeps::kInput, Keeps::kInput, Keeps::kAll}, units);
  EXPECT_EQ(units.tables.size(), 3u);
}

TEST(Recompute, TheLastUnitKeepsWhatItReadsAtOnce) {
  RecomputeSpec spec;
  spec.set_mode("full");
  EXPECT_EQ(KeptBy(spec, {.count = 3, .last_turns_at_once = true}),
            (std::vector<Keeps>{Keeps::kInput, Keeps::kInput, Keeps::kAll}));
  EXPECT_EQ(KeptBy(spec, {.count = 2}),
            (std::vector<Keeps>{Keeps::kInput, Keeps::kInput}));
  spec.set_mode("units");
  spec.add_units(2);
  spec.add_selective_units(0);
  EXPECT_EQ(KeptBy(spec, {.count = 3, .last_turns_at_once = true}),
            (std::vector<Keeps>{Keeps::kCostly, Keeps::kAll, Keeps::kInput}));
}

int64_t Activations(int blocks, const std::string& mode) {
  JobSpec job = ExampleJob({.blocks = blocks});
  job.mutable_memory()->mutable_recompute()->set_mode(mode);
  int64_t bytes = 0;
  for (const MemoryItem& item : MemoryItems(ExamplePlan(job).roles(0))) {
    if (item.item() == "activations") bytes += item.bytes();
  }
  return bytes;
}

// On one rank each block costs its input (arXiv 1604.06174, section 4), where
// it keeps all also what it saved.
TEST(Recompute, ABlockMoreCostsItsInput) {
  const Unit block = Units("gpt2").units[1];
  EXPECT_EQ(Activations(9, "full") - Activations(4, "full"),
            5 * block.activation_bytes());
  EXPECT_EQ(Activations(9, "none") - Activations(4, "none"),
            5 * (block.activation_bytes() + block.stash_bytes()));
}

}  // namespace
}  // namespace troupe
