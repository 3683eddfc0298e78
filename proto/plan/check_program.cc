#include "proto/plan/check_program.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/plan/check_at_rest.h"
#include "proto/plan/check_batch.h"
#include "proto/plan/check_buffers.h"
#include "proto/plan/check_chunks.h"
#include "proto/plan/check_copies.h"
#include "proto/plan/check_documents.h"
#include "proto/plan/check_experts.h"
#include "proto/plan/check_frozen.h"
#include "proto/plan/check_islands.h"
#include "proto/plan/check_layouts.h"
#include "proto/plan/check_modules.h"
#include "proto/plan/check_panels.h"
#include "proto/plan/check_parts.h"
#include "proto/plan/check_passes.h"
#include "proto/plan/check_rings.h"
#include "proto/plan/check_rules.h"
#include "proto/plan/check_served.h"
#include "proto/plan/check_shape.h"
#include "proto/plan/check_sums.h"
#include "proto/plan/check_tiers.h"
#include "proto/plan/check_turns.h"
#include "proto/plan/check_units.h"
#include "proto/plan/check_waits.h"
#include "proto/plan/check_work.h"
#include "proto/plan/lanes.h"
#include "proto/plan/memory.h"
#include "proto/plan/mesh.h"
#include "proto/plan/program_text.h"
#include "proto/plan/roles.h"
#include "proto/plan/sequence_losses.h"

namespace troupe {
namespace {

// Of the grid in a message; the grid of a large plan is megabytes.
constexpr size_t kGridCharactersMax = 16 << 10;

struct Part {
  absl::Status (*check)(const Plan& plan);
};
constexpr Part kParts[] = {
    {CheckUnits},     {CheckFrozen},         {CheckRules},   {CheckLayouts},
    {CheckBatch},     {CheckRings},          {CheckPanels},  {CheckExperts},
    {CheckChunks},    {CheckShape},          {CheckParts},   {CheckPasses},
    {CheckWork},      {CheckAtRest},         {CheckServed},  {CheckIslands},
    {CheckTiers},     {CheckWaits},          {CheckSums},    {CheckBuffers},
    {CheckCopies},    {CheckDocuments},      {CheckModules}, {CheckTurns},
    {CheckSequenceLosses}};

absl::Status WithGrid(const absl::Status& fault, const Plan& plan) {
  std::string grids;
  for (const Program::Kind kind :
       {Program::FILL, Program::TRAIN, Program::VALIDATE, Program::CHECKPOINT,
        Program::REPORT, Program::KEEP}) {
    const std::string grid = ProgramGrid(plan, kind);
    if (grid.empty()) continue;
    absl::StrAppend(&grids, "\n", Program::Kind_Name(kind), "\n", grid);
  }
  if (grids.size() > kGridCharactersMax) {
    grids.resize(kGridCharactersMax);
    grids += "... (the rest is left out)\n";
  }
  return absl::Status(fault.code(), absl::StrCat(fault.message(), grids));
}

// "device memory needs 3.00 GiB, 1.00 GiB more than the budget of 2.00 GiB:
// parameters 1.00 GiB, ... , activations 1.00 GiB (overflows here)".
std::string Overflow(const std::vector<MemoryItem>& needs, Tier tier,
                     int64_t budget) {
  std::vector<std::string> items;
  int64_t sum = 0;
  for (const MemoryItem& item : needs) {
    if (item.tier() != tier) continue;
    const bool overflows = sum <= budget && sum + item.bytes() > budget;
    sum += item.bytes();
    items.push_back(absl::StrCat(item.item(), " ", ReadableBytes(item.bytes()),
                                 overflows ? " (overflows here)" : ""));
  }
  return absl::StrCat(TierText(tier), " memory needs ", ReadableBytes(sum),
                      ", ", ReadableBytes(sum - budget),
                      " more than the budget of ", ReadableBytes(budget), ": ",
                      absl::StrJoin(items, ", "));
}

absl::Status CheckRankBudgets(int rank, const std::vector<MemoryItem>& needs,
                              const WorkerDescription& worker) {
  std::map<Tier, int64_t> budgets;
  for (const TierBudget& budget : worker.budgets()) {
    budgets[budget.tier()] += budget.bytes();
  }
  for (const Tier tier : {DEVICE, HOST, NVME}) {
    int64_t bytes = 0;
    for (const MemoryItem& item : needs) {
      if (item.tier() == tier) bytes += item.bytes();
    }
    if (bytes <= budgets[tier]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " on worker ", worker.name(), ": ",
                     Overflow(needs, tier, budgets[tier]), "; a budget of ",
                     ReadableBytes(bytes), " (", bytes, " bytes) would do"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPrograms(const Plan& plan) {
  for (const Part& part : kParts) {
    const absl::Status fault = part.check(plan);
    if (!fault.ok()) return WithGrid(fault, plan);
  }
  return absl::OkStatus();
}

absl::Status CheckBudgets(const Plan& plan,
                          const std::vector<WorkerDescription>& workers,
                          const MemoryBeside& beside_on_gpus) {
  const int ranks = MeshSize(plan.mesh());
  if (static_cast<int>(workers.size()) < ranks) {
    return absl::InvalidArgumentError(absl::StrCat("the plan has ", ranks,
                                                   " ranks, there are ",
                                                   workers.size(), " workers"));
  }
  for (const absl::Status& status :
       CheckBudgetsOfRanks(plan, workers, beside_on_gpus)) {
    RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

std::vector<absl::Status> CheckBudgetsOfRanks(
    const Plan& plan, const std::vector<WorkerDescription>& workers,
    const MemoryBeside& beside_on_gpus) {
  std::vector<absl::Status> statuses(MeshSize(plan.mesh()));
  for (const Role& role : plan.roles()) {
    const std::vector<MemoryItem> items = MemoryItems(role);
    for (const int rank : RanksOf(plan.mesh(), role)) {
      const WorkerDescription& worker = workers.at(rank);
      if (worker.budgets().empty()) continue;
      if (!worker.has_gpu() || beside_on_gpus == nullptr) {
        statuses[rank] = CheckRankBudgets(rank, items, worker);
        continue;
      }
      std::vector<MemoryItem> needs = items;
      for (MemoryItem& item : beside_on_gpus(role, rank)) {
        needs.push_back(std::move(item));
      }
      statuses[rank] = CheckRankBudgets(rank, needs, worker);
    }
  }
  return statuses;
}

std::string ProgramGrid(const Plan& plan, Program::Kind kind) {
  std::string grid;
  for (const Role& role : plan.roles()) {
    const int rank = FirstRankOf(plan.mesh(), role);
    for (const Program& program : role.programs()) {
      if (program.kind() != kind) continue;
      std::map<int, std::vector<std::string>> lanes;
      for (const Instruction& instruction : program.instructions()) {
        lanes[instruction.lane()].push_back(InstructionText(instruction));
      }
      for (const auto& [lane, texts] : lanes) {
        absl::StrAppend(&grid,
                        absl::StrFormat("rank %-3d %-12s ", rank,
                                        NameOfLane(plan.lanes(), lane)),
                        absl::StrJoin(texts, " | "), "\n");
      }
    }
  }
  return grid;
}

}  // namespace troupe
