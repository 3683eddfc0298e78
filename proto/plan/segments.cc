#include "proto/plan/segments.h"

namespace troupe {
namespace {

bool Moves(const Op& op, bool backward) {
  return (backward ? op.exchange().backward() : op.exchange().forward()) !=
         COLLECTIVE_UNSPECIFIED;
}

std::vector<Segment> CutAtExchanges(const UnitTable& table, bool backward) {
  std::vector<Segment> segments = {{}};
  for (int op = 0; op < table.ops_size(); ++op) {
    if (!Moves(table.ops(op), backward)) continue;
    segments.back().end = op;
    if (!backward) segments.back().exchange = op;
    segments.push_back({.begin = op + 1});
    if (backward) segments.back().exchange = op;
  }
  segments.back().end = table.ops_size();
  return segments;
}

}  // namespace

std::vector<Segment> ForwardSegments(const UnitTable& table) {
  return CutAtExchanges(table, /*backward=*/false);
}

std::vector<Segment> BackwardSegments(const UnitTable& table) {
  return CutAtExchanges(table, /*backward=*/true);
}

std::vector<Segment> SegmentsOf(const UnitTable& table,
                                Instruction::Kind kind) {
  const bool backward = kind == Instruction::BACKWARD_INPUT ||
                        kind == Instruction::BACKWARD_WEIGHT;
  return CutAtExchanges(table, backward);
}

ExchangePlaces PlacesOfExchange(const OpPlaces& op,
                                const Instruction::Exchange& exchange) {
  TensorPlace from = op.inputs[0];
  TensorPlace to = op.outputs[0];
  if (exchange.backward()) {
    from = op.output_gradients[0];
    to = op.input_gradients[0];
  } else if (exchange.again()) {
    from = from.InBackward();
    to = to.InBackward();
  }
  return {.from = from,
          .to = to,
          .in_place =
              from.memory == to.memory && from.offset_bytes == to.offset_bytes};
}

}  // namespace troupe
