#include "scheduler/passes/lanes.h"

#include <algorithm>
#include <vector>

#include "proto/base/check.h"
#include "proto/plan/islands.h"

namespace troupe {
namespace {

constexpr char kIslandsLane[] = "ISLANDS";

struct Row {
  const char* name;
  Lane::Kind kind;
  int priority;
  std::vector<Instruction::Kind> runs;
};

const std::vector<Row>& Table() {
  static const auto* const kTable = new std::vector<Row>{
      // Kernels: all that units and the optimizer compute.
      {"COMPUTE",
       Lane::COMPUTE,
       0,
       {Instruction::FORWARD, Instruction::RECOMPUTE,
        Instruction::BACKWARD_INPUT, Instruction::BACKWARD_WEIGHT,
        Instruction::GRAD_NORM, Instruction::STEP, Instruction::OUTER_GRADIENT,
        Instruction::OUTER_STEP}},
      // The optimizer, where its states rest below the device: beside what the
      // device computes.
      {"OPTIMIZER", Lane::HOST, 0, {}},
      // What ranks exchange within a unit. The unit waits for it, so it must
      // not stand behind buckets of gradients, nor behind other stages.
      {"EXCHANGES", Lane::TRANSFER, 2, {Instruction::EXCHANGE}},
      // Parameters of units that are to come: the pass in front of which they
      // stand waits for them, and not for gradients.
      {"GATHERS",
       Lane::TRANSFER,
       1,
       {Instruction::GATHER_PARAMETERS, Instruction::PULL}},
      // Activations to and from other stages, which wait for them.
      {"ACTIVATIONS",
       Lane::TRANSFER,
       1,
       {Instruction::SEND, Instruction::RECV}},
      // Their gradients, the other way: neither waits for the other.
      {"GRADIENTS", Lane::TRANSFER, 1, {}},
      // Sums over ranks that nobody waits for before the step's end: buckets of
      // parameters' gradients, scalars.
      {"COLLECTIVE",
       Lane::TRANSFER,
       0,
       {Instruction::REDUCE_GRADS, Instruction::SCATTER_GRADS,
        Instruction::PUSH, Instruction::REDUCE_SCALARS, Instruction::DELIVER,
        Instruction::ADMIT}},
      // Between tiers of memory, one lane for each way: copies of what the
      // device will use, which passes wait for, what it has used, and blocks
      // from and to a disk. Which one a move takes, LaneOfMove says.
      {"TO_DEVICE", Lane::TRANSFER, 1, {Instruction::FETCH}},
      {"TO_HOST", Lane::TRANSFER, 0, {Instruction::EVICT}},
      {"NVME_READS", Lane::IO, 0, {}},
      {"NVME_WRITES", Lane::IO, 0, {}},
      // State on its way to a checkpoint, or to another worker's memory.
      {"IO",
       Lane::IO,
       0,
       {Instruction::SNAPSHOT, Instruction::KEEP, Instruction::MIRROR}},
      // Micro-batches from the token files. The host reads them, ahead of the
      // device, whose work is the copy.
      {"DATA",
       Lane::TRANSFER,
       0,
       {Instruction::LOAD_BATCH, Instruction::CLAIM}},
      // What islands exchange, over links on which nothing else should wait.
      {kIslandsLane, Lane::TRANSFER, 0, {Instruction::OUTER_REDUCE}},
  };
  return *kTable;
}

}  // namespace

Lanes AllLanes() {
  Lanes lanes;
  for (const Row& row : Table()) {
    Lane& lane = *lanes.Add();
    lane.set_name(row.name);
    lane.set_kind(row.kind);
    lane.set_priority(row.priority);
    for (const Instruction::Kind kind : row.runs) lane.add_runs(kind);
  }
  return lanes;
}

Lanes LanesOf(const ParallelismSpec& parallelism) {
  Lanes lanes = AllLanes();
  if (IslandsOf(parallelism) > 1) return lanes;
  CHECK_EQ(lanes[lanes.size() - 1].name(), kIslandsLane);
  lanes.RemoveLast();
  return lanes;
}

int LaneNamed(absl::string_view name) {
  const std::vector<Row>& rows = Table();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == name) return static_cast<int>(i);
  }
  CHECK(false) << "no lane " << name;
  return -1;
}

int LaneOfMove(Tier from, Tier to) {
  if (from == NVME) return LaneNamed("NVME_READS");
  if (to == NVME) return LaneNamed("NVME_WRITES");
  return LaneNamed(to == DEVICE ? "TO_DEVICE" : "TO_HOST");
}

int LaneFor(Instruction::Kind kind) {
  const std::vector<Row>& rows = Table();
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& runs = rows[i].runs;
    if (std::count(runs.begin(), runs.end(), kind) > 0) {
      return static_cast<int>(i);
    }
  }
  CHECK(false) << "no lane runs " << Instruction::Kind_Name(kind);
  return -1;
}

}  // namespace troupe
