// What an EXCHANGE instruction moves, and where that lies.
#ifndef TROUPE_PROTO_PLAN_EXCHANGE_PLACES_H_
#define TROUPE_PROTO_PLAN_EXCHANGE_PLACES_H_

#include "proto/plan/place_unit.h"
#include "proto/program.pb.h"
#include "proto/unit.pb.h"

namespace troupe {

// Where its op finds what it turns, and where it leaves that.
struct ExchangePlaces {
  TensorPlace from;
  TensorPlace to;
  bool in_place = false;  // the two are one
};
ExchangePlaces PlacesOfExchange(const UnitTable& table,
                                const UnitPlaces& places,
                                const Instruction::Exchange& exchange);

// Whether it takes sums in what it is given.
inline bool SumsInPlace(Collective collective) {
  return collective == REDUCE_SCATTER || collective == REDUCE;
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_EXCHANGE_PLACES_H_
