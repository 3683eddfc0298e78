#include "worker/rank/initial_state.h"

#include <cmath>
#include <cstring>

#include "gtest/gtest.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {
namespace {

TEST(InitialState, EveryRankDrawsTheSameWeights) {
  SmallRank one(SmallJob(), {});
  SmallRank other(SmallJob(), {.ranks = 4, .rank = 2});
  for (int unit = 0; unit < 4; ++unit) {
    const int64_t count = one.state().plan->units(unit).flat_elements();
    const float* a = one.Memory<float>(Buffer::PARAMETERS, unit);
    const float* b = other.Memory<float>(Buffer::PARAMETERS, unit);
    const float* moments = one.Memory<float>(Buffer::OPTIMIZER_STATE, unit);
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(a[i], b[i]);
      EXPECT_EQ(moments[i], 0);
      EXPECT_EQ(moments[count + i], 0);
    }
  }
}

TEST(InitialState, Bf16StartsFromTheSameWeightsRounded) {
  JobSpec job = SmallJob();
  SmallRank f32(job, {});
  job.mutable_training()->set_precision("bf16");
  SmallRank bf16(job, {});
  for (int unit = 0; unit < 4; ++unit) {
    const int64_t count = f32.state().plan->units(unit).flat_elements();
    const float* weights = f32.Memory<float>(Buffer::PARAMETERS, unit);
    const float* master = bf16.Memory<float>(Buffer::MASTER_WEIGHTS, unit);
    const auto* rounded = bf16.Memory<uint16_t>(Buffer::PARAMETERS, unit);
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(master[i], weights[i]);
      const uint32_t bits = uint32_t{rounded[i]} << 16;
      float value;
      std::memcpy(&value, &bits, sizeof(value));
      EXPECT_NEAR(value, weights[i], std::abs(weights[i]) / 256);
    }
  }
}

TEST(InitialState, AnotherSeedDrawsOthers) {
  JobSpec job = SmallJob();
  SmallRank one(job, {});
  job.mutable_training()->set_seed(99);
  SmallRank other(job, {});
  EXPECT_NE(one.Memory<float>(Buffer::PARAMETERS, 0)[0],
            other.Memory<float>(Buffer::PARAMETERS, 0)[0]);
}

TEST(InitialState, AMissingCheckpointIsNamed) {
  SmallRank rank(SmallJob(), {});
  const absl::Status status =
      RestoreFromCheckpoint("/no/such/step-00000001", rank.state()).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_NE(status.message().find("/no/such/step-00000001"),
            absl::string_view::npos)
      << status;
}

}  // namespace
}  // namespace troupe
