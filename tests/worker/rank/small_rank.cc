#include "tests/worker/rank/small_rank.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "ops/cpu/device.h"
#include "proto/base/check.h"
#include "proto/plan/program_text.h"
#include "scheduler/planner/planner.h"
#include "tests/scheduler/planned_lanes.h"
#include "worker/instructions/instructions.h"
#include "worker/rank/initial_state.h"

namespace troupe {
namespace {

std::vector<TierBudget> Budgets() {
  std::vector<TierBudget> budgets(3);
  budgets[0].set_tier(DEVICE);
  budgets[1].set_tier(HOST);
  budgets[2].set_tier(NVME);
  for (TierBudget& budget : budgets) budget.set_bytes(256 << 20);
  return budgets;
}

NvmeTier NvmeIn(const TempDir& directory, const SmallRankOptions& options) {
  NvmeTier nvme = {.directory = directory.path(), .cluster = "small"};
  if (options.new_engine) nvme.new_engine = options.new_engine;
  return nvme;
}

}  // namespace

std::function<void(Plan& plan)> RestIn(Tier tier,
                                       std::vector<std::string> items) {
  return [tier, items = std::move(items)](Plan& plan) {
    Role& role = *plan.mutable_roles(0);
    for (Slot& slot : *role.mutable_slots()) {
      if (std::count(items.begin(), items.end(), slot.item()) == 0) continue;
      slot.set_tier(tier);
    }
    for (Program& program : *role.mutable_programs()) {
      for (Buffer& buffer : *program.mutable_buffers()) {
        buffer.set_tier(role.slots(buffer.slot()).tier());
      }
    }
  };
}

SmallRank::SmallRank(const JobSpec& job, const SmallRankOptions& options)
    : device_(options.new_device ? options.new_device()
                                 : NewCpuDevice({.threads = 1})),
      device_memory_(*device_),
      pinned_memory_(*device_),
      arenas_(Budgets(), Sources(options)) {
  JobSpec cut = job;
  const int data = options.ranks / std::max(1, cut.parallelism().pipeline()) /
                   std::max(1, cut.parallelism().islands());
  cut.mutable_parallelism()->set_data(data);
  TrainingSpec& training = *cut.mutable_training();
  training.set_micro_batch_size(std::min(training.micro_batch_size(),
                                         training.global_batch_size() / data));
  std::vector<WorkerDescription> workers(options.ranks);
  for (WorkerDescription& worker : workers) {
    worker.set_threads(1);
    worker.set_host_cores(1);
    for (const TierBudget& budget : Budgets()) *worker.add_budgets() = budget;
  }
  const absl::StatusOr<Plan> plan = CompilePlan(cut, workers);
  CHECK(plan.ok()) << plan.status().ToString();
  auto assigned = std::make_shared<Plan>(AssignmentPlan(*plan, options.rank));
  if (options.change) options.change(*assigned);
  absl::StatusOr<std::unique_ptr<RankState>> state =
      RankState::Create(assigned, *device_, arenas_, disk_, /*kept=*/{},
                        /*build_units=*/nullptr, options.host_threads);
  CHECK(state.ok()) << state.status().ToString();
  state_ = *std::move(state);
  CHECK_OK(InitializeFromSeed(*state_));
  Choose(options.program);
}

void SmallRank::Choose(Program::Kind kind) {
  program_ = nullptr;
  for (const Program& program : state_->role().programs()) {
    if (program.kind() == kind) program_ = &program;
  }
  CHECK(program_ != nullptr) << "no program " << Program::Kind_Name(kind);
  state_->step.training = kind == Program::TRAIN;
}

TierArenas::Sources SmallRank::Sources(const SmallRankOptions& options) {
  using Allocator = TierAllocator;
  const bool is_host = device_->has_host_memory();
  return {
      .device = is_host ? static_cast<Allocator&>(allocator_) : device_memory_,
      .host = is_host ? static_cast<Allocator&>(allocator_) : pinned_memory_,
      .nvme = NvmeIn(nvme_, options)};
}

absl::Status SmallRank::Run(const std::string& text) {
  for (const Instruction& instruction : program_->instructions()) {
    if (InstructionText(instruction) != text) continue;
    return RunInstruction({*state_, *program_, instruction});
  }
  CHECK(false) << "no instruction \"" << text << "\" in\n"
               << ProgramText(*program_);
}

absl::Status SmallRank::RunAll(const std::string& prefix) {
  int count = 0;
  for (const Instruction& instruction : program_->instructions()) {
    if (!absl::StartsWith(InstructionText(instruction) + " ", prefix + " ")) {
      continue;
    }
    ++count;
    const absl::Status status =
        RunInstruction({*state_, *program_, instruction});
    if (!status.ok()) return status;
  }
  CHECK_GT(count, 0) << "no instruction begins with \"" << prefix << "\" in\n"
                     << ProgramText(*program_);
  return absl::OkStatus();
}

const Buffer& SmallRank::Find(Buffer::Kind kind, absl::optional<int> unit,
                              absl::optional<int> micro_batch) const {
  for (const Buffer& buffer : program_->buffers()) {
    if (buffer.kind() != kind) continue;
    if (unit.has_value() && buffer.unit() != *unit) continue;
    if (micro_batch.has_value() && buffer.micro_batch() != *micro_batch) {
      continue;
    }
    return buffer;
  }
  CHECK(false) << "no such buffer";
}

}  // namespace troupe
