#include "proto/plan/exchange_places.h"

namespace troupe {

ExchangePlaces PlacesOfExchange(const UnitTable& table,
                                const UnitPlaces& places,
                                const Instruction::Exchange& exchange) {
  const OpPlaces& op = places.ops[exchange.op()];
  TensorPlace from;
  TensorPlace to;
  if (table.ops(exchange.op()).kind() == Op::RETURN) {
    if (exchange.backward()) {
      from = op.inputs[1].InBackward();
      to = op.inputs[0].InBackward();
    }
  } else if (exchange.backward()) {
    from = op.output_gradients[0];
    to = op.input_gradients[0];
  } else {
    from = op.inputs[0];
    to = op.outputs[0];
    if (exchange.again()) {
      from = from.InRecompute();
      to = to.InRecompute();
    }
  }
  return {.from = from, .to = to, .in_place = AreSamePlace(from, to)};
}

}  // namespace troupe
