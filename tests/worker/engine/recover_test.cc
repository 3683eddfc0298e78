// A rank goes on from copies: its own, and what another brings it. On a device
// whose memory is not the host's, too (split_memory_device.h): copies lie in
// the host's memory, and are put where the state rests.
#include "worker/engine/recover.h"

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "proto/base/check.h"
#include "proto/plan/copies.h"
#include "tests/equivalence/small_job.h"
#include "tests/ops/split_memory_device.h"
#include "tests/worker/rank/small_rank.h"
#include "worker/collective/create_communicator.h"
#include "worker/collective/key_value_store.h"

namespace troupe {
namespace {

constexpr int64_t kRecovered = 6;

std::unique_ptr<Device> NewHostDevice() { return NewCpuDevice({.threads = 1}); }
std::unique_ptr<Device> NewDeviceWithItsMemory() {
  return std::make_unique<SplitMemoryDevice>(CpuDeviceOptions{.threads = 1});
}

using NewDevice = std::unique_ptr<Device> (*)();

class Recovers : public testing::TestWithParam<NewDevice> {
 protected:
  // One of two, each with its slice of the state.
  static std::unique_ptr<SmallRank> NewRank(int rank, int seed) {
    JobSpec job = SmallJob();
    job.mutable_training()->set_seed(seed);
    job.mutable_training()->set_precision("fp16");
    job.mutable_parallelism()->set_zero(1);
    job.mutable_recovery();
    return std::make_unique<SmallRank>(
        job, SmallRankOptions{.ranks = 2,
                              .rank = rank,
                              .program = Program::KEEP,
                              .new_device = GetParam()});
  }
  static KeptState Kept(int64_t step) {
    KeptState kept;
    kept.set_step(step);
    kept.set_samples_consumed(8 * step);
    kept.set_loss_scale(512);
    kept.set_good_steps(3);
    return kept;
  }
  // Copies its state, as KEEP does after `step`; what the copy has.
  static std::string Keep(SmallRank& rank, int64_t step) {
    RankState& state = rank.state();
    state.step.step = state.copies.Begin(step);
    CHECK_OK(rank.RunAll("H"));
    CHECK_OK(state.device.Synchronize());
    state.copies.End(state.step.step, Kept(step), /*of_peer=*/true);
    return {rank.Memory<char>(Buffer::STATE_COPY),
            static_cast<size_t>(rank.Find(Buffer::STATE_COPY).bytes())};
  }
  static absl::Status Connect(RankState& state, KeyValueStore& store) {
    const int g = CopiesGroup(*state.plan);
    const Group& group = state.plan->groups(g);
    Group::Carrier carrier = group.carriers(0);
    carrier.set_backend("in_process");
    absl::StatusOr<std::unique_ptr<Communicator>> made = CreateCommunicator(
        carrier, {.group = {.name = group.name(), .ranks = {0, 1}},
                  .rank = state.rank(),
                  .store = &store,
                  .timeout = absl::Seconds(20),
                  .device = &state.device});
    if (!made.ok()) return made.status();
    state.communicators.resize(state.plan->groups_size());
    state.communicators[g] = *std::move(made);
    return absl::OkStatus();
  }
  // All of them, each on its thread.
  static std::vector<absl::Status> RecoverAll(
      const Recovery& recovery, const std::vector<SmallRank*>& ranks) {
    InMemoryStore store;
    std::vector<absl::Status> statuses(ranks.size());
    std::vector<std::thread> threads;
    for (size_t r = 0; r < ranks.size(); ++r) {
      threads.emplace_back([&, r] {
        RankState& state = ranks[r]->state();
        state.collective_timeout = absl::Seconds(20);
        statuses[r] = Connect(state, store);
        if (statuses[r].ok()) statuses[r] = Recover(recovery, state);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }
};

// Rank 1 is lost; rank 0 has what it mirrored, and has trained on.
TEST_P(Recovers, TheNewRankHasWhatTheLostOneHad) {
  const auto stays = NewRank(0, /*seed=*/3);
  const auto lost = NewRank(1, /*seed=*/3);
  const std::string of_first = Keep(*stays, kRecovered);
  const std::string of_second = Keep(*lost, kRecovered);
  ASSERT_NE(of_first, of_second);
  ASSERT_EQ(stays->Find(Buffer::PEER_COPY).bytes(),
            static_cast<int64_t>(of_second.size()));
  std::memcpy(stays->Memory<char>(Buffer::PEER_COPY), of_second.data(),
              of_second.size());
  // With other weights, and a copy that goes with the step it is of.
  const auto comes = NewRank(1, /*seed=*/4);
  ASSERT_NE(Keep(*comes, kRecovered + 1), of_second);
  Keep(*stays, kRecovered + 1);

  Recovery recovery;
  *recovery.mutable_state() = Kept(kRecovered);
  Handover& handover = *recovery.add_handovers();
  handover.set_from(0);
  handover.set_to(1);
  handover.set_peer(true);
  for (const absl::Status& status :
       RecoverAll(recovery, {stays.get(), comes.get()})) {
    ASSERT_TRUE(status.ok()) << status;
  }
  for (SmallRank* const rank : {stays.get(), comes.get()}) {
    const RankState& state = rank->state();
    EXPECT_EQ(state.loss_scale.state().scale, 512);
    EXPECT_EQ(state.loss_scale.state().good_steps, 3);
    EXPECT_EQ(state.copies.Find(kRecovered + 1, /*of_peer=*/false), -1);
    // What rests in the rank is what the copy had.
    EXPECT_EQ(Keep(*rank, kRecovered + 2),
              rank == stays.get() ? of_first : of_second);
  }
}

TEST_P(Recovers, ACopyThatIsNotThereIsNamed) {
  const auto rank = NewRank(0, /*seed=*/3);
  const auto other = NewRank(1, /*seed=*/3);
  Recovery recovery;
  *recovery.mutable_state() = Kept(kRecovered);
  for (const absl::Status& status :
       RecoverAll(recovery, {rank.get(), other.get()})) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("state after step 6"), std::string::npos)
        << status;
  }
}

INSTANTIATE_TEST_SUITE_P(Device, Recovers,
                         testing::Values(NewHostDevice, NewDeviceWithItsMemory),
                         [](const auto& info) {
                           return info.index == 0 ? "host" : "split";
                         });

}  // namespace
}  // namespace troupe
