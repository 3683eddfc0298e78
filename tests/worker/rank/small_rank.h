// One rank of a small job, compiled by the planner, with memory, units and
// data, but no executor: for tests that carry out single instructions.
//
//   SmallRank rank(SmallJob(), {.ranks = 2, .rank = 1});
//   ASSERT_TRUE(rank.Run("L m0").ok());
//   float* g = rank.Memory<float>(Buffer::PARAMETER_GRADIENTS, 1);
#ifndef TROUPE_TESTS_WORKER_RANK_SMALL_RANK_H_
#define TROUPE_TESTS_WORKER_RANK_SMALL_RANK_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "proto/base/clock.h"
#include "proto/job.pb.h"
#include "proto/plan/sums.h"
#include "tests/storage/temp_dir.h"
#include "worker/rank/device_allocator.h"
#include "worker/rank/disk_log.h"
#include "worker/rank/rank_state.h"

namespace troupe {

struct SmallRankOptions {
  int ranks = 1;
  int rank = 0;
  Program::Kind program = Program::TRAIN;
  // What to change in the compiled plan of this rank; may be empty.
  std::function<void(Plan& plan)> change;
  // Makes its device; null: a CPU of one thread.
  std::function<std::unique_ptr<Device>()> new_device;
  // What moves to and from the nvme tier; null: as a worker does.
  std::function<absl::StatusOr<std::unique_ptr<IoEngine>>()> new_engine;
  int host_threads = 0;  // RankState::Create
};

// Lets what is in these line items rest in another tier; as `change`.
std::function<void(Plan& plan)> RestIn(Tier tier,
                                       std::vector<std::string> items);

class SmallRank {
 public:
  // CHECKs that the job compiles and fits. Ranks are data-parallel, as many as
  // the job's islands and pipelines leave. A micro-batch is at most a rank's
  // share of the batch. Weights are set from the job's seed.
  SmallRank(const JobSpec& job, const SmallRankOptions& options);

  RankState& state() { return *state_; }
  const TierArenas& arenas() const { return arenas_; }
  DiskLog& disk() { return disk_; }
  const TempDir& nvme() const { return nvme_; }
  const Program& program() const { return *program_; }

  // What Run and RunAll look in from here on. REQUIRES that the plan has it.
  void Choose(Program::Kind kind);

  // Carries out the instruction of the program that reads so: "F u1 m0".
  absl::Status Run(const std::string& text);
  // All whose text begins so, in order: "F", "F u1".
  absl::Status RunAll(const std::string& prefix);

  // The first such buffer of the program; CHECKed to be there.
  const Buffer& Find(Buffer::Kind kind,
                     absl::optional<int> unit = absl::nullopt,
                     absl::optional<int> micro_batch = absl::nullopt) const;
  template <typename T>
  T* Memory(Buffer::Kind kind, absl::optional<int> unit = absl::nullopt,
            absl::optional<int> micro_batch = absl::nullopt) const {
    return reinterpret_cast<T*>(
        state_->memory.At(Find(kind, unit, micro_batch), state_->step.step)
            .memory());
  }

  // One of the plan's sums, its first element; and all of them.
  double& Sum(absl::string_view name) const {
    return Memory<double>(
        Buffer::SCALARS)[PlaceOfSum(*state_->plan, name).first];
  }
  absl::Span<double> AllSums() const {
    return {Memory<double>(Buffer::SCALARS),
            static_cast<size_t>(SumElements(state_->plan->sums()))};
  }

 private:
  TierArenas::Sources Sources(const SmallRankOptions& options);

  HostAllocator allocator_;
  const std::unique_ptr<Device> device_;
  DeviceAllocator device_memory_;
  PinnedAllocator pinned_memory_;
  const RealClock clock_;
  DiskLog disk_{clock_};
  const TempDir nvme_;
  const TierArenas arenas_;
  std::unique_ptr<RankState> state_;
  const Program* program_ = nullptr;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_RANK_SMALL_RANK_H_
