#include "proto/plan/check_chunks.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/fault.h"
#include "proto/plan/find_program.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/roles.h"
#include "proto/plan/tensor_spec.h"
#include "proto/plan/unit_passes.h"

namespace troupe {
namespace {

// The ops [begin, end) of one chunk.
struct ChunkOps {
  int begin = 0;
  int end = 0;
};

class ChunkTableCheck {
 public:
  ChunkTableCheck(const UnitTable& table, int index)
      : table_(table), index_(index) {}

  absl::Status Run() {
    RETURN_IF_ERROR(FindChunks());
    int64_t row = 0;
    for (const ChunkOps& chunk : chunks_) {
      const Op::Chunk& rows = table_.ops(chunk.begin).chunk();
      if (rows.first_row() != row || rows.rows() < 1) {
        return At(chunk.begin,
                  absl::StrCat("is of rows ", rows.first_row(), " to ",
                               rows.first_row() + rows.rows(), ", where row ",
                               row, " is due"));
      }
      RETURN_IF_ERROR(CheckOps(chunk));
      row += rows.rows();
    }
    if (chunks_.empty()) return absl::OkStatus();
    const int64_t all = RowsOf(View(chunks_[0].begin).input("x"));
    if (row == all) return absl::OkStatus();
    return At(chunks_.back().begin,
              absl::StrCat("is of the last chunk, which ends at row ", row,
                           " of ", all));
  }

 private:
  OpView View(int op) const { return {table_, table_.ops(op)}; }

  // Each begins with the product that makes its logits.
  absl::Status FindChunks() {
    for (int op = 0; op < table_.ops_size(); ++op) {
      if (!table_.ops(op).has_chunk()) continue;
      if (table_.ops(op).kind() == Op::LINEAR) {
        chunks_.push_back({op, op});
      } else if (chunks_.empty()) {
        return At(op, "is of a chunk that no LINEAR begins");
      }
      if (chunks_.back().end != op) {
        return At(op, "does not stand behind the other ops of its chunk");
      }
      chunks_.back().end = op + 1;
      if (chunks_.size() == 1 ||
          chunks_[chunks_.size() - 2].end == chunks_.back().begin) {
        continue;
      }
      return At(op, "does not stand behind the chunk before it");
    }
    return absl::OkStatus();
  }

  // Those of the first chunk, of one set of rows.
  absl::Status CheckOps(const ChunkOps& chunk) const {
    const ChunkOps& first = chunks_.front();
    if (chunk.end - chunk.begin != first.end - first.begin) {
      return At(
          chunk.begin,
          absl::StrCat("begins a chunk of ", chunk.end - chunk.begin,
                       " ops, and the first has ", first.end - first.begin));
    }
    const Op::Chunk& rows = table_.ops(chunk.begin).chunk();
    for (int i = 0; chunk.begin + i < chunk.end; ++i) {
      const int op = chunk.begin + i;
      const Op& spec = table_.ops(op);
      const Op& of_first = table_.ops(first.begin + i);
      if (spec.kind() != of_first.kind() ||
          !std::equal(spec.parameters().begin(), spec.parameters().end(),
                      of_first.parameters().begin(),
                      of_first.parameters().end())) {
        return At(op, absl::StrCat("is where the first chunk has ",
                                   Op::Kind_Name(of_first.kind()),
                                   ", or has other parameters"));
      }
      if (spec.chunk().first_row() != rows.first_row() ||
          spec.chunk().rows() != rows.rows()) {
        return At(op, "is of other rows than the LINEAR of its chunk");
      }
      RETURN_IF_ERROR(CheckRows(op, first.begin));
    }
    return absl::OkStatus();
  }

  // What the kinds that can be of a chunk read, and make of it.
  absl::Status CheckRows(int op, int first) const {
    const Op& spec = table_.ops(op);
    const OpView view = View(op);
    switch (spec.kind()) {
      case Op::LINEAR:
        if (view.Input("x") != View(first).Input("x")) {
          return At(op, "multiplies other values than the first chunk");
        }
        if (spec.linear().bias() || spec.linear().adapted()) {
          return At(op, "has a bias or an adapter, which is of all rows");
        }
        return HasRows(op, view.output("y"));
      case Op::CROSS_ENTROPY_PARTS:
        RETURN_IF_ERROR(HasRows(op, view.output("parts")));
        return HasRows(op, view.input("logits"));
      case Op::CROSS_ENTROPY:
        return HasRows(op, view.input("logits"));
      case Op::EXCHANGE:
        return absl::OkStatus();
      default:
        return At(op, "is of a chunk, but its kind is of all rows");
    }
  }

  absl::Status HasRows(int op, const TensorSpec& tensor) const {
    const int64_t rows = table_.ops(op).chunk().rows();
    if (RowsOf(tensor) == rows) return absl::OkStatus();
    return At(op, absl::StrCat("is of ", rows, " rows, but ", tensor.name(),
                               " has ", RowsOf(tensor)));
  }

  absl::Status At(int op, absl::string_view what) const {
    return absl::FailedPreconditionError(
        absl::StrCat("table ", index_, ", op ", op, " ",
                     Op::Kind_Name(table_.ops(op).kind()), ": ", what));
  }

  const UnitTable& table_;
  const int index_;
  std::vector<ChunkOps> chunks_;
};

// Walks one program, and follows which chunk the place of each unit and
// micro-batch holds.
class ChunkProgramCheck {
 public:
  ChunkProgramCheck(const Plan& plan, const UnitPasses& passes,
                    const Role& role, const Program& program)
      : passes_(passes),
        place_{.rank = FirstRankOf(plan.mesh(), role), .kind = program.kind()},
        program_(program) {}

  absl::Status Run() {
    for (const Instruction& instruction : program_.instructions()) {
      const int chunk = ChunkOf(instruction);
      if (chunk == 0) continue;
      Held& held = held_[{instruction.unit(), instruction.micro_batch()}];
      if (instruction.kind() == Instruction::FORWARD) {
        RETURN_IF_ERROR(GoForward(instruction, chunk, held));
      } else {
        RETURN_IF_ERROR(GoBack(instruction, chunk, held));
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Held {
    int chunk = 0;
    int to_go_back = 0;  // passes that still read it
  };

  int ChunkOf(const Instruction& instruction) const {
    const Instruction::Kind kind = instruction.kind();
    if (kind != Instruction::FORWARD && kind != Instruction::BACKWARD_INPUT &&
        kind != Instruction::BACKWARD_WEIGHT) {
      return 0;
    }
    const auto& passes = passes_.Of(instruction.unit(), kind);
    const size_t segment = instruction.segment();
    if (segment >= passes.size()) return 0;  // CheckPasses says so
    return passes_.ChunkOf(instruction.unit(), passes[segment].segment);
  }

  int PassesBack(int unit, int chunk) const {
    int count = 0;
    for (const Instruction::Kind kind :
         {Instruction::BACKWARD_INPUT, Instruction::BACKWARD_WEIGHT}) {
      for (const UnitPasses::Pass& pass : passes_.Of(unit, kind)) {
        const bool of_chunk = passes_.ChunkOf(unit, pass.segment) == chunk;
        count += of_chunk && pass.use.works;
      }
    }
    return count;
  }

  absl::Status GoForward(const Instruction& instruction, int chunk,
                         Held& held) const {
    if (held.chunk == chunk) return absl::OkStatus();
    if (held.to_go_back > 0) {
      return ProgramFault(
          place_, instruction,
          absl::StrCat("goes forward with chunk ", chunk, " before chunk ",
                       held.chunk,
                       " has gone back, whose values lie in the same place"));
    }
    held = {.chunk = chunk,
            .to_go_back = PassesBack(instruction.unit(), chunk)};
    return absl::OkStatus();
  }

  absl::Status GoBack(const Instruction& instruction, int chunk,
                      Held& held) const {
    if (held.chunk == chunk && held.to_go_back > 0) {
      --held.to_go_back;
      return absl::OkStatus();
    }
    return ProgramFault(
        place_, instruction,
        absl::StrCat("goes back with chunk ", chunk, ", whose values are not ",
                     held.chunk == 0 ? "there yet"
                                     : absl::StrCat("there: chunk ", held.chunk,
                                                    " lies in their place")));
  }

  const UnitPasses& passes_;
  const ProgramPlace place_;
  const Program& program_;
  std::map<std::pair<int, int>, Held> held_;  // by unit and micro-batch
};

}  // namespace

absl::Status CheckChunks(const Plan& plan) {
  bool any = false;
  for (int t = 0; t < plan.tables_size(); ++t) {
    RETURN_IF_ERROR(ChunkTableCheck(plan.tables(t), t).Run());
    for (const Op& op : plan.tables(t).ops()) any |= op.has_chunk();
  }
  if (!any) return absl::OkStatus();
  const UnitPasses passes(plan);
  for (const Role& role : plan.roles()) {
    const Program* const train = FindProgram(role, Program::TRAIN);
    if (train == nullptr) continue;
    RETURN_IF_ERROR(ChunkProgramCheck(plan, passes, role, *train).Run());
  }
  return absl::OkStatus();
}

}  // namespace troupe
