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
#include "proto/plan/mesh.h"
#include "proto/plan/roles.h"
#include "scheduler/passes/passes.h"
#include "scheduler/planner/check_memory.h"
#include "scheduler/planner/remedies.h"

namespace troupe {
namespace {

// A step that is shorter by less is not worth memory.
constexpr double kGainMin = 0.002;
// Less is nothing in a text.
constexpr double kGainSaid = 0.0005;
// Of what the whole room would gain, enough.
constexpr double kGainEnough = 0.9;
constexpr int kTrials = 5;
// Of a device, what is not taken for shorter steps alone, so that a worker that
// has a little less can take the place of one that is lost.
constexpr double kLeave = 0.01;
// Instructions of all ranks' training steps: a plan of more, which takes a
// minute to predict, is predicted once. Where many plans are compared, a tenth.
int64_t InstructionsMax(const GatherOptions& options) {
  constexpr int64_t kMax = 200'000'000;
  return options.fewest_bytes ? kMax : kMax / 10;
}

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max() / 4;

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

// Of the whole units that a role gathers, once each.
int64_t AllUnits(const Role& role) {
  std::map<int, int64_t> bytes;
  for (const Program& program : role.programs()) {
    for (const Buffer& buffer : program.buffers()) {
      if (buffer.kind() != Buffer::UNSHARDED_PARAMETERS) continue;
      bytes[buffer.unit()] = buffer.bytes();
    }
  }
  int64_t all = 0;
  for (const auto& [unit, of_unit] : bytes) all += of_unit;
  return all;
}

int64_t Instructions(const Plan& plan) {
  int64_t instructions = 0;
  for (const Role& role : plan.roles()) {
    const Program* const step = StepProgram(role);
    if (step == nullptr) continue;
    instructions += step->instructions_size() *
                    static_cast<int64_t>(RanksOf(plan.mesh(), role).size());
  }
  return instructions;
}

// By role, as in Draft.unsharded_bytes.
using Bytes = std::vector<absl::optional<int64_t>>;

Plan WithBytes(Draft programs, Bytes bytes) {
  programs.unsharded_bytes = std::move(bytes);
  for (const Pass& pass : MemoryPasses()) pass.Run(programs);
  return std::move(programs.plan);
}

// What one role may take.
struct Room {
  int64_t all = 0;         // of its units, whole, once each
  int64_t one_ahead = 0;   // that it takes with gathers one step of work ahead
  int64_t device = 0;      // that its devices have for it
  int64_t used_ahead = 0;  // of that, for what only makes steps shorter
  bool one_ahead_fits() const { return one_ahead <= std::min(device, most); }
  int64_t most = kNoLimit;  // memory.unsharded_bytes
};

class AheadSearch {
 public:
  // Borrows all but the draft.
  AheadSearch(Draft programs, const GatherOptions& options)
      : programs_(std::move(programs)),
        options_(options),
        one_ahead_(WithBytes(programs_, {})) {
    const MemorySpec& memory = one_ahead_.job().memory();
    given_ = memory.has_unsharded_bytes();
    const auto budgets = LeastOfDeviceByRole(one_ahead_, options.workers);
    for (int r = 0; r < one_ahead_.roles_size(); ++r) {
      const Role& role = one_ahead_.roles(r);
      Room room = {.all = AllUnits(role), .one_ahead = UnshardedBytes(role)};
      if (given_) room.most = memory.unsharded_bytes();
      room.device = room.used_ahead = kNoLimit;
      if (budgets[r].has_value()) {
        room.device = *budgets[r] - BytesIn(role, DEVICE) + room.one_ahead;
        room.used_ahead =
            room.device -
            (given_ ? 0 : static_cast<int64_t>(kLeave * *budgets[r]));
      }
      rooms_.push_back(room);
    }
  }

  absl::StatusOr<Plan> Run() {
    Plan nearest = Nearest();
    bool fits = CheckMemory(nearest, options_.workers).ok();
    if (!fits) {  // what is fetched for them may be what lacks room elsewhere
      nearest_.assign(rooms_.size(), 0);
      nearest = WithBytes(programs_, nearest_);
      fits = CheckMemory(nearest, options_.workers).ok();
    }
    predicts_ =
        Instructions(nearest) <= InstructionsMax(options_) &&
        MeshSize(nearest.mesh()) <= static_cast<int>(options_.workers.size());
    if (!fits || (!predicts_ && !given_)) return Said(std::move(nearest));
    ASSIGN_OR_RETURN(absl::optional<Plan> farther, Farther(nearest));
    return farther.has_value() ? *std::move(farther) : Said(std::move(nearest));
  }

  Plan RunWithAllRoom() {
    for (Room& room : rooms_) room.device = room.used_ahead = kNoLimit;
    const Plan nearest = Nearest();
    return WithBytes(programs_, BytesAt(nearest, 1));
  }

 private:
  struct Tried {
    Plan plan;
    double share = 0;  // of the room
    double gain = 0;   // of a step
  };

  // One step of work ahead, or while units are used where a role may not take
  // as much.
  Plan Nearest() {
    bool is_one_ahead = true;
    nearest_.clear();
    for (const Room& room : rooms_) {
      is_one_ahead &= room.one_ahead_fits();
      nearest_.push_back(room.one_ahead_fits() ? absl::nullopt
                                               : absl::make_optional(0));
    }
    return is_one_ahead ? one_ahead_ : WithBytes(programs_, nearest_);
  }

  // Between what `nearest` takes, in which some may run farther, too, and all
  // that is of use and that there is.
  Bytes BytesAt(const Plan& nearest, double share) const {
    Bytes bytes = nearest_;
    for (size_t r = 0; r < rooms_.size(); ++r) {
      const Room& room = rooms_[r];
      const int64_t least = UnshardedBytes(nearest.roles(static_cast<int>(r)));
      const int64_t most =
          std::min({room.used_ahead, room.most, room.one_ahead + room.all});
      if (room.all == 0 || room.most == 0) continue;
      const int64_t more = std::max<int64_t>(0, most - least);
      bytes[r] = least + static_cast<int64_t>(share * more);
    }
    return bytes;
  }

  // nullopt: it does not fit.
  absl::StatusOr<absl::optional<Tried>> Try(const Plan& nearest, double seconds,
                                            double share) const {
    RETURN_IF_ERROR(Ask(options_.may_go_on));
    Tried tried = {.plan = WithBytes(programs_, BytesAt(nearest, share)),
                   .share = share};
    if (!CheckMemory(tried.plan, options_.workers).ok()) return absl::nullopt;
    if (predicts_) tried.gain = 1 - Seconds(tried.plan) / seconds;
    return absl::make_optional(std::move(tried));
  }

  // nullopt: nothing gains anything.
  absl::StatusOr<absl::optional<Plan>> Farther(const Plan& nearest) const {
    if (BytesAt(nearest, 1) == nearest_) return absl::nullopt;
    const double seconds = predicts_ ? Seconds(nearest) : 0;
    ASSIGN_OR_RETURN(absl::optional<Tried> best, Try(nearest, seconds, 1));
    if (!best.has_value()) {
      ASSIGN_OR_RETURN(best, TryInTheRoomThatIsLeft(nearest, seconds));
    }
    // With more bytes units may lie worse.
    for (const double share : {0.5, 0.0}) {
      if (!best.has_value() || best->gain >= (given_ ? 0 : kGainMin)) break;
      ASSIGN_OR_RETURN(absl::optional<Tried> less,
                       Try(nearest, seconds, share));
      if (less.has_value() && less->gain > best->gain) best = std::move(less);
    }
    if (!best.has_value() || best->gain < (given_ ? 0 : kGainMin)) {
      return absl::nullopt;
    }
    if (options_.fewest_bytes && !given_) {
      RETURN_IF_ERROR(TakeFewer(nearest, seconds, *best));
    }
    if (options_.fewest_bytes) {
      std::string text = Text(best->plan);
      if (best->gain > kGainSaid) {
        absl::StrAppendFormat(
            &text, "; with %s a step would be longer by %.1f %%",
            GathersText(nearest), 100 * best->gain / (1 - best->gain));
      }
      best->plan.mutable_prediction()->set_gathers(std::move(text));
    }
    return absl::make_optional(std::move(best->plan));
  }

  // As much of it as fits, as near as a few trials come to that.
  absl::StatusOr<absl::optional<Tried>> TryInTheRoomThatIsLeft(
      const Plan& nearest, double seconds) const {
    absl::optional<Tried> best;
    double fits = 0;
    double does_not = 1;
    for (int trial = 0; trial < kTrials; ++trial) {
      const double share = (fits + does_not) / 2;
      ASSIGN_OR_RETURN(absl::optional<Tried> tried,
                       Try(nearest, seconds, share));
      (tried.has_value() ? fits : does_not) = share;
      const bool is_better =
          tried.has_value() && (!best.has_value() || tried->gain >= best->gain);
      if (is_better) best = std::move(tried);
    }
    if (best.has_value()) return best;
    return Try(nearest, seconds, 0);
  }

  absl::Status TakeFewer(const Plan& nearest, double seconds,
                         Tried& best) const {
    const double enough = kGainEnough * best.gain;
    double least = 0;
    for (int trial = 0; trial < kTrials && best.share > 0; ++trial) {
      const double share = trial == 0 ? 0 : (least + best.share) / 2;
      ASSIGN_OR_RETURN(absl::optional<Tried> tried,
                       Try(nearest, seconds, share));
      if (tried.has_value() && tried->gain >= enough) {
        best = *std::move(tried);
      } else {
        least = share;
      }
    }
    return absl::OkStatus();
  }

  double Seconds(const Plan& plan) const {
    return PredictedStepSeconds(plan, options_.workers);
  }

  std::string Text(const Plan& plan) const {
    std::string text = GathersText(plan);
    // With 0 that is what is asked for.
    const int64_t most = given_ ? rooms_.front().most : 0;
    if (most > 0 && MostUnsharded(plan) > most) {
      absl::StrAppend(&text, ", more than memory.unsharded_bytes: ", most,
                      ", for so much is whole while it is used");
    }
    return text;
  }

  Plan Said(Plan nearest) const {
    if (options_.fewest_bytes) {
      nearest.mutable_prediction()->set_gathers(Text(nearest));
    }
    return nearest;
  }

  const Draft programs_;
  const GatherOptions& options_;
  const Plan one_ahead_;
  bool given_ = false;       // memory.unsharded_bytes
  bool predicts_ = false;    // else nothing is known of gains
  std::vector<Room> rooms_;  // by role
  Bytes nearest_;
};

// By instruction, the last one before it that it waits for, itself or by what
// it has fetched; -1: none.
std::vector<int> WaitsFor(const Program& program) {
  std::vector<int> waits_for;
  for (const Instruction& instruction : program.instructions()) {
    int last = -1;
    for (const int after : instruction.after()) {
      const bool fetches =
          program.instructions(after).kind() == Instruction::FETCH;
      last = std::max(last, fetches ? waits_for[after] : after);
    }
    waits_for.push_back(last);
  }
  return waits_for;
}

}  // namespace

absl::StatusOr<Plan> GatherAhead(Draft programs, const GatherOptions& options) {
  if (!GathersUnits(programs.plan)) return GatherOneAhead(std::move(programs));
  return AheadSearch(std::move(programs), options).Run();
}

Plan GatherOneAhead(Draft programs) {
  return WithBytes(std::move(programs), {});
}

Plan GatherFarthest(Draft programs, const GatherOptions& options) {
  if (!GathersUnits(programs.plan)) return GatherOneAhead(std::move(programs));
  return AheadSearch(std::move(programs), options).RunWithAllRoom();
}

absl::StatusOr<bool> GathersLackRoom(Draft programs, const Plan& plan,
                                     const GatherOptions& options) {
  if (!GathersUnits(programs.plan) ||
      Instructions(plan) > InstructionsMax(options) ||
      !CheckMemory(plan, options.workers).ok()) {
    return false;
  }
  RETURN_IF_ERROR(Ask(options.may_go_on));
  const Plan farthest = GatherFarthest(std::move(programs), options);
  return PredictedStepSeconds(farthest, options.workers) <
         (1 - kGainOfSettings) * PredictedStepSeconds(plan, options.workers);
}

bool GathersUnits(const Plan& plan) {
  return std::any_of(plan.roles().begin(), plan.roles().end(),
                     [](const Role& role) { return AllUnits(role) > 0; });
}

std::string GathersText(const Plan& plan) {
  if (!GathersUnits(plan)) return "";
  const int units = UnitsAhead(plan);
  return absl::StrCat("up to ", units, units == 1 ? " unit" : " units",
                      " ahead of use, in ", ReadableBytes(MostUnsharded(plan)));
}

int UnitsAhead(const Plan& plan) {
  int most = 0;
  for (const Role& role : plan.roles()) {
    const Program* const step = StepProgram(role);
    if (step == nullptr) continue;
    const std::vector<int> all_wait_for = WaitsFor(*step);
    std::vector<int> gathers;  // of each unit the first, where it has several
    const Instruction* last = nullptr;
    int waits_for = -1;  // the gather, or one before it
    for (int i = 0; i < step->instructions_size(); ++i) {
      const Instruction& gather = step->instructions(i);
      if (gather.kind() != Instruction::GATHER_PARAMETERS) continue;
      const bool goes_on = last != nullptr && gather.unit() == last->unit() &&
                           gather.part() > last->part();
      last = &gather;
      if (!goes_on) gathers.push_back(i);
      waits_for = std::max(waits_for, all_wait_for[i]);
      const auto first =
          std::upper_bound(gathers.begin(), gathers.end(), waits_for);
      most = std::max(most, static_cast<int>(gathers.end() - first) - 1);
    }
  }
  return most;
}

}  // namespace troupe
