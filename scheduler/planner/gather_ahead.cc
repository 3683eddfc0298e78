#include "scheduler/planner/gather_ahead.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "proto/base/status.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/find_program.h"
#include "proto/plan/memory.h"
#include "scheduler/planner/remedies.h"

namespace troupe {
namespace {

// A step that is shorter by less is not worth memory.
constexpr double kGainMin = 0.002;
// Of what the whole budget would gain, enough.
constexpr double kGainEnough = 0.9;
constexpr int kTrials = 4;
// Of a plan's training steps: longer ones, of thousands of micro-batches in
// stages, take seconds to build, and are built once.
constexpr int kInstructionsMax = 100'000;

int64_t UnshardedBytes(const Role& role) {
  int64_t bytes = 0;
  for (const MemoryItem& item : MemoryItems(role)) {
    if (item.item() == LineItem(Buffer::UNSHARDED_PARAMETERS)) {
      bytes += item.bytes();
    }
  }
  return bytes;
}

int64_t MostUnsharded(const Plan& plan) {
  int64_t most = 0;
  for (const Role& role : plan.roles()) {
    most = std::max(most, UnshardedBytes(role));
  }
  return most;
}

// Of the role with most, of the whole units that its training step gathers,
// once each.
int64_t AllUnits(const Plan& plan) {
  int64_t most = 0;
  for (const Role& role : plan.roles()) {
    std::map<int, int64_t> bytes;
    for (const Program& program : role.programs()) {
      for (const Buffer& buffer : program.buffers()) {
        if (buffer.kind() != Buffer::UNSHARDED_PARAMETERS) continue;
        bytes[buffer.unit()] = buffer.bytes();
      }
    }
    int64_t all = 0;
    for (const auto& [unit, of_unit] : bytes) all += of_unit;
    most = std::max(most, all);
  }
  return most;
}

int Instructions(const Plan& plan) {
  int instructions = 0;
  for (const Role& role : plan.roles()) {
    const Program* const train = FindProgram(role, Program::TRAIN);
    if (train != nullptr) instructions += train->instructions_size();
  }
  return instructions;
}

// What each device has for whole units beside all else; nothing: nobody knows
// the devices.
absl::optional<int64_t> RoomForUnits(
    const Plan& plan, const std::vector<WorkerDescription>& workers) {
  const absl::optional<int64_t> least = LeastOfDevice(plan, workers);
  if (!least.has_value()) return absl::nullopt;
  int64_t room = std::numeric_limits<int64_t>::max();
  for (const Role& role : plan.roles()) {
    room =
        std::min(room, *least - BytesIn(role, DEVICE) + UnshardedBytes(role));
  }
  return room;
}

absl::StatusOr<Plan> BuildWith(const Plan& plan, int64_t unsharded_bytes,
                               const BuildPlan& build) {
  JobSpec job = plan.job();
  job.mutable_memory()->set_unsharded_bytes(unsharded_bytes);
  return build(job);
}

// The fewest bytes that gain enough.
class Search {
 public:
  // Borrows all.
  Search(const Plan& nearest, const std::vector<WorkerDescription>& workers,
         const BuildPlan& build)
      : nearest_(nearest),
        workers_(workers),
        build_(build),
        seconds_(PredictedStepSeconds(nearest, workers)) {}

  // nullopt: nothing gains anything.
  absl::StatusOr<absl::optional<Plan>> Run(int64_t least, int64_t most) {
    ASSIGN_OR_RETURN(Tried best, Try(most));
    if (!best.fits || best.gain < kGainMin) return absl::nullopt;
    const double enough = kGainEnough * best.gain;
    int64_t bytes = least;
    for (int trial = 0; trial <= kTrials && least < most; ++trial) {
      ASSIGN_OR_RETURN(Tried tried, Try(bytes));
      if (tried.fits && tried.gain >= enough) {
        most = bytes;
        best = std::move(tried);
      } else {
        least = bytes;
      }
      bytes = least + (most - least) / 2;
    }
    gain_ = best.gain;
    return absl::make_optional(std::move(best.plan));
  }

  double gain() const { return gain_; }  // of what Run found

 private:
  struct Tried {
    Plan plan;
    bool fits = false;
    double gain = 0;  // of a step
  };

  absl::StatusOr<Tried> Try(int64_t bytes) {
    Tried tried;
    ASSIGN_OR_RETURN(tried.plan, BuildWith(nearest_, bytes, build_));
    tried.fits = CheckMemory(tried.plan, workers_).ok();
    if (!tried.fits) return tried;
    tried.gain = 1 - PredictedStepSeconds(tried.plan, workers_) / seconds_;
    return tried;
  }

  const Plan& nearest_;
  const std::vector<WorkerDescription>& workers_;
  const BuildPlan& build_;
  const double seconds_;
  double gain_ = 0;
};

// The last instruction before a gather that it waits for, itself or by what it
// has fetched.
int WaitsFor(const Program& program, int index) {
  int last = -1;
  for (const int after : program.instructions(index).after()) {
    const bool fetches =
        program.instructions(after).kind() == Instruction::FETCH;
    last = std::max(last, fetches ? WaitsFor(program, after) : after);
  }
  return last;
}

}  // namespace

absl::StatusOr<Plan> GatherNearer(Plan plan,
                                  const std::vector<WorkerDescription>& workers,
                                  const BuildPlan& build) {
  const bool open = !plan.job().memory().has_unsharded_bytes();
  if (!open || AllUnits(plan) == 0) return plan;
  const absl::optional<int64_t> room = RoomForUnits(plan, workers);
  const bool fits = !room.has_value() || *room >= MostUnsharded(plan);
  if (fits || *room <= 0) return plan;
  ASSIGN_OR_RETURN(Plan nearer, BuildWith(plan, *room, build));
  if (*RoomForUnits(nearer, workers) < MostUnsharded(nearer)) return plan;
  return nearer;
}

absl::StatusOr<Plan> GatherFarther(
    Plan plan, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build) {
  const int64_t all = AllUnits(plan);
  if (all == 0) return plan;
  if (Instructions(plan) > kInstructionsMax) {
    plan.mutable_prediction()->set_gathers(GathersText(plan));
    return plan;
  }
  const int64_t now = MostUnsharded(plan);
  const int64_t room = RoomForUnits(plan, workers).value_or(now + all);
  Search search(plan, workers, build);
  ASSIGN_OR_RETURN(absl::optional<Plan> farther,
                   search.Run(now, std::min(room, now + all)));
  std::string text = GathersText(plan);
  if (farther.has_value()) {
    text = absl::StrFormat("%s; with %s a step would be longer by %.1f %%",
                           GathersText(*farther), text,
                           100 * search.gain() / (1 - search.gain()));
    plan = *std::move(farther);
  }
  plan.mutable_prediction()->set_gathers(std::move(text));
  return plan;
}

std::string GathersText(const Plan& plan) {
  if (AllUnits(plan) == 0) return "";
  const int units = UnitsAhead(plan);
  return absl::StrCat("up to ", units, units == 1 ? " unit" : " units",
                      " ahead of use, in ", ReadableBytes(MostUnsharded(plan)));
}

int UnitsAhead(const Plan& plan) {
  int most = 0;
  for (const Role& role : plan.roles()) {
    const Program* const train = FindProgram(role, Program::TRAIN);
    if (train == nullptr) continue;
    std::vector<int> gathers;
    int waits_for = -1;  // the gather, or one before it
    for (int i = 0; i < train->instructions_size(); ++i) {
      const Instruction& gather = train->instructions(i);
      if (gather.kind() != Instruction::GATHER_PARAMETERS) continue;
      gathers.push_back(i);
      waits_for = std::max(waits_for, WaitsFor(*train, i));
      const auto first =
          std::upper_bound(gathers.begin(), gathers.end(), waits_for);
      most = std::max(most, static_cast<int>(gathers.end() - first) - 1);
    }
  }
  return most;
}

}  // namespace troupe
