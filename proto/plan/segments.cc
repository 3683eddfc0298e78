#include "proto/plan/segments.h"

#include <set>

namespace troupe {
namespace {

// Of the ops that send what another has made some time before, the ops behind
// that.
std::set<int> BehindMakers(const UnitTable& table) {
  std::vector<int> maker(table.tensors_size(), -1);
  std::set<int> behind;
  for (int op = 0; op < table.ops_size(); ++op) {
    const Op& spec = table.ops(op);
    if (spec.kind() == Op::EXCHANGE) {
      const int made_by = maker[spec.inputs(0).tensor()];
      if (made_by >= 0 && made_by + 1 < op) behind.insert(made_by + 1);
    }
    for (const Op::Operand& output : spec.outputs()) {
      maker[output.tensor()] = op;
    }
  }
  return behind;
}

std::vector<Segment> Cut(const UnitTable& table, bool backward) {
  const std::set<int> behind_makers = BehindMakers(table);
  const std::vector<int> chunks = ChunksOfOps(table);
  std::vector<Segment> segments = {{}};
  for (int op = 0; op < table.ops_size(); ++op) {
    const bool moves = Moves(table.ops(op), backward);
    const bool of_other_chunk = op > 0 && chunks[op] != chunks[op - 1];
    // What is exchanged before chunks stands behind the backward passes of all
    // of them.
    const bool begins =
        segments.back().begin < op ||
        (of_other_chunk && segments.back().exchange >= 0);
    if ((behind_makers.count(op) > 0 || of_other_chunk) && begins) {
      segments.back().end = op;
      segments.push_back({.begin = op});
    }
    if (!moves) continue;
    segments.back().end = op;
    if (!backward) segments.back().exchange = op;
    segments.push_back({.begin = op + 1});
    if (backward) segments.back().exchange = op;
  }
  segments.back().end = table.ops_size();
  return segments;
}

}  // namespace

bool IsExchange(Op::Kind kind) {
  return kind == Op::EXCHANGE || kind == Op::RETURN;
}

bool Moves(const Op& op, bool backward) {
  return (backward ? op.exchange().backward() : op.exchange().forward()) !=
         COLLECTIVE_UNSPECIFIED;
}

std::vector<int> ChunksOfOps(const UnitTable& table) {
  std::vector<int> chunks;
  int number = 0;
  int64_t first_row = -1;
  for (const Op& op : table.ops()) {
    if (op.has_chunk() && op.chunk().first_row() != first_row) {
      ++number;
      first_row = op.chunk().first_row();
    }
    chunks.push_back(op.has_chunk() ? number : 0);
  }
  return chunks;
}

std::vector<Segment> ForwardSegments(const UnitTable& table) {
  return Cut(table, /*backward=*/false);
}

std::vector<Segment> BackwardSegments(const UnitTable& table) {
  return Cut(table, /*backward=*/true);
}

std::vector<Segment> SegmentsOf(const UnitTable& table,
                                Instruction::Kind kind) {
  const bool backward = kind == Instruction::BACKWARD_INPUT ||
                        kind == Instruction::BACKWARD_WEIGHT;
  return Cut(table, backward);
}

std::vector<int> SegmentNumbers(const UnitTable& table, bool backward) {
  std::vector<int> numbers(table.ops_size(), -1);
  int number = 0;
  for (const Segment& segment : Cut(table, backward)) {
    for (int op = segment.begin; op < segment.end; ++op) numbers[op] = number;
    ++number;
  }
  for (int& of_op : numbers) {
    if (of_op < 0) of_op = number++;
  }
  return numbers;
}

std::vector<int> RoundsOfOps(const UnitTable& table) {
  std::vector<int> rounds;
  int grouped = 0;  // of the rows that are grouped by expert here
  for (const Op& op : table.ops()) {
    if (op.kind() == Op::REGROUP) grouped = op.round().number();
    rounds.push_back(op.has_round() ? op.round().number() : grouped);
    if (op.kind() == Op::UNGROUP) grouped = 0;
  }
  return rounds;
}

}  // namespace troupe
