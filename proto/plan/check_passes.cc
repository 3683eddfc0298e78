#include "proto/plan/check_passes.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/fault.h"
#include "proto/plan/find_program.h"
#include "proto/plan/mesh.h"
#include "proto/plan/program_text.h"

namespace troupe {
namespace {

// A pass of a unit over a micro-batch: where it is, and its instruction.
struct PassAt {
  int rank = 0;
  const Instruction* instruction = nullptr;
};
// By kind, unit and micro-batch.
using PassName = std::tuple<Instruction::Kind, int, int>;
using Passes = std::map<PassName, std::vector<PassAt>>;

bool IsPass(Instruction::Kind kind) {
  return kind == Instruction::FORWARD || kind == Instruction::BACKWARD_INPUT ||
         kind == Instruction::BACKWARD_WEIGHT;
}

// Of one of the mesh's pipelines: the ranks of one place on the data axis.
class Pipeline {
 public:
  Pipeline(const Plan& plan, int data_index) : plan_(plan) {
    for (const RankPlan& rank : plan.ranks()) {
      if (CoordinateOn(plan.mesh(), "data", rank.rank()) == data_index) {
        ranks_.push_back(rank.rank());
      }
    }
  }

  Passes PassesOf(Program::Kind kind) const {
    Passes passes;
    for (const int rank : ranks_) {
      const Program* const program = FindProgram(plan_.ranks(rank), kind);
      if (program == nullptr) continue;
      for (const Instruction& instruction : program->instructions()) {
        if (!IsPass(instruction.kind())) continue;
        passes[{instruction.kind(), instruction.unit(),
                instruction.micro_batch()}]
            .push_back({rank, &instruction});
      }
    }
    return passes;
  }

  bool Has(Program::Kind kind) const {
    return FindProgram(plan_.ranks(ranks_.front()), kind) != nullptr;
  }

  absl::Status CheckOnce(Program::Kind kind) const {
    const Passes passes = PassesOf(kind);
    const bool train = kind == Program::TRAIN;
    const int micro_batches = train
                                  ? plan_.derived().micro_batches()
                                  : plan_.derived().validation_micro_batches();
    for (int u = 0; u < plan_.units_size(); ++u) {
      const bool embedding = plan_.units(u).kind() == Unit::EMBEDDING;
      const std::pair<Instruction::Kind, size_t> wanted[] = {
          {Instruction::FORWARD, 1},
          {Instruction::BACKWARD_INPUT, train && !embedding ? 1 : 0},
          {Instruction::BACKWARD_WEIGHT, train ? 1 : 0}};
      for (int m = 0; m < micro_batches; ++m) {
        for (const auto& [pass, times] : wanted) {
          const auto found = passes.find({pass, u, m});
          const size_t count = found == passes.end() ? 0 : found->second.size();
          if (count != times) return Miscounted(kind, {pass, u, m}, count);
        }
      }
    }
    return absl::OkStatus();
  }

  // Backward uses what forward used, so many steps ago as it ran ahead.
  absl::Status CheckVersions() const {
    const Passes passes = PassesOf(Program::TRAIN);
    const Versions kept = KeptVersions();
    for (const auto& [name, places] : passes) {
      const auto& [kind, u, m] = name;
      const PassAt& at = places.front();
      const int age = at.instruction->weight_version();
      const auto found = kept.find({at.rank, u});
      const int versions = found == kept.end() ? 1 : found->second;
      const bool reads = kind != Instruction::BACKWARD_WEIGHT &&
                         plan_.units(u).flat_elements() > 0;
      if (age < 0 || (reads && age >= versions)) {
        return Fault(at,
                     absl::StrCat("uses weights that are ", age,
                                  " steps old, and the rank keeps ", versions,
                                  versions == 1 ? " version" : " versions",
                                  ": they no longer exist"));
      }
      if (kind == Instruction::FORWARD) continue;
      const auto forward = passes.find({Instruction::FORWARD, u, m});
      if (forward == passes.end()) continue;
      const PassAt& before = forward->second.front();
      if (at.rank != before.rank) {
        return Fault(at, absl::StrCat("its forward ran on rank ", before.rank));
      }
      const int used =
          before.instruction->weight_version() + before.instruction->ahead();
      if (age == used) continue;
      return Fault(at, absl::StrCat("uses weights that are ", age,
                                    " steps old, its forward used some that "
                                    "are now ",
                                    used));
    }
    return absl::OkStatus();
  }

  // What TRAIN computes ahead, FILL computes before the first TRAIN.
  absl::Status CheckFill() const {
    const Passes fill = PassesOf(Program::FILL);
    for (const auto& [name, places] : PassesOf(Program::TRAIN)) {
      const size_t wanted = std::get<0>(name) == Instruction::FORWARD
                                ? places.front().instruction->ahead()
                                : 0;
      const auto found = fill.find(name);
      const size_t count = found == fill.end() ? 0 : found->second.size();
      if (count != wanted) return Miscounted(Program::FILL, name, count);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Fault(const PassAt& at, absl::string_view what) const {
    return ProgramFault(
        {.rank = at.rank, .kind = Program::TRAIN},
        absl::StrCat(InstructionText(*at.instruction), ": ", what));
  }

  absl::Status Miscounted(Program::Kind kind, const PassName& name,
                          size_t count) const {
    const auto& [pass, u, m] = name;
    std::vector<int> holders;
    for (const Placement& placement : plan_.placements()) {
      if (placement.unit() == u &&
          std::count(ranks_.begin(), ranks_.end(), placement.rank()) > 0) {
        holders.push_back(placement.rank());
      }
    }
    const std::string what = absl::StrCat(
        Instruction::Kind_Name(pass), " of unit ", u, " is ",
        count == 0 ? "missing" : absl::StrCat("there ", count, " times"),
        " for micro-batch ", m);
    if (holders.size() == 1) {
      return ProgramFault({.rank = holders.front(), .kind = kind}, what);
    }
    return absl::FailedPreconditionError(
        absl::StrCat(Program::Kind_Name(kind), ": ", what, " on ranks ",
                     absl::StrJoin(holders, ", "), " together"));
  }

  // Copies of a unit's parameters that a rank keeps, where it has a buffer for
  // them. Of all at once: a program has as many buffers as passes.
  using Versions = std::map<std::pair<int, int>, int>;  // by rank and unit
  Versions KeptVersions() const {
    Versions kept;
    for (const int rank : ranks_) {
      const RankPlan& of_rank = plan_.ranks(rank);
      const Program* const train = FindProgram(of_rank, Program::TRAIN);
      for (const Buffer& buffer : train->buffers()) {
        if (buffer.kind() != Buffer::PARAMETERS) continue;
        kept.emplace(std::make_pair(rank, buffer.unit()),
                     CopiesOf(of_rank.slots(buffer.slot())));
      }
    }
    return kept;
  }

  const Plan& plan_;
  std::vector<int> ranks_;
};

}  // namespace

absl::Status CheckPasses(const Plan& plan) {
  for (int d = 0; d < AxisSize(plan.mesh(), "data"); ++d) {
    const Pipeline pipeline(plan, d);
    RETURN_IF_ERROR(pipeline.CheckOnce(Program::TRAIN));
    if (pipeline.Has(Program::VALIDATE)) {
      RETURN_IF_ERROR(pipeline.CheckOnce(Program::VALIDATE));
    }
    RETURN_IF_ERROR(pipeline.CheckVersions());
    RETURN_IF_ERROR(pipeline.CheckFill());
  }
  return absl::OkStatus();
}

}  // namespace troupe
