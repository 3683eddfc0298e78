#include "scheduler/planner/resolve_lora.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/lora.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

JobSpec WithLora(const LoraSpec& lora = {}) {
  JobSpec job = ExampleJob({});
  *job.mutable_training()->mutable_lora() = lora;
  return job;
}

TEST(ResolveLora, FillsInWhatPeftDoes) {
  JobSpec job = WithLora();
  ASSERT_TRUE(ResolveLora(job).ok());
  const LoraSpec& lora = job.training().lora();
  EXPECT_EQ(lora.rank(), 8);
  EXPECT_EQ(lora.alpha(), 8);
  EXPECT_TRUE(lora.has_dropout());
  EXPECT_EQ(lora.dropout(), 0);
  EXPECT_TRUE(lora.has_rank_stabilized());
  EXPECT_FALSE(lora.rank_stabilized());
  EXPECT_THAT(lora.modules(), ElementsAre(kAllLinear));
  EXPECT_FALSE(lora.has_adapter());
}

TEST(ResolveLora, LeavesOthersAlone) {
  JobSpec job = ExampleJob({});
  ASSERT_TRUE(ResolveLora(job).ok());
  EXPECT_FALSE(job.training().has_lora());
  LoraSpec set;
  set.set_rank(3);
  set.set_alpha(0.5);
  set.set_dropout(0.25);
  set.set_rank_stabilized(true);
  set.set_adapter("adapter");
  set.add_modules("c_attn");
  job = WithLora(set);
  ASSERT_TRUE(ResolveLora(job).ok());
  EXPECT_EQ(job.training().lora().SerializeAsString(),
            set.SerializeAsString());
}

TEST(ResolveLora, RefusesNumbersOutOfRange) {
  const auto fault = [](void (*change)(LoraSpec&)) {
    LoraSpec lora;
    change(lora);
    JobSpec job = WithLora(lora);
    return std::string(ResolveLora(job).message());
  };
  for (const auto change : {+[](LoraSpec& l) { l.set_rank(0); },
                            +[](LoraSpec& l) { l.set_rank(-1); },
                            +[](LoraSpec& l) { l.set_rank(1 << 20); }}) {
    EXPECT_THAT(fault(change), StartsWith("training.lora.rank: "));
  }
  for (const auto change : {+[](LoraSpec& l) { l.set_alpha(0); },
                            +[](LoraSpec& l) { l.set_alpha(-2); }}) {
    EXPECT_THAT(fault(change), StartsWith("training.lora.alpha: "));
  }
  for (const auto change : {+[](LoraSpec& l) { l.set_dropout(1); },
                            +[](LoraSpec& l) { l.set_dropout(-0.1); }}) {
    EXPECT_THAT(fault(change), StartsWith("training.lora.dropout: "));
  }
}

TEST(ResolveLora, RefusesAModelWithoutWeights) {
  JobSpec job = WithLora();
  job.mutable_model()->set_architecture("synthetic");
  EXPECT_THAT(std::string(ResolveLora(job).message()),
              StartsWith("training.lora: synthetic units"));
}

TEST(ResolveLora, TheScaleIsOfTheRankOrItsRoot) {
  LoraSpec lora;
  lora.set_rank(16);
  lora.set_alpha(8);
  EXPECT_EQ(LoraScale(lora), 0.5);
  lora.set_rank_stabilized(true);
  EXPECT_EQ(LoraScale(lora), 2);
}

}  // namespace
}  // namespace troupe
