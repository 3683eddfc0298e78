#include "worker/rank/initial_state.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/plan/buffer_kind.h"
#include "storage/engine/in_memory_engine.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"
#include "worker/rank/tier_port.h"

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

// What rests at an address, wherever that is.
std::string RestingAt(SmallRank& rank, const TierAddress& at, int64_t bytes) {
  std::string found(bytes, 'x');
  TierPort port(rank.state().device, &rank.state().memory);
  CHECK_OK(port.Read(at, bytes, found.data()));
  CHECK_OK(port.Settle());
  return found;
}

TEST(InitialState, EveryVersionOfTheWeightsBeginsTheSame) {
  const auto three_versions_in = [](Tier tier) {
    return [tier](Plan& plan) {
      RestIn(tier, {"parameters"})(plan);
      for (Slot& slot : *plan.mutable_roles(0)->mutable_slots()) {
        if (slot.item() == "parameters") slot.set_copies(3);
      }
    };
  };
  for (const char* precision : {"f32", "bf16"}) {
    JobSpec job = SmallJob();
    job.mutable_training()->set_precision(precision);
    for (const Tier tier : {DEVICE, HOST, NVME}) {
      SmallRank rank(job, {.change = three_versions_in(tier)});
      for (int unit = 0; unit < 4; ++unit) {
        const Buffer& buffer = rank.Find(Buffer::PARAMETERS, unit);
        const std::vector<TierAddress> copies =
            rank.state().memory.Copies(buffer);
        ASSERT_EQ(copies.size(), 3u);
        const std::string first = RestingAt(rank, copies[0], buffer.bytes());
        EXPECT_NE(first, std::string(first.size(), '\0'));
        EXPECT_EQ(RestingAt(rank, copies[1], buffer.bytes()), first);
        EXPECT_EQ(RestingAt(rank, copies[2], buffer.bytes()), first);
      }
    }
  }
}

std::string Resting(SmallRank& rank, Buffer::Kind kind, int unit) {
  const Buffer& buffer = *FindResident(rank.state().role(), kind, unit);
  return RestingAt(rank, rank.state().memory.At(buffer, 1), buffer.bytes());
}

TEST(InitialState, IsTheSameInEachTier) {
  for (const char* precision : {"f32", "bf16"}) {
    JobSpec job = SmallJob();
    job.mutable_training()->set_precision(precision);
    SmallRank device(job, {});
    for (const Tier tier : {HOST, NVME}) {
      SmallRank other(job,
                      {.change = RestIn(tier, {"parameters", "master_weights",
                                               "optimizer_moments"})});
      for (const Buffer& buffer : device.program().buffers()) {
        if (!IsResident(buffer) || !buffer.has_unit()) continue;
        EXPECT_EQ(Resting(other, buffer.kind(), buffer.unit()),
                  Resting(device, buffer.kind(), buffer.unit()))
            << Buffer::Kind_Name(buffer.kind()) << " of unit " << buffer.unit();
      }
    }
  }
}

// As after a checkpoint that was damaged where it was not read yet.
TEST(InitialState, ZeroesWhatWasReadBefore) {
  SmallRank rank(SmallJob(), {.change = RestIn(NVME, {"optimizer_moments"})});
  const Buffer& moments =
      *FindResident(rank.state().role(), Buffer::OPTIMIZER_STATE, 1);
  const std::string zeros(moments.bytes(), '\0');
  TierPort port(rank.state().device, &rank.state().memory);
  const std::string before(1000, 'x');
  CHECK_OK(port.Write(rank.state().memory.At(moments, 1) + 333, before.data(),
                      before.size()));
  CHECK_OK(port.Flush());
  ASSERT_NE(Resting(rank, Buffer::OPTIMIZER_STATE, 1), zeros);
  ASSERT_TRUE(InitializeFromSeed(rank.state()).ok());
  EXPECT_EQ(Resting(rank, Buffer::OPTIMIZER_STATE, 1), zeros);
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
  const RealClock clock;
  DiskLog log(clock);
  InMemoryEngine io(1);
  const absl::Status status =
      RestoreFromCheckpoint("/no/such/step-00000001", {io, log}, rank.state())
          .status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_NE(status.message().find("/no/such/step-00000001"),
            absl::string_view::npos)
      << status;
}

}  // namespace
}  // namespace troupe
