#include "proto/plan/check_sums.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "proto/base/status.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/fault.h"
#include "proto/plan/groups.h"
#include "proto/plan/index.h"
#include "proto/plan/islands.h"
#include "proto/plan/mesh.h"
#include "proto/plan/operand.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/precision.h"
#include "proto/plan/roles.h"
#include "proto/plan/segments.h"
#include "proto/plan/sum_names.h"

namespace troupe {
namespace {

constexpr int64_t kElementBytes = 8;
constexpr int kWholePlan = -1;

// Bytes of SCALARS, ascending; neighbours are one.
class Bytes {
 public:
  void Add(const BytesUsed& bytes) { runs_.push_back(bytes); }
  void AddAll(const Bytes& other) {
    runs_.insert(runs_.end(), other.runs_.begin(), other.runs_.end());
  }
  std::string Text() {
    Join();
    if (runs_.empty()) return "none";
    std::string text;
    for (const BytesUsed& run : runs_) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", run.begin, " to ",
                      run.end);
    }
    return text;
  }
  bool Same(Bytes& other) {
    Join();
    other.Join();
    return std::equal(runs_.begin(), runs_.end(), other.runs_.begin(),
                      other.runs_.end(),
                      [](const BytesUsed& a, const BytesUsed& b) {
                        return a.begin == b.begin && a.end == b.end;
                      });
  }

 private:
  void Join() {
    std::sort(runs_.begin(), runs_.end(),
              [](const BytesUsed& a, const BytesUsed& b) {
                return a.begin < b.begin;
              });
    std::vector<BytesUsed> joined;
    for (const BytesUsed& run : runs_) {
      if (!joined.empty() && run.begin <= joined.back().end) {
        joined.back().end = std::max(joined.back().end, run.end);
      } else {
        joined.push_back(run);
      }
    }
    runs_ = std::move(joined);
  }

  std::vector<BytesUsed> runs_;
};

std::string NameOf(const std::string& name, int unit) {
  return unit == kWholePlan
             ? absl::StrCat("the sum \"", name, "\"")
             : absl::StrCat("the sum \"", name, "\" of unit ", unit);
}

// Where each sum lies, by name and unit.
class SumLayout {
 public:
  struct Place {
    BytesUsed bytes;
    Instruction::Kind added_by = Instruction::KIND_UNSPECIFIED;
    bool used = false;  // by a unit
  };

  static absl::StatusOr<SumLayout> Of(const Plan& plan) {
    SumLayout layout;
    for (const Sum& sum : plan.sums()) {
      const int unit = sum.has_unit() ? sum.unit() : kWholePlan;
      const std::string name = NameOf(sum.name(), unit);
      if (sum.name().empty() || sum.elements() < 1) {
        return absl::FailedPreconditionError(
            absl::StrCat(name, " has ", sum.elements(), " elements"));
      }
      if (sum.has_unit() && !IsIndexIn(sum.unit(), plan.units_size())) {
        return absl::FailedPreconditionError(
            absl::StrCat(name, ": there is no such unit"));
      }
      Place place = {.added_by = sum.added_by()};
      place.bytes.begin = layout.bytes_;
      layout.bytes_ += sum.elements() * kElementBytes;
      place.bytes.end = layout.bytes_;
      if (!layout.places_.emplace(std::make_pair(sum.name(), unit), place)
               .second) {
        return absl::FailedPreconditionError(
            absl::StrCat(name, " is there twice"));
      }
    }
    RETURN_IF_ERROR(layout.CheckRequired());
    return layout;
  }

  Place* Find(const std::string& name, int unit) {
    const auto found = places_.find({name, unit});
    return found == places_.end() ? nullptr : &found->second;
  }

  // That some unit adds to what FORWARD is said to add to. A model that
  // computes nothing has no loss.
  absl::Status CheckUsed() const {
    for (const auto& [key, place] : places_) {
      if (place.used || place.added_by != Instruction::FORWARD) continue;
      if (key.first == kLossSum && key.second == kWholePlan) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("no unit adds to ", NameOf(key.first, key.second)));
    }
    return absl::OkStatus();
  }

  int64_t bytes() const { return bytes_; }

 private:
  // What a worker looks for in any plan. One copy writes both flags.
  absl::Status CheckRequired() {
    for (const auto& [name, added_by] :
         {std::make_pair(kLossSum, Instruction::FORWARD),
          {kTokensSum, Instruction::FORWARD},
          {kSquaredNormSum, Instruction::GRAD_NORM},
          {kStopSum, Instruction::REDUCE_SCALARS},
          {kSaveSum, Instruction::REDUCE_SCALARS}}) {
      const Place* const place = Find(name, kWholePlan);
      if (place != nullptr && place->added_by == added_by &&
          place->bytes.end - place->bytes.begin == kElementBytes) {
        continue;
      }
      return absl::FailedPreconditionError(absl::StrCat(
          "a plan has ", NameOf(name, kWholePlan),
          ", of one element, added by ", Instruction::Kind_Name(added_by)));
    }
    for (const auto& [key, place] : places_) {
      const bool others = place.added_by == Instruction::FORWARD ||
                          key.first == kSquaredNormSum ||
                          key.first == kStopSum || key.first == kSaveSum ||
                          place.added_by == Instruction::ADMIT;
      if (others) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "nobody knows how ", Instruction::Kind_Name(place.added_by),
          " adds to ", NameOf(key.first, key.second)));
    }
    if (Find(kStopSum, kWholePlan)->bytes.end !=
        Find(kSaveSum, kWholePlan)->bytes.begin) {
      return absl::FailedPreconditionError(
          absl::StrCat(NameOf(kSaveSum, kWholePlan), " does not follow ",
                       NameOf(kStopSum, kWholePlan)));
    }
    return absl::OkStatus();
  }

  std::map<std::pair<std::string, int>, Place> places_;
  int64_t bytes_ = 0;
};

// The bytes that FORWARD of each segment of a unit adds to, as its ops say, and
// what the unit adds besides.
struct UnitAdds {
  std::vector<Bytes> segments;
  Bytes besides;
};

absl::StatusOr<BytesUsed> BytesOfAddend(SumLayout& layout, int unit, bool own,
                                        const std::string& name,
                                        int64_t elements) {
  const int of = own ? unit : kWholePlan;
  SumLayout::Place* const place = layout.Find(name, of);
  if (place == nullptr || place->added_by != Instruction::FORWARD) {
    return absl::FailedPreconditionError(absl::StrCat(
        "unit ", unit, " adds to ", NameOf(name, of), ", which the plan ",
        place == nullptr ? "lacks" : "has others add to"));
  }
  const int64_t there = (place->bytes.end - place->bytes.begin) / kElementBytes;
  if (there != elements) {
    return absl::FailedPreconditionError(
        absl::StrCat("unit ", unit, " adds ", elements, " elements to ",
                     NameOf(name, of), ", which has ", there));
  }
  place->used = true;
  return place->bytes;
}

absl::StatusOr<std::vector<UnitAdds>> AddsOf(const Plan& plan,
                                             SumLayout& layout) {
  std::vector<UnitAdds> adds(plan.units_size());
  for (int u = 0; u < plan.units_size(); ++u) {
    const Unit& unit = plan.units(u);
    for (const Unit::Addend& addend : unit.addends()) {
      ASSIGN_OR_RETURN(const BytesUsed bytes,
                       BytesOfAddend(layout, u, addend.own(), addend.sum(),
                                     addend.elements()));
      adds[u].besides.Add(bytes);
    }
    if (!unit.has_table()) {
      adds[u].segments.resize(1);
      continue;
    }
    const UnitTable& table = plan.tables(unit.table());
    for (const Segment& segment : ForwardSegments(table)) {
      Bytes& of_segment = adds[u].segments.emplace_back();
      for (int op = segment.begin; op < segment.end; ++op) {
        if (IsExchange(table.ops(op).kind())) continue;
        for (const SumRule& sum : RulesOf({table, table.ops(op)}).sums) {
          ASSIGN_OR_RETURN(
              const BytesUsed bytes,
              BytesOfAddend(layout, u, sum.own, sum.name, sum.elements));
          of_segment.Add(bytes);
        }
      }
    }
  }
  return adds;
}

class ProgramCheck {
 public:
  ProgramCheck(const Plan& plan, SumLayout& layout,
               const std::vector<UnitAdds>& adds, const Role& role,
               const Program& program)
      : plan_(plan),
        layout_(layout),
        adds_(adds),
        program_(program),
        place_{.rank = FirstRankOf(plan.mesh(), role), .kind = program.kind()} {
  }

  absl::Status Run() {
    for (const Buffer& buffer : program_.buffers()) {
      if (buffer.kind() != Buffer::SCALARS ||
          buffer.bytes() == layout_.bytes()) {
        continue;
      }
      return ProgramFault(
          place_, absl::StrCat("SCALARS has ", buffer.bytes(),
                               " bytes, the plan's sums ", layout_.bytes()));
    }
    for (const Instruction& instruction : program_.instructions()) {
      if (instruction.kind() != Instruction::FORWARD) continue;
      int& last = last_segment_[PassOf(instruction)];
      last = std::max(last, instruction.segment());
    }
    for (const Instruction& instruction : program_.instructions()) {
      RETURN_IF_ERROR(CheckAdds(instruction));
      RETURN_IF_ERROR(CheckOrder(instruction));
    }
    return CheckReduced();
  }

  // How many programs later what this one has added is summed.
  int lag() const { return reduced_.value_or(0); }
  bool reduces() const { return reduced_.has_value(); }

 private:
  using Pass = std::tuple<int, int, int>;  // unit, micro-batch, ahead
  static Pass PassOf(const Instruction& forward) {
    return {forward.unit(), forward.micro_batch(), forward.ahead()};
  }

  absl::StatusOr<Bytes> Wanted(const Instruction& instruction) {
    Bytes wanted;
    switch (instruction.kind()) {
      case Instruction::FORWARD: {
        const UnitAdds& unit = adds_.at(instruction.unit());
        const int segment = instruction.segment();
        if (segment < 0 || segment >= static_cast<int>(unit.segments.size())) {
          return ProgramFault(place_, instruction,
                              "its unit has no such segment");
        }
        wanted = unit.segments[segment];
        if (segment == last_segment_[PassOf(instruction)]) {
          wanted.AddAll(unit.besides);
        }
        return wanted;
      }
      case Instruction::STEP:
        if (!UpdatesNeedNorm(plan_.job().training())) return wanted;
        [[fallthrough]];
      case Instruction::GRAD_NORM:
        wanted.Add(layout_.Find(kSquaredNormSum, kWholePlan)->bytes);
        return wanted;
      case Instruction::REDUCE_SCALARS:
        if (instruction.has_when()) {
          wanted.Add(layout_.Find(kStopSum, kWholePlan)->bytes);
          wanted.Add(layout_.Find(kSaveSum, kWholePlan)->bytes);
        } else {
          wanted.Add({0, layout_.bytes()});
        }
        return wanted;
      case Instruction::DELIVER:
      case Instruction::ADMIT:
        wanted.Add({0, layout_.bytes()});
        return wanted;
      case Instruction::CLAIM:
        wanted.Add(layout_.Find(kStopSum, kWholePlan)->bytes);
        wanted.Add(layout_.Find(kSaveSum, kWholePlan)->bytes);
        return wanted;
      default:
        return wanted;
    }
  }

  // An instruction uses of SCALARS what it is there for, and adds to that; STEP
  // reads the norm, if it needs it.
  absl::Status CheckAdds(const Instruction& instruction) {
    if (IsMove(instruction.kind())) return absl::OkStatus();
    const bool reads = instruction.kind() == Instruction::STEP;
    Bytes used;
    for (const Instruction::Operand& operand : instruction.operands()) {
      if (operand.part() != Instruction::TOTALS) continue;
      const Buffer& buffer = program_.buffers(operand.buffer());
      used.Add(BytesOf(operand, buffer));
      const Instruction::Access access =
          reads ? Instruction::READ : Instruction::ADD;
      if (operand.access() == access) continue;
      return ProgramFault(place_, instruction,
                          reads ? "changes what the ranks have summed"
                                : "does not add to what SCALARS holds");
    }
    ASSIGN_OR_RETURN(Bytes wanted, Wanted(instruction));
    if (wanted.Same(used)) return absl::OkStatus();
    return ProgramFault(place_, instruction,
                        absl::StrCat("uses bytes ", used.Text(),
                                     " of SCALARS; its sums are "
                                     "bytes ",
                                     wanted.Text()));
  }

  // Of the step that the program is for, nothing is added after the sum.
  absl::Status CheckOrder(const Instruction& instruction) {
    if (instruction.kind() == Instruction::REDUCE_SCALARS) {
      // Islands agree whether to stop (CheckIslands).
      if (instruction.has_when()) return absl::OkStatus();
      if (reduced_.has_value()) {
        return ProgramFault(place_, instruction, "sums what is summed");
      }
      reduced_ = -instruction.ahead();
      return CheckRanks(instruction);
    }
    const bool adds = std::any_of(
        instruction.operands().begin(), instruction.operands().end(),
        [](const Instruction::Operand& operand) {
          return operand.part() == Instruction::TOTALS && Writes(operand);
        });
    if (!adds || reduced_ != 0 || instruction.ahead() != 0) {
      return absl::OkStatus();
    }
    return ProgramFault(place_, instruction,
                        "adds to a sum after the ranks have summed it");
  }

  // How many ranks sum what was added: an island sums by itself what it has
  // trained on.
  int SummingRanks() const {
    return program_.kind() == Program::TRAIN ? RanksOfIsland(plan_.mesh())
                                             : MeshSize(plan_.mesh());
  }

  absl::Status CheckRanks(const Instruction& reduce) const {
    const Group& group = plan_.groups(reduce.group());
    if (GroupSize(plan_.mesh(), group) == SummingRanks()) {
      return absl::OkStatus();
    }
    return ProgramFault(
        place_, reduce,
        absl::StrCat("sums over group ", group.name(), ", which has ",
                     GroupSize(plan_.mesh(), group), " of ", SummingRanks(),
                     " ranks"));
  }

  absl::Status CheckReduced() const {
    const bool wants =
        SummingRanks() > 1 && ((program_.kind() == Program::TRAIN &&
                                !plan_.derived().takes_turns()) ||
                               program_.kind() == Program::VALIDATE ||
                               program_.kind() == Program::REPORT);
    if (wants == reduced_.has_value()) return absl::OkStatus();
    return ProgramFault(place_, wants ? "nothing sums what the ranks have added"
                                      : "has nothing to sum over ranks");
  }

  const Plan& plan_;
  SumLayout& layout_;
  const std::vector<UnitAdds>& adds_;
  const Program& program_;
  const ProgramPlace place_;
  std::map<Pass, int> last_segment_;
  absl::optional<int> reduced_;  // how many steps late
};

std::string StepText(int ahead) {
  return ahead == 0
             ? "of its step"
             : absl::StrCat("of the step ", std::abs(ahead),
                            ahead > 0 ? " after" : " before", " its own");
}

// That sums of each step have a copy of SCALARS for themselves, from the first
// program that adds to them to the one that takes them over the ranks. A
// validation has that of the step which TRAIN has summed just before.
absl::Status CheckCopiesOfSums(const Plan& plan, const Role& role, int lag) {
  int first = -lag;
  int last = 0;
  for (const Program& program : role.programs()) {
    const ProgramPlace place = {.rank = FirstRankOf(plan.mesh(), role),
                                .kind = program.kind()};
    const bool validates = program.kind() == Program::VALIDATE;
    for (const Instruction& instruction : program.instructions()) {
      for (const Instruction::Operand& operand : instruction.operands()) {
        if (operand.part() != Instruction::TOTALS) continue;
        const Buffer& sums = program.buffers(operand.buffer());
        if (sums.copy() > 0) continue;  // of this step, in another tier
        const int wanted = validates ? -lag : instruction.ahead();
        if (sums.copy_offset() != wanted) {
          return ProgramFault(
              place, instruction,
              absl::StrCat("uses SCALARS ", StepText(sums.copy_offset()),
                           ", want those ", StepText(wanted)));
        }
        last = std::max(last, wanted);
        const int copies = CopiesOf(role.slots(sums.slot()));
        if (last - first < copies) continue;
        return ProgramFault(
            place, instruction,
            absl::StrCat("uses SCALARS of one of ", last - first + 1,
                         " steps under way, of which ", copies,
                         " have a copy"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSums(const Plan& plan) {
  ASSIGN_OR_RETURN(SumLayout layout, SumLayout::Of(plan));
  ASSIGN_OR_RETURN(const std::vector<UnitAdds> adds, AddsOf(plan, layout));
  RETURN_IF_ERROR(layout.CheckUsed());
  for (const Role& role : plan.roles()) {
    std::map<Program::Kind, int> lags;
    for (const Program& program : role.programs()) {
      ProgramCheck check(plan, layout, adds, role, program);
      RETURN_IF_ERROR(check.Run());
      if (check.reduces()) lags[program.kind()] = check.lag();
    }
    const ProgramPlace place = {.rank = FirstRankOf(plan.mesh(), role),
                                .kind = Program::TRAIN};
    const int lag = lags[Program::TRAIN];
    const bool reports = lags.count(Program::REPORT) > 0;
    if (lag < 0 || (lag > 0) != reports ||
        (reports && lags[Program::REPORT] != lag)) {
      return ProgramFault(
          place, absl::StrCat("sums steps ", lag,
                              " programs late, and REPORT does not sum those "
                              "that are left"));
    }
    RETURN_IF_ERROR(CheckCopiesOfSums(plan, role, lag));
  }
  return absl::OkStatus();
}

}  // namespace troupe
