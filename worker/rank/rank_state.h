// What a rank holds of a job, and all that instructions see: memory, units,
// communicators, data, the optimizer, and the step that they are in. Built when
// the job starts, destroyed when it ends.
//
// Thread rule: the train loop writes it between programs; while one runs,
// instructions of several lanes read it, and each writes only the buffers that
// the plan lets it write.
#ifndef TROUPE_WORKER_RANK_RANK_STATE_H_
#define TROUPE_WORKER_RANK_RANK_STATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ops/device.h"
#include "proto/plan.pb.h"
#include "proto/plan/at_rest.h"
#include "storage/dataset/sample_reader.h"
#include "storage/dataset/token_layout.h"
#include "worker/collective/communicator.h"
#include "worker/model/model_unit.h"
#include "worker/model/optimizer.h"
#include "worker/rank/counted_targets.h"
#include "worker/rank/disk_log.h"
#include "worker/rank/loss_scale.h"
#include "worker/rank/rank_memory.h"
#include "worker/rank/state_copies.h"
#include "worker/rank/tier_arenas.h"
#include "worker/rank/tier_port.h"
#include "worker/rank/turn_log.h"
#include "worker/rank/unit_state.h"
#include "worker/rank/uploads.h"

namespace troupe {

// The step that a program belongs to.
struct StepContext {
  int64_t step = 1;            // 1 is the first
  int64_t samples_before = 0;  // the data position when the step begins
  double learning_rate = 0;
  bool training = true;  // false: VALIDATE
  bool stop = false;     // ask all ranks to stop after this step
  bool save = false;     // and to write a checkpoint then
  // The last step known to be summed over the ranks when the program begins.
  int64_t summed_through = 0;
  // Whether ranks meet before what they exchange is enqueued (communicator.h):
  // where a program runs for the first time, in which kernels are loaded.
  bool meet = true;
};

// The tokens that the job trains or evaluates on. InvalidArgument where they
// are of another vocabulary than the model's, and where an evaluation's steps
// are not as many as it has windows for; else the errors of SampleReader.
absl::StatusOr<SampleReader> OpenData(const JobSpec& job);

// InvalidArgument where a token file says that its vocabulary is larger than the
// model's.
absl::Status CheckVocabulary(const TokenLayout& tokens, const std::string& path,
                             const ModelSpec& model);

// The token file beside which the model of its tokenizer lies: the one that
// names the tokenizer, else the job's first; empty: a job without data.
std::string TokensOf(const JobSpec& job,
                     const absl::optional<SampleReader>& data);

// Makes the units of a plan for one of its ranks.
using UnitsBuilder =
    std::function<absl::StatusOr<std::vector<std::unique_ptr<ModelUnit>>>(
        const Plan& plan, int rank)>;

struct RankState {
  // `plan` as in an Assignment: its one role is this rank's. Reserves the
  // memory, builds the units and opens the data where the rank loads any;
  // parameters are not set yet and `communicators` is empty. All that is
  // borrowed must outlive it; an abort of `disk` ends moves. What `kept` has is
  // the state's from here on, where it is of this rank and plan. The units are
  // the plan's (worker/model/build_units.h) unless another builder is given.
  // `host_threads`: of what the host computes beside a device that has memory
  // of its own; 0: one for each core.
  static absl::StatusOr<std::unique_ptr<RankState>> Create(
      std::shared_ptr<const Plan> plan, Device& device,
      const TierArenas& arenas, const DiskLog& disk, KeptMemory kept = {},
      const UnitsBuilder& build_units = nullptr, int host_threads = 0);

  // What is whole of the state's copies, for the next attempt; then the state
  // is of no use any more.
  KeptMemory TakeKept();

  const Role& role() const { return plan->roles(0); }
  int rank() const { return plan->rank(); }
  MeshPlace place() const { return {.mesh = &plan->mesh(), .rank = rank()}; }
  // Which replica it is (proto/plan/replica_share.h), and how many of each
  // island there are.
  int data_index() const;
  int data_size() const { return plan->derived().data_parallel_size(); }
  // By what the data was made, by name; empty: not known, or no data here.
  std::string tokenizer() const;
  // What tells the data from other data (storage/dataset/sample_reader.h);
  // empty: no data here.
  std::string DataIdentity() const;
  // Of a unit: what rests here of its flat buffers (proto/plan/at_rest.h), by
  // stretch, and where that is in its resident buffers, in the first copy of
  // each; stretches without elements are left out there. REQUIRE that this rank
  // holds the unit.
  const Placement& PlacementOf(int unit) const;
  std::vector<StretchAtRest> AtRest(int unit) const;
  std::vector<UnitFlatBuffers> StateOfUnit(int unit) const;
  // Of its parameters, and of their gradients.
  DType TypeOfParameters(int unit) const;
  DType TypeOfGradients(int unit) const;
  // The first byte of what rests of a stretch, in one of the unit's buffers
  // which begins there; nowhere: it begins nowhere.
  TierAddress RestIn(const Buffer& buffer, const TierAddress& begin,
                     const StretchAtRest& at) const;
  // Ascending, those with PARAMETERS here.
  std::vector<int> HeldUnits() const;

  // What instructions of the lane compute with: the rank's device, or the
  // host's cores. And what they move with.
  Device& DeviceOf(int lane);
  TierPort& PortOf(int lane) { return *ports.at(lane); }

  std::shared_ptr<const Plan> plan;
  Device& device;
  const std::unique_ptr<Device> own_host;  // null: the device is the host's
  Device& host;
  RankMemory memory;
  const DiskLog& disk;
  std::vector<std::unique_ptr<TierPort>> ports;   // by lane
  std::vector<std::unique_ptr<ModelUnit>> units;  // of the whole model
  Optimizer optimizer;
  absl::optional<SampleReader> data;  // where programs have a LOAD_BATCH
  CountedTargets targets;             // of a step, all ranks together
  std::unique_ptr<Uploads> batches;   // of those
  std::unique_ptr<Uploads> flags;     // of REDUCE_SCALARS
  // By index into plan->groups(); null where this rank meets nobody.
  std::vector<std::unique_ptr<Communicator>> communicators;
  absl::Duration collective_timeout = absl::Minutes(5);
  StepContext step;
  // Of the step's gradients, as they are, as far as its STEPs have asked; empty
  // when it begins.
  absl::optional<double> squared_norm;
  // Of the step; updated when its program has run.
  LossScale loss_scale;
  // Where each step is one replica's; else null. Set before the first program.
  std::unique_ptr<TurnLog> turns;
  // CLAIM has found that the step is another's: of this program nothing else is
  // done.
  bool skips = false;
  // That this run of the job began with.
  int64_t first_step = 1;
  StateCopies copies;  // that KEEP made, where the plan has it
  // Filled by SNAPSHOT: what this rank is to write. Borrowed from `memory`.
  std::vector<StateTensor> snapshot;

 private:
  RankState(std::shared_ptr<const Plan> plan_in, Device& device_in,
            RankMemory memory_in, const DiskLog& disk_in,
            std::vector<std::unique_ptr<ModelUnit>> units_in,
            absl::optional<SampleReader> data_in, int host_threads);

  UnitFlatBuffers MemoryOf(int unit, const StretchAtRest& at) const;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_STATE_H_
