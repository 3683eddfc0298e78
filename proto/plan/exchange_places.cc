#include "proto/plan/exchange_places.h"

#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

TensorPlace PlaceOfSizes(const Op& op, const OpPlaces& places,
                         const Instruction::Exchange& exchange) {
  for (int i = 0; i < op.inputs_size(); ++i) {
    if (op.inputs(i).name() != "offsets") continue;
    const TensorPlace& place = places.inputs[i];
    if (exchange.backward()) return place.InBackward();
    return exchange.again() ? place.InRecompute() : place;
  }
  return {};
}

}  // namespace

int64_t ExchangedColumns(const TensorSpec& tensor) {
  return tensor.dims_size() > 3 ? ColumnsOf(tensor) : 1;
}

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
  return {
      .from = from,
      .to = to,
      .in_place = AreSamePlace(from, to),
      .sizes = PlaceOfSizes(table.ops(exchange.op()), op, exchange)};
}

}  // namespace troupe
